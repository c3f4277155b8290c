// SPDX-License-Identifier: MIT
//! The mock server's main loop, in virtual time.

use super::*;

/// A request that was executed, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub client: ClientId,
    pub start: Time,
    pub end: Time,
}

/// The mock server around the mechanism.
#[derive(Debug)]
pub struct Server {
    /// `None` after xqos stepped aside.
    pub engine: Option<Engine<Mock>>,
    pub host_aside: Option<Mock>,
    pub fault: Option<Fault<Unsound>>,
    /// Requests that will arrive later, ordered by time.
    coming: Vec<(Time, ClientId, Job)>,
    pub done: Vec<Done>,
    /// The number of times that the server woke up with nothing to do.
    pub idle_wakeups: u32,
}

impl Server {
    pub fn new(settings: &Settings) -> Server {
        let engine = Some(Engine::new(Mock::default(), settings, Time(0)));
        let (done, coming) = (Vec::new(), Vec::new());
        Server { engine, host_aside: None, fault: None, coming, done, idle_wakeups: 0 }
    }

    pub fn engine(&mut self) -> &mut Engine<Mock> {
        self.act();
        let engine = self.engine.as_mut().expect("xqos is there");
        let now = engine.host.now.get();
        engine.at(now)
    }

    /// Carries out the engine's actions.
    fn act(&mut self) {
        let Some(engine) = &mut self.engine else { return };
        while let Some(action) = engine.actions.pop_front() {
            engine.host.carry_out(action);
        }
    }

    pub fn host(&mut self) -> &mut Mock {
        self.act();
        match &mut self.engine {
            Some(engine) => &mut engine.host,
            None => self.host_aside.as_mut().expect("a server"),
        }
    }

    pub fn now(&mut self) -> Time {
        self.host().now.get()
    }

    /// Connects and sets up a client of this user.
    pub fn connect(&mut self, uid: u32) -> ClientId {
        let host = self.host();
        let index = (1..).find(|&index| host.peers.get(index).is_none_or(Option::is_none)).unwrap();
        host.peers.resize_with(host.peers.len().max(index + 1), || None);
        host.peers[index] = Some(Peer { jobs: VecDeque::new(), held: false, watched: None, arrived: None });
        let id = ClientId(index as u16);
        let identity = Identity { pid: 1000 + index as i32, uid };
        if self.engine.is_some() {
            let engine = self.engine();
            engine.connected(id, NewConnection { identity, base: base(id), ids: IDS, descriptor: index as u32 });
            engine.established(id, Established { program: format!("program{index}"), ..Established::default() });
        }
        id
    }

    pub fn disconnect(&mut self, id: ClientId) {
        if self.engine.is_some() {
            self.engine().gone(id);
        }
        self.host().forget(id);
        self.coming.retain(|&(_, of, _)| of != id);
        if self.host().grab == Some(id) {
            self.host().grab = None;
            if self.engine.is_some() {
                self.engine().grabbed(id, false);
            }
        }
    }

    /// Delivers this many requests of this length now.
    pub fn send(&mut self, id: ClientId, count: usize, ns: u64) {
        (0..count).for_each(|_| self.host().data_arrived(id, Job { ns, effect: Effect::Nothing }));
    }

    pub fn send_at(&mut self, at: Time, id: ClientId, ns: u64, effect: Effect) {
        let place = self.coming.partition_point(|&(other, ..)| other <= at);
        self.coming.insert(place, (at, id, Job { ns, effect }));
    }

    /// Carries out an XQOS request as if the client had just sent it.
    pub fn ask(&mut self, id: ClientId, request: Request) -> Result<Option<Vec<u8>>, Refused> {
        let format = Format { sequence: 0, order: ByteOrder::NATIVE };
        requests::answer(self.engine(), id, &request.encode(0), format)
    }

    /// The number of requests not executed yet.
    pub fn left(&mut self, id: ClientId) -> usize {
        self.host().peer(id).map_or(0, |peer| peer.jobs.len())
    }

    pub fn time_of(&self, id: ClientId, from: Time, to: Time) -> u64 {
        let part = |done: &Done| done.end.min(to).since(done.start.max(from));
        self.done.iter().filter(|done| done.client == id && done.end > from && done.start < to).map(part).sum()
    }

    /// Runs the server until this time, or until there is nothing left to do before this time.
    pub fn run_until(&mut self, to: Time) {
        while self.now() < to {
            self.call(Engine::block);
            if !self.poll(to) {
                return;
            }
            self.call(|engine| {
                if let Some(server) = engine.host.check()? {
                    engine.server_is_known(&server);
                }
                engine.wakeup()
            });
            self.call(Engine::decide);
            self.serve();
        }
        self.call(Engine::block);
    }

