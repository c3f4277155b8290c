// SPDX-License-Identifier: MIT
//! A window dragged over another one: how often each redraws, and how soon Exposes and keys are answered.
//!
//! The pointer drags xclock by the title bar that twm draws. XTEST injects 125 motions per second without waiting for
//! their effect, as a mouse would. The window below belongs to the program of the case, or to an actor that needs 25 ms
//! of processor time for a redraw. Exposes, redraws and echoes come from the server's trace, so no observer disturbs
//! the measurement.

use super::case::Case;
use super::data::{Figures, named};
use crate::actor::{self, Role};
use crate::canvas::ScreenArea;
use crate::folder::Folder;
use crate::input::{Input, ProgramWindow};
use crate::process::Owned;
use crate::processor::{Pinned, SCENE};
use crate::server::Server;
use crate::trace::events;
use anyhow::Result;
use rustix::process::{Pid, setpriority_process};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ChangeWindowAttributesAux, ConnectionExt, EventMask};
use x11rb::rust_connection::RustConnection;
use xqos_abi::trace::{Entry, Event, Level};
use xqos_core::{Fact, Service};
use xqos_sys::monotonic_ns;

/// Time that the editor in Shatrov's message needed for each redraw.
const WORK_US: u32 = 25_000;
/// Places on the screen of the program below and of the program that echoes keys.
const PLACE: ScreenArea = (200, 150, 1200, 800);
const ECHO_PLACE: ScreenArea = (1450, 150, 100, 100);
/// A typical size. The window covers the program below during the whole drag.
const CLOCK: &str = "600x450+260+250";
/// A point in xclock's title bar between twm's two buttons, relative to the window's corner.
const HANDLE: (i16, i16) = (60, -10);
/// Length of the path along which the pointer moves back and forth, and length of one step.
const WAY: i32 = 400;
const STRIDE: i32 = 4;
/// A mouse reports motions at this interval. The interval between keys keeps them out of step with motions.
const MOTION: Duration = Duration::from_millis(8);
const KEY: Duration = Duration::from_millis(61);
/// Time for all programs to become idle, and for the last answers.
const CALM: Duration = Duration::from_millis(700);
const GRACE: Duration = Duration::from_secs(1);
/// Enough records for ten seconds, because the trace is read only afterwards.
const CAPACITY: u32 = 1 << 19;
/// All Exposes that one move causes reach a program within this time.
const TOGETHER_NS: u64 = 500_000;
/// twm moves windows opaquely and places them automatically. It does not treat a quick second click specially.
const TWMRC: &str = "OpaqueMove\nRandomPlacement \"on\"\nUsePPosition \"on\"\nNoGrabServer\nConstrainedMoveTime 0\n\
                     Button1 = : title : f.move\n";

/// Index into `pids` of the program below; the other one echoes keys.
const BENEATH: usize = 0;

pub(super) fn drag(case: &Case, server: &Server, quick: bool) -> Result<Figures> {
    let control = server.control()?;
    let mut scene = Scene::set(case, server)?;
    if let Some([of_server, of_manager]) = case.nice {
        let pid = |pid: u32| Pid::from_raw(pid as i32);
        setpriority_process(pid(server.pid()), of_server)?;
        setpriority_process(pid(scene.manager.pid()), of_manager)?;
    }
    scene.play(case.warm_up)?;
    scene.moves()?;
    let mut trace = control.start_trace(Level::Slices, CAPACITY)?;
    let from_ns = monotonic_ns();
    let keys_ns = scene.play(case.time(quick))?;
    let (to_ns, moves) = (monotonic_ns(), scene.moves()?);
    scene.rest()?;
    let (events, lost) = events(&mut trace);
    control.stop_trace()?;
    let seen = Seen::of(&events, scene.pids, to_ns);
    let seconds = (to_ns - from_ns) as f64 / 1e9;
    let ms = |from: u64, to: u64| (to - from) as f64 / 1e6;
    let ends: Vec<u64> = seen.redraws.iter().map(|redraw| redraw.1).filter(|end| *end <= to_ns).collect();
    let answers = seen.answers(if case.command.is_empty() { u64::from(WORK_US) * 1000 } else { 0 });
    let echo = |key: &u64| seen.echoes.iter().find(|echo| *echo >= key).map(|echo| ms(*key, *echo));
    let values = [
        ("moves", moves as f64 / seconds),
        ("redraws", ends.len() as f64 / seconds),
        ("unanswered", (seen.exposes.len() - answers.len()) as f64),
        ("lost", lost as f64),
    ];
    let samples = [
        ("redraw", ends.windows(2).map(|pair| ms(pair[0], pair[1])).collect()),
        ("answer", answers),
        ("key", keys_ns.iter().filter_map(echo).collect()),
    ];
    Ok((named(samples), named(values)))
}

