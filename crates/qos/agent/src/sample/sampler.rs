// SPDX-License-Identifier: MIT
//! Takes a series of samples, and reads the trace in between.

use super::{ClientSample, Longest, Readings, Sample, ServerSample, VERSION, departed, ms};
use crate::error::Result;
use crate::feed::Feed;
use crate::processor::Processor;
use crate::session::Session;
use crate::windows;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use xqos_abi::trace::Level;
use xqos_abi::{ClientEntry, entry_flag};
use xqos_sys::proc::processor_time;
use xqos_text::escape::printable;
use xqos_trace::histogram::Histogram;
use xqos_trace::model::{Figures, RequestTotals};
use xqos_trace::names::Names;

/// How often the ring is read between samples.
const READ_EVERY: Duration = Duration::from_millis(100);
/// How often titles are read, which takes a round trip for each window.
const TITLES_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Sampler {
    pub session: Session,
    names: Names,
    pub feed: Feed,
    before: Option<Readings>,
    /// Processor time of each process at the last sample, in seconds.
    processes: HashMap<i32, f64>,
    titles: HashMap<u32, String>,
    titles_at: Option<Instant>,
    /// Also lists our own connection.
    with_own: bool,
    measured: BTreeMap<u32, xqos_tune::ClientAnalysis>,
}

impl Sampler {
    /// Starts a trace. The first sample covers the time from now on.
    pub fn open(display: Option<&str>) -> Result<Sampler> {
        let mut sampler = Sampler::connect(display)?;
        // If that fails, as for a server on another machine, there are no response times.
        let _ = sampler.feed.trace(&sampler.session, Level::Slices);
        sampler.before = Some(Readings::of(&sampler.session.control)?);
        Ok(sampler)
    }

    /// Takes one sample with the figures since each client connected.
    pub fn once(display: Option<&str>) -> Result<Sample> {
        Sampler::connect(display)?.sample()
    }

    /// Like [`once`](Sampler::once), without window titles.
    pub fn list(display: Option<&str>, with_own: bool) -> Result<Sample> {
        let titles_at = Some(Instant::now());
        Sampler { with_own, titles_at, ..Sampler::connect(display)? }.sample()
    }

    fn connect(display: Option<&str>) -> Result<Sampler> {
        let session = Session::open(display)?;
        let names = session.names()?;
        Ok(Sampler {
            session,
            names,
            feed: Feed::closed(),
            before: None,
            processes: HashMap::new(),
            titles: HashMap::new(),
            titles_at: None,
            with_own: false,
            measured: BTreeMap::new(),
        })
    }