    fn call(&mut self, work: impl FnOnce(&mut Engine<Mock>) -> HookResult<Mock>) {
        if self.engine.is_none() {
            return;
        }
        let engine = self.engine();
        let result = crate::mechanism::fault::guarded(|| work(engine))
            .unwrap_or_else(|panic| Err(Fault::panicked(panic.as_ref())));
        if let Err(fault) = result {
            self.engine().step_back();
            self.act();
            let mut engine = self.engine.take().unwrap();
            engine.host.step_back = true;
            self.fault = Some(fault);
            self.host_aside = Some(engine.into_host());
        }
    }

    /// Waits for something to do. Returns false if nothing happens before this time.
    fn poll(&mut self, to: Time) -> bool {
        self.let_arrive();
        loop {
            let host = self.host();
            if host.queue.clone().into_iter().any(|id| host.can_be_served(id)) {
                return true;
            }
            let (next, wake) = (self.coming.first().map(|&(at, ..)| at), self.host().wake_at);
            let at = next.into_iter().chain(wake).min().filter(|&at| at <= to);
            let Some(at) = at else {
                self.host().now.set(to);
                return false;
            };
            let now = self.now();
            self.host().now.set(at.max(now));
            self.host().rested_ns += at.since(now);
            self.let_arrive();
            if wake.is_some_and(|wake| wake <= at) {
                self.host().wake_at = None;
                self.idle_wakeups += 1;
                return true;
            }
        }
    }

    /// Delivers all requests that are due by now.
    fn let_arrive(&mut self) {
        let now = self.now();
        while self.coming.first().is_some_and(|&(at, ..)| at <= now) {
            let (_, id, job) = self.coming.remove(0);
            self.host().data_arrived(id, job);
        }
    }

    /// Executes requests until the slice is over.
    fn serve(&mut self) {
        let host = self.host();
        let ready: Vec<ClientId> = host.queue.iter().copied().filter(|&id| host.can_be_served(id)).collect();
        host.end.set(false);
        let chosen = match host.chosen {
            Some(Choice::Client(id, _)) => Some(id),
            _ => ready.first().copied(),
        };
        let Some(id) = chosen else { return };
        assert!(ready.contains(&id), "{id:?} was chosen but cannot be served");
        let start = host.now.get();
        let slice_ns = if ready.len() > 1 { SLICE_NS } else { LONGEST_SLICE_NS };
        host.ran = Some(Work {
            client: id,
            requests: 0,
            bytes: 0,
            last_request: 0,
            still_ready: true,
            is_cut: false,
            in_parts_ns: None,
        });
        while let Some(job) = self.host().peer_mut(id).and_then(|peer| peer.jobs.pop_front()) {
            self.execute(id, job);
            let host = self.host();
            let Some(work) = &mut host.ran else { break };
            work.requests += 1;
            work.still_ready = host.peers[usize::from(id.0)].as_ref().is_some_and(|peer| !peer.jobs.is_empty());
            let is_over = host.now.get().since(start) >= slice_ns;
            if !work.still_ready || host.end.get() || is_over {
                break;
            }
        }
        // Move the client to the end of the queue.
        let host = self.host();
        host.queue.retain(|&other| other != id);
        if host.peer(id).is_some_and(|peer| !peer.jobs.is_empty()) {
            host.queue.push(id);
        }
    }

    /// Executes one request. Meanwhile, other requests may arrive and the mechanism's timer may expire.
    fn execute(&mut self, id: ClientId, job: Job) {
        let start = self.now();
        let end = start.after(job.ns);
        loop {
            let (next, ask) = (self.coming.first().map(|&(at, ..)| at), self.host().ask_at.get());
            let Some(at) = next.into_iter().chain(ask).min().filter(|&at| at <= end) else { break };
            let now = self.now();
            self.host().now.set(at.max(now));
            self.let_arrive();
            if ask.is_some_and(|ask| ask <= at) {
                self.host().time_has_come();
            }
        }
        self.host().now.set(end);
        self.done.push(Done { client: id, start, end });
        if let (Effect::Parts(part_ns), Some(work)) = (&job.effect, &mut self.host().ran) {
            work.in_parts_ns = Some((job.ns, *part_ns));
        }
        self.apply_effect(id, job.effect);
    }

    fn apply_effect(&mut self, id: ClientId, effect: Effect) {
        match effect {
            Effect::Grab => self.host().grab = Some(id),
            Effect::Ungrab => self.host().grab = None,
            Effect::Stalls(ns) => {
                let stolen_ns = &self.host().stolen_ns;
                stolen_ns.set(stolen_ns.get() + ns);
            }
            _ => {}
        }
        if self.engine.is_none() {
            return;
        }
        let engine = self.engine();
        match effect {
            Effect::Nothing | Effect::Stalls(_) | Effect::Parts(_) => {}
            Effect::Grab => engine.grabbed(id, true),
            Effect::Ungrab => engine.grabbed(id, false),
            Effect::Expose(client) => engine.input_or_expose(client, false),
            Effect::Mark => engine.mark_exposing(id),
            Effect::Event(client) => engine.delivered(client),
            Effect::Prioritize(client, priority) => engine.prioritized(client, priority),
        }
    }
}