/// All programs of the scene. They end when this is dropped.
#[derive(Debug)]
struct Scene {
    input: Input,
    /// Connection that receives an event for each move of the window.
    watch: RustConnection,
    from: (i16, i16),
    turn: i32,
    programs: Vec<ProgramWindow>,
    // Drop order: twm ends after the windows that it manages, and before its folder is removed.
    manager: Owned,
    _folder: Folder,
    /// The program below and the program that echoes keys.
    pids: [u32; 2],
}

impl Scene {
    fn set(case: &Case, server: &Server) -> Result<Scene> {
        let pinned = case.has_one_processor().then(|| Pinned::to(SCENE)).transpose()?;
        let (display, folder) = (server.display(), Folder::create()?);
        fs::write(folder.path("twmrc"), TWMRC)?;
        let mut command = Command::new("twm");
        command.args(["-display", display, "-f"]).arg(folder.path("twmrc"));
        let manager = Owned::start_silent(&mut command, GRACE)?;
        let beneath = match case.command.split_first() {
            None => actor::start(display, Role::Answerer { work_us: WORK_US, place: PLACE })?,
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                let shown = ProgramWindow::start(server, command, (AtomEnum::WM_CLASS, program))?;
                shown.put(server, PLACE)?;
                shown
            }
        };
        let echo = actor::start(display, Role::Answerer { work_us: 0, place: ECHO_PLACE })?;
        let mut clock = Command::new("xclock");
        clock.args(["-geometry", CLOCK]);
        let clock = ProgramWindow::start(server, clock, (AtomEnum::WM_CLASS, "xclock"))?;
        drop(pinned);
        sleep(CALM);
        let (input, watch, corner) = (Input::of(server)?, server.connect()?, clock.corner(server)?);
        let moves = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        watch.change_window_attributes(watch.setup().roots[0].root, &moves)?.check()?;
        input.type_into(echo.window)?;
        let from = (corner.0 + HANDLE.0, corner.1 + HANDLE.1);
        input.press(from, 1)?;
        let pids = [beneath.process.pid(), echo.process.pid()];
        let programs = vec![beneath, echo, clock];
        Ok(Scene { input, watch, from, turn: 0, programs, manager, _folder: folder, pids })
    }

    /// Drags and types for this time. Returns the times at which keys were pressed.
    fn play(&mut self, time: Duration) -> Result<Vec<u64>> {
        let (mut motion_ns, mut key_ns, mut keys_ns) = (monotonic_ns(), monotonic_ns(), Vec::new());
        let end_ns = motion_ns + time.as_nanos() as u64;
        let key = self.input.keycode_of('x'.into())?;
        loop {
            let next_ns = motion_ns.min(key_ns);
            if next_ns >= end_ns {
                return Ok(keys_ns);
            }
            sleep(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())));
            if next_ns == motion_ns {
                motion_ns += MOTION.as_nanos() as u64;
                self.turn += 1;
                self.input.point(pulled_to(self.from, self.turn))?;
            } else {
                key_ns += KEY.as_nanos() as u64;
                keys_ns.push(monotonic_ns());
                self.input.key(key)?;
            }
        }
    }

    /// Number of moves of xclock's window since the last call. twm requests each move twice.
    fn moves(&self) -> Result<usize> {
        self.watch.get_input_focus()?.reply()?;
        let mut moves = 0;
        while let Some(event) = self.watch.poll_for_event()? {
            moves += usize::from(matches!(event, x11rb::protocol::Event::ConfigureNotify(_)));
        }
        Ok(moves)
    }

    fn rest(&mut self) -> Result<()> {
        self.manager.see_running("twm")?;
        self.programs.iter_mut().try_for_each(|shown| shown.process.see_running("a program of the drag"))?;
        self.input.release(1)?;
        sleep(CALM);
        Ok(())
    }
}

/// The path: back and forth horizontally, and slowly up and down.
fn pulled_to(from: (i16, i16), turn: i32) -> (i16, i16) {
    let there_and_back = |steps: i32, way: i32| {
        let at = steps % (2 * way);
        at.min(2 * way - at) as i16
    };
    (from.0 + there_and_back(turn * STRIDE, WAY), from.1 + there_and_back(turn, WAY / 4))
}

/// Observations from a trace, on its clock.
#[derive(Debug, Default)]
struct Seen {
    exposes: Vec<u64>,
    /// When the server learned of the drawing requests, and when it had executed all of them.
    redraws: Vec<(u64, u64)>,
    echoes: Vec<u64>,
}

