// SPDX-License-Identifier: MIT
//! A scene: all that takes part, on one processor, and somebody who pulls, types and looks on from the other one.

use super::case::{Case, Play};
use super::shot::{self, Key, Shot};
use crate::actor::{Actor, EXPOSED_PLACE, Role};
use crate::drag::{self, Drag, Hand, Manager, Shown};
use crate::onlooker::{self, Answers, Onlooker};
use crate::processor::{Pinned, SCENE, now_ns};
use crate::server::Server;
use anyhow::Result;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use x11rb::protocol::xproto::{ConnectionExt, Window};
use xqos_abi::ring::{Next, Reader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_client::Control;
use xqos_core::Fact;

/// Of the exposed program: what gedit took in 2005.
pub(super) const WORK_US: u32 = 25_000;
/// Of the mover that works.
const MOVE_US: u32 = 4_000;
/// A mouse reports that often.
const MOTION: Duration = Duration::from_millis(8);
/// Keys shall not fall into step with the motions.
const KEY_EVERY: Duration = Duration::from_millis(61);
/// On the keyboard's upper row; as many as can be under way.
const KEYS: std::ops::Range<u8> = 24..34;
/// Before it is measured, and afterwards for the last answers.
const SETTLE: Duration = Duration::from_millis(300);
/// Of the trace: nobody reads meanwhile.
const CAPACITY: u32 = 1 << 18;
/// Icons in a grid.
const BROWSER: &str = "gtk3-icon-browser";
/// GTK programs paint several times before they are at rest.
const CALM: Duration = Duration::from_millis(700);

/// A server and, where it carries xqos, the connection that sets it.
#[derive(Debug)]
pub(super) struct Stage {
    pub server: Server,
    pub control: Option<Control>,
}

impl Stage {
    /// On the scene's processor, and all threads of the server that come later with it.
    pub fn pinned(start: impl FnOnce() -> Result<Server>, has_xqos: bool) -> Result<Stage> {
        let _pinned = Pinned::to(SCENE)?;
        let server = start()?;
        let control = if has_xqos { Some(server.control()?) } else { None };
        Ok(Stage { server, control })
    }
}

/// Everybody who takes part; they end when this is dropped, the looker-on first.
#[derive(Debug)]
pub(super) struct Scene {
    onlooker: Onlooker,
    hand: Hand,
    drag: Option<Drag>,
    next_key: u8,
    mover: Option<Actor>,
    clock: Option<Shown>,
    exposed: Exposed,
    echo: Actor,
    manager: Option<Manager>,
}

#[derive(Debug)]
enum Exposed {
    Actor(Actor),
    Program(Shown),
}

impl Exposed {
    fn window(&self) -> Window {
        match self {
            Exposed::Actor(actor) => actor.window,
            Exposed::Program(shown) => shown.window,
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Exposed::Actor(actor) => actor.pid(),
            Exposed::Program(shown) => shown.pid(),
        }
    }
}

impl Scene {
    /// Everything is in its place and at rest, but for a mover, which has begun.
    pub fn set(stage: &Stage, play: Play) -> Result<Scene> {
        let server = &stage.server;
        let pinned = Pinned::to(SCENE)?;
        let display = server.display();
        let is_drag = play.is_drag();
        let manager = is_drag.then(|| Manager::start(display)).transpose()?;
        let exposed = match play {
            Play::Toolkit => {
                // With one window: of a program with several, each has a clock of its own for its frames.
                let shown = Shown::start(server, Command::new(BROWSER), BROWSER)?;
                shown.put(server, EXPOSED_PLACE)?;
                Exposed::Program(shown)
            }
            _ => {
                let _elsewhere = (play == Play::Elsewhere).then(Pinned::beside_the_scene).transpose()?;
                Exposed::Actor(Actor::start(display, Role::Exposed { work_us: WORK_US })?)
            }
        };
        let echo = Actor::start(display, Role::Echo)?;
        let connection = server.connect()?;
        let clock = is_drag.then(|| Shown::start(server, drag::clock(), "xclock")).transpose()?;
        let mover = match play {
            Play::Mover => Some(Role::Mover { work_us: 0, waits: false }),
            Play::Working => Some(Role::Mover { work_us: MOVE_US, waits: false }),
            Play::Waiting => Some(Role::Mover { work_us: 0, waits: true }),
            Play::Drag | Play::Toolkit | Play::Elsewhere => None,
        };
        let mover = mover.map(|role| Actor::start(display, role)).transpose()?;
        let frame = clock.as_ref().map(|clock| drag::frame_of(server, clock.window)).transpose()?;
        drop(pinned);
        let hand = Hand::of(server)?;
        let answers = if play == Play::Toolkit { Answers::Counted } else { Answers::Told };
        let moving = frame.or(mover.as_ref().map(|mover| mover.window)).unwrap_or_default();
        let sees_exposes = stage.control.is_none();
        let looked_at = onlooker::Scene { moving, exposed: exposed.window(), answers, echo: echo.window, sees_exposes };
        let onlooker = Onlooker::start(server, looked_at)?;
        // The exposed window beneath what moves.
        if let Exposed::Actor(actor) = &exposed {
            lower(&connection, actor.window)?;
        }
        for window in [exposed.window(), echo.window] {
            connection.map_window(window)?.check()?;
        }
        std::thread::sleep(if play == Play::Toolkit { CALM } else { SETTLE });
        hand.type_into(echo.window)?;
        let drag = frame.map(|frame| hand.take(frame)).transpose()?;
        let next_key = KEYS.start;
        Ok(Scene { onlooker, hand, drag, next_key, mover, clock, exposed, echo, manager })
    }

    /// Threads of those who compete for the processor, with their names.
    pub fn threads(&self, server: &Server) -> Vec<(u32, &'static str)> {
        let mover = self.mover.as_ref().map(|mover| (mover.pid(), "mover"));
        let manager = self.manager.as_ref().map(|manager| (manager.pid(), "twm"));
        let clock = self.clock.as_ref().map(|clock| (clock.pid(), "xclock"));
        let others = [manager, clock, mover].into_iter().flatten();
        let exposed = (self.exposed.pid(), "exposed");
        std::iter::once((server.pid(), "X server")).chain(others).chain([exposed]).collect()
    }

    /// Pulls and types for this time.
    pub fn play(&mut self, time: Duration) -> Result<Vec<Key>> {
        let end_ns = now_ns() + time.as_nanos() as u64;
        let (mut motion_ns, mut key_ns) = (now_ns(), now_ns());
        let mut keys = Vec::new();
        loop {
            let next_ns = motion_ns.min(key_ns);
            if next_ns >= end_ns {
                return Ok(keys);
            }
            std::thread::sleep(Duration::from_nanos(next_ns.saturating_sub(now_ns())));
            if next_ns == motion_ns {
                motion_ns += MOTION.as_nanos() as u64;
                if let Some(drag) = &mut self.drag {
                    self.hand.pull(drag)?;
                }
            } else {
                key_ns += KEY_EVERY.as_nanos() as u64;
                keys.push(Key { at_ns: now_ns(), code: self.next_key });
                self.hand.key(self.next_key)?;
                self.next_key = KEYS.start + (self.next_key + 1 - KEYS.start) % KEYS.len() as u8;
            }
        }
    }

    /// Whoever takes part still does.
    fn see_running(&mut self) -> Result<()> {
        self.manager.as_mut().map_or(Ok(()), Manager::see_running)?;
        self.clock.as_mut().map_or(Ok(()), |clock| clock.see_running("xclock"))?;
        self.mover.as_mut().map_or(Ok(()), |mover| mover.see_running("the mover"))?;
        self.echo.see_running("the program that answers keys")?;
        match &mut self.exposed {
            Exposed::Actor(actor) => actor.see_running("the exposed program"),
            Exposed::Program(shown) => shown.see_running(BROWSER),
        }
    }

    /// What moved rests, and the last answers come.
    pub fn rest(&mut self) -> Result<Vec<(u64, onlooker::Sight)>> {
        self.see_running()?;
        if let Some(drag) = self.drag.take() {
            self.hand.let_go(drag)?;
        }
        self.mover = None;
        std::thread::sleep(SETTLE);
        Ok(self.onlooker.seen())
    }
}

/// One play under one circumstance.
pub(super) fn shoot(stage: &Stage, play: Play, case: Case, time: Duration) -> Result<Shot> {
    let _beside = Pinned::beside_the_scene()?;
    let _help = case.begin(&stage.server, stage.control.as_ref())?;
    let trace = stage.control.as_ref().map(|control| control.start_trace(Level::Slices, CAPACITY)).transpose()?;
    let mut scene = Scene::set(stage, play)?;
    scene.play(SETTLE)?;
    let from_ns = now_ns();
    let keys = scene.play(time)?;
    let to_ns = now_ns();
    let mut seen = scene.rest()?;
    if let (Some(mut trace), Some(control)) = (trace, &stage.control) {
        shot::add_exposes(&mut seen, &exposes(&read(&mut trace), scene.exposed.pid()));
        control.stop_trace()?;
    }
    Ok(Shot::of(&seen, &keys, from_ns..to_ns))
}

/// All that the trace holds now.
pub(super) fn read(trace: &mut Reader) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match trace.read() {
            Next::Record(words) => events.extend(Event::decode(words)),
            Next::Lost(_) => {}
            Next::Nothing | Next::Ended => return events,
        }
    }
}

/// When this process got them.
fn exposes(events: &[Event], wanted: u32) -> Vec<u64> {
    let mut clients = BTreeSet::new();
    let mut all_ns = Vec::new();
    for event in events {
        match event.what {
            Entry::Identity { client, pid, .. } if pid == wanted => {
                clients.insert(client);
            }
            Entry::Fact(Fact::Exposed { client, .. }) if clients.contains(&client) => all_ns.push(event.at.0),
            _ => {}
        }
    }
    all_ns
}

fn lower(connection: &impl ConnectionExt, window: Window) -> Result<()> {
    use x11rb::protocol::xproto::{ConfigureWindowAux, StackMode};
    connection.configure_window(window, &ConfigureWindowAux::new().stack_mode(StackMode::BELOW))?;
    Ok(())
}