    pub fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            self.read();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(READ_EVERY));
        }
    }

    pub fn read(&mut self) {
        // If the trace cannot be restarted, the next call continues reading.
        for (client, burst) in self.feed.read(&self.session).unwrap_or_default() {
            self.measured.entry(client).or_default().take(burst);
        }
    }

    /// Takes a sample of the time since the previous one; the first covers the time since each client connected.
    pub fn sample(&mut self) -> Result<Sample> {
        self.read();
        let now = Readings::of(&self.session.control)?;
        // Query these first: if the server does not answer in time, the figures of the interval must be kept.
        let longest_requests = self.longest_requests(&now)?;
        let Readings { info, list, .. } = &now;
        // During a server grab, other clients' requests about windows would block.
        if info.grab_holder == 0 {
            self.look_for_titles();
        }
        let model = &mut self.feed.model;
        let recent: Vec<(usize, Figures)> = model.take_recent();
        let recent = recent.into_iter().map(|(key, of)| (model.clients()[key].identity.base, of.responses));
        let recent: BTreeMap<u32, Histogram> = recent.collect();
        self.measured.retain(|&base, _| list.clients.iter().any(|entry| entry.client == base));
        self.measured.values_mut().for_each(|client| client.advance(self.feed.model.now));
        let before = self.before.take();
        let server = ServerSample { longest_requests, ..ServerSample::new(&now, before.as_ref()) };
        let then = before.as_ref().map(Readings::client_lists).unwrap_or_default();
        let departed = departed::list(&then, &now.client_lists(), now.elapsed_ns(before.as_ref()), server.running);
        let before = before.as_ref().map(|before| &before.list);
        let interval_ms = before.map(|before| ms(list.now_ns.saturating_sub(before.now_ns)));
        let processes = self.process_shares(&list.clients, interval_ms);
        let is_here = self.session.is_here();
        let listed = list.clients.iter().filter(|entry| self.with_own || entry.flags & entry_flag::YOU == 0);
        let mut clients: Vec<ClientSample> = listed
            .map(|entry| ClientSample {
                title: self.titles.get(&entry.client).cloned(),
                responses: self.feed.is_open().then(|| recent.get(&entry.client).cloned().unwrap_or_default()),
                waits_since_ns: self.waits_since_ns(entry.client),
                process_share: processes.get(&entry.pid).copied(),
                longest_request: self.names.of(entry.longest_request),
                cpu: Some(entry.pid).filter(|&pid| pid > 0 && is_here).and_then(Processor::of),
                measured: self.measured.get(&entry.client).map(xqos_tune::ClientAnalysis::report),
                ..ClientSample::new(entry, before, list.now_ns, server.running)
            })
            .collect();
        clients.sort_by(|a, b| {
            b.charged_share.total_cmp(&a.charged_share).then(b.entry.charged_ns.cmp(&a.entry.charged_ns))
        });
        let server = ServerSample { cpu: server.cpu.filter(|_| is_here), lost: self.feed.model.lost, ..server };
        let now_ms = ms(list.now_ns);
        self.before = Some(now);
        Ok(Sample { version: VERSION, now_ms, interval_ms, server, clients, departed })
    }

    /// The processor time of each client's process in the interval, as a part of one processor.
    fn process_shares(&mut self, clients: &[ClientEntry], interval_ms: Option<f64>) -> HashMap<i32, f64> {
        let Some(interval_s) = interval_ms.map(|ms| ms / 1e3).filter(|&seconds| seconds > 0.0) else {
            return HashMap::new();
        };
        let pids = clients.iter().map(|entry| entry.pid).filter(|&pid| pid > 0 && self.session.is_here());
        let now: HashMap<i32, f64> = pids.filter_map(|pid| Some((pid, processor_time(pid)?.as_secs_f64()))).collect();
        let before = std::mem::replace(&mut self.processes, now);
        let share = |(pid, now): (&i32, &f64)| Some((*pid, (now - before.get(pid)?).max(0.0) / interval_s));
        self.processes.iter().filter_map(share).collect()
    }

    fn waits_since_ns(&self, base: u32) -> Option<u64> {
        let traced = self.feed.model.present().find(|client| client.identity.base == base)?;
        traced.waits_since().map(|since| since.0)
    }

    fn longest_requests(&self, now: &Readings) -> Result<Vec<Longest>> {
        // The server does not answer this request after xqos has stepped aside.
        let longest = if now.info.armed { self.session.control.longest_requests()?.requests } else { Vec::new() };
        Ok(longest.iter().map(|request| Longest::new(request, now.list.now_ns, &self.names)).collect())
    }

    /// The most expensive kinds of requests of a client since its trace began; empty below trace level `requests`.
    pub fn kinds(&self, base: u32) -> Vec<(String, RequestTotals)> {
        let Some(client) = self.feed.model.present().find(|client| client.identity.base == base) else {
            return Vec::new();
        };
        let mut kinds: Vec<(String, RequestTotals)> =
            client.total.kinds.iter().map(|(&request, &kind)| (self.names.of(request), kind)).collect();
        kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.ns));
        kinds
    }

    fn look_for_titles(&mut self) {
        let is_due = self.titles_at.is_none_or(|at| at.elapsed() >= TITLES_EVERY);
        if !is_due {
            return;
        }
        self.titles_at = Some(Instant::now());
        let Ok(connection) = self.session.control.connection() else { return };
        // Windows may disappear meanwhile. The other figures do not need titles.
        if let Ok(titles) = windows::titles(connection) {
            let mask = x11rb::connection::Connection::setup(connection).resource_id_mask;
            self.titles.clear();
            for (window, title) in titles {
                self.titles.entry(window & !mask).or_insert_with(|| printable(&title));
            }
        }
    }
}