impl Seen {
    /// Extracts the observations. Exposes after `to_ns` do not count.
    fn of(events: &[Event], pids: [u32; 2], to_ns: u64) -> Seen {
        let identified = |event: &Event| match event.what {
            Entry::Identity { client, pid, .. } => Some((client, pids.iter().position(|one| *one == pid)?)),
            _ => None,
        };
        let who: BTreeMap<_, _> = events.iter().filter_map(identified).collect();
        let is = |client, place| who.get(&client) == Some(&place);
        let (mut seen, mut arrived, mut asked) = (Seen::default(), None, [0; 2]);
        for Event { at, what } in events {
            match *what {
                Entry::Fact(Fact::Exposed { client, .. }) if is(client, BENEATH) && at.0 <= to_ns => {
                    seen.exposes.push(at.0);
                }
                Entry::Fact(Fact::Arrived { client }) if is(client, BENEATH) => _ = arrived.get_or_insert(at.0),
                Entry::Fact(Fact::Served(Service { client, requests, still_ready, .. })) => {
                    let Some(&place) = who.get(&client) else { continue };
                    asked[place] += requests;
                    if still_ready || asked[place] == 0 {
                        continue;
                    }
                    asked[place] = 0;
                    match place {
                        BENEATH => seen.redraws.push((arrived.take().unwrap_or(at.0), at.0)),
                        _ => seen.echoes.push(at.0),
                    }
                }
                _ => {}
            }
        }
        seen
    }

    /// Time from each Expose to the end of the first redraw that began after it, since a redraw in progress does not
    /// answer it. A program that works for `work_ns` is assumed to begin as soon as it can, and at the latest `work_ns`
    /// before the end. The redraw of a toolkit (`work_ns` is 0) begins when its requests arrive.
    fn answers(&self, work_ns: u64) -> Vec<f64> {
        let mut exposes = self.exposes.iter().copied().peekable();
        let (mut answers, mut free_ns) = (Vec::new(), 0);
        for &(arrived_ns, done_ns) in &self.redraws {
            let Some(&first_ns) = exposes.peek() else { break };
            let began_ns = match work_ns {
                0 => arrived_ns,
                _ => free_ns.max(first_ns + TOGETHER_NS).min(done_ns.saturating_sub(work_ns)),
            };
            while let Some(at_ns) = exposes.next_if(|at_ns| *at_ns <= began_ns) {
                answers.push((done_ns - at_ns) as f64 / 1e6);
            }
            free_ns = done_ns;
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::{ClientId, Time};

    const MS: u64 = 1_000_000;

    fn seen(exposes_ms: &[u64], redraws_ms: &[(u64, u64)]) -> Seen {
        let exposes = exposes_ms.iter().map(|at| at * MS).collect();
        Seen { exposes, redraws: redraws_ms.iter().map(|(from, to)| (from * MS, to * MS)).collect(), ..Seen::default() }
    }

    #[test]
    fn a_redraw_answers_exposes_before_its_beginning() {
        let seen = seen(&[1, 20, 28, 60], &[(26, 26), (51, 51), (76, 76)]);
        assert_eq!(seen.answers(25 * MS), [25.0, 31.0, 48.0], "the last one has no answer");
    }

    #[test]
    fn a_toolkit_knows_of_all_exposes_before_its_frame() {
        assert_eq!(seen(&[1, 9, 16], &[(15, 16), (31, 32)]).answers(0), [15.0, 7.0, 16.0]);
    }

    #[test]
    fn a_redraw_for_an_earlier_expose_does_not_answer_a_later_one() {
        assert_eq!(seen(&[5, 31, 57], &[(26, 26), (52, 52), (78, 78)]).answers(25 * MS), [47.0, 47.0]);
        assert_eq!(seen(&[40], &[(10, 11), (64, 65)]).answers(25 * MS), [25.0]);
    }

    #[test]
    fn exposes_redraws_and_echoes_are_read_from_a_trace() {
        let event = |ms: u64, what| Event { at: Time(ms * MS), what };
        let identity = |id: u16, pid| event(0, Entry::Identity { client: ClientId(id), pid, base: 0, uid: 0 });
        let served = |ms: u64, id: u16, still_ready| {
            let service = Service::new(ClientId(id), Time(ms * MS), Time(ms * MS));
            event(ms, Entry::Fact(Fact::Served(Service { requests: 1, still_ready, ..service })))
        };
        let exposed = |ms| event(ms, Entry::Fact(Fact::Exposed { client: ClientId(2), cause: None }));
        let arrived = |ms| event(ms, Entry::Fact(Fact::Arrived { client: ClientId(2) }));
        let who = [identity(1, 10), identity(2, 20), identity(3, 30)];
        let happens = [
            exposed(1),
            served(2, 1, false),
            arrived(3),
            served(4, 2, true),
            served(5, 2, false),
            served(6, 3, false),
            exposed(9),
        ];
        let seen = Seen::of(&[&who[..], &happens[..]].concat(), [20, 30], 8 * MS);
        assert_eq!(seen.exposes, [MS]);
        assert_eq!((seen.redraws, seen.echoes), (vec![(3 * MS, 5 * MS)], vec![6 * MS]));
    }

    #[test]
    fn each_motion_moves_and_the_path_is_closed() {
        let places: Vec<_> = (0..=200).map(|turn| pulled_to((100, 50), turn)).collect();
        assert!(places.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!((places[0], places[200]), ((100, 50), (100, 50)));
        assert_eq!(places.iter().map(|place| place.0).max(), Some(500));
    }
}
