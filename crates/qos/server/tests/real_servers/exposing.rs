// SPDX-License-Identifier: MIT
//! Tests of expose pacing: which clients are marked as exposing, and which clients wait for them and how long. Also
//! tests the processor loan.
//!
//! One client covers another client's window and moves away. The other client answers by drawing, or does not answer.

use crate::busy::Busy;
use crate::fixture::{Fixture, SOON, alone, as_nobody, is_not_root, served, wait_for, xvfb, xvfb_with};
use crate::tracing::{id_of, read};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::cookie::Cookie;
use x11rb::protocol;
use x11rb::protocol::xproto::{
    ConfigureWindowAux, ConnectionExt, CreateGCAux, CreateWindowAux, EventMask, GetInputFocusReply, Rectangle, Window,
    WindowClass,
};
use x11rb::rust_connection::RustConnection;
use xqos_abi::ring::RingReader;
use xqos_abi::trace::{Entry, Event, Level};
use xqos_abi::{Malformed, NotifyKind, event_mask};
use xqos_client::Control;
use xqos_core::{Fact, PolicyKind, Service, Time};

/// The longest time that a client can be made to wait for an answer to an Expose.
const LIMIT: Duration = Duration::from_secs(1);

/// How long a hold lasts after the answer, because toolkits redraw in parts.
const SETTLING_NS: u64 = 5_000_000;

/// A client with one window.
struct Client {
    connection: RustConnection,
    window: Window,
}

impl Client {
    fn start(fixture: &Fixture, x: i16, size: u16) -> Client {
        let connection = fixture.connect().unwrap();
        let window = connection.generate_id().unwrap();
        let root = connection.setup().roots[0].root;
        let look = CreateWindowAux::new().event_mask(EventMask::EXPOSURE).background_pixel(1).override_redirect(1);
        let class = WindowClass::INPUT_OUTPUT;
        connection.create_window(0, window, root, x, 0, size, size, 0, class, 0, &look).unwrap();
        connection.map_window(window).unwrap();
        connection.flush().unwrap();
        let client = Client { connection, window };
        client.wait_for_expose();
        client
    }

    /// The first resource id of the client.
    fn base(&self) -> u32 {
        self.connection.setup().resource_id_base
    }

    fn wait_for_expose(&self) {
        wait_for("an Expose", SOON, || self.is_exposed());
    }

    fn is_exposed(&self) -> bool {
        std::iter::from_fn(|| self.connection.poll_for_event().unwrap())
            .any(|event| matches!(event, protocol::Event::Expose(_)))
    }

    fn draw(&self) {
        let gc = self.connection.generate_id().unwrap();
        self.connection.create_gc(gc, self.window, &CreateGCAux::new()).unwrap();
        let whole = Rectangle { x: 0, y: 0, width: 50, height: 50 };
        self.connection.poly_fill_rectangle(self.window, gc, &[whole]).unwrap();
        self.connection.free_gc(gc).unwrap();
        self.connection.flush().unwrap();
    }

    /// Moves the window, which uncovers the windows below it.
    fn move_to(&self, x: i16) {
        self.connection.configure_window(self.window, &ConfigureWindowAux::new().x(i32::from(x))).unwrap();
        self.connection.flush().unwrap();
    }

    /// Sends a request without waiting for its answer. Returns the server's time when the request has arrived.
    fn ask(&self, control: &Control) -> (Cookie<'_, RustConnection, GetInputFocusReply>, Time) {
        let cookie = self.connection.get_input_focus().unwrap();
        self.connection.flush().unwrap();
        (cookie, Time(control.clients().unwrap().now_ns))
    }

    /// How long the server takes to answer a request, including the wait for this client's turn.
    fn answer_time(&self) -> Duration {
        let asked = Instant::now();
        self.connection.get_input_focus().unwrap().reply().unwrap();
        asked.elapsed()
    }
}

/// A client that draws, and a client with a window on top of it.
fn painter_and_mover(fixture: &Fixture) -> (Client, Client) {
    let painter = Client::start(fixture, 0, 100);
    let mover = Client::start(fixture, 0, 60);
    // Answer the Exposes caused by mapping the windows. A client whose answer was late must answer twice.
    for client in [&painter, &mover] {
        client.draw();
        client.answer_time();
        client.answer_time();
    }
    (painter, mover)
}

/// A trace of a server with a busy client. The slices of that client show when the server could have served another.
struct Holds<'a> {
    control: &'a Control,
    reader: RingReader,
    events: Vec<Event>,
    _busy: Busy,
}

impl<'a> Holds<'a> {
    fn trace(fixture: &Fixture, control: &'a Control) -> Holds<'a> {
        let busy = Busy::start(fixture);
        let reader = control.start_trace(Level::Slices, 0).unwrap();
        Holds { control, reader, events: Vec::new(), _busy: busy }
    }

    /// Waits until the server holds this client. Returns when, and until when at most.
    fn wait_for_hold(&mut self, base: u32) -> (Time, Time) {
        let mut found = None;
        wait_for("the client is held", SOON, || {
            self.events.extend(read(&mut self.reader));
            found = self.events.iter().find_map(|event| match event.what {
                Entry::Paced { client, until } if client == id_of(&self.events, base) => Some((event.at, until)),
                _ => None,
            });
            found.is_some()
        });
        found.unwrap()
    }

    /// Returns true if the server's clock has not reached this time.
    fn is_before(&self, time: Time) -> bool {
        self.control.clients().unwrap().now_ns < time.0
    }

    /// Checks by the server's clock that a held client was served as soon as its request had arrived and its hold was
    /// over. `end_of` returns the end of the hold that an event causes.
    fn check_end(&mut self, base: u32, arrived: Time, end_of: impl Fn(&Event) -> Option<Time>) {
        let (held, limit) = self.wait_for_hold(base);
        let id = id_of(&self.events, base);
        let mut next = None;
        wait_for("the slice has ended", SOON, || {
            self.events.extend(read(&mut self.reader));
            next = slices(&self.events).find(|slice| slice.client == id && slice.start >= held);
            next.is_some()
        });
        let ended = self.events.iter().filter(|event| event.at >= held).find_map(end_of);
        let (served, could) = (next.unwrap().start, ended.map_or(limit, |ended| ended.min(limit)));
        assert!(served >= could, "held from {held:?} to {could:?}, and served at {served:?}");
        let since = could.max(arrived);
        let others = slices(&self.events).filter(|slice| slice.start > since && slice.start < served).count();
        assert!(others <= 2, "{others} slices of others from {since:?} to {served:?}");
    }
}

fn slices(events: &[Event]) -> impl Iterator<Item = Service> {
    events.iter().filter_map(|event| match event.what {
        Entry::Fact(Fact::Served(service)) => Some(service),
        _ => None,
    })
}

/// Repeats an attempt until one has ended within the limit, counted from the instant that it returns. An attempt proves
/// nothing if a process had no processor for that long.
fn wait_for_quick(what: &str, mut one_try: impl FnMut() -> Instant) {
    wait_for(&format!("{what} before the limit"), SOON, || one_try().elapsed() < LIMIT);
}

#[test]
fn a_client_that_uncovers_another_waits_until_that_has_redrawn() {
    let _turn = alone();
    for policy in [PolicyKind::Fair, PolicyKind::Stock] {
        let fixture = xvfb_with(policy);
        let control = fixture.control().unwrap();
        let (painter, mover) = painter_and_mover(&fixture);
        control.set_pacing(1_000_000, 1_000_000).unwrap();
        let mut holds = Holds::trace(&fixture, &control);
        mover.move_to(200);
        painter.wait_for_expose();
        let (held, limit) = holds.wait_for_hold(mover.base());
        assert_eq!(limit.since(held), 1_000_000_000);
        let (reply, arrived) = mover.ask(&control);
        let report = control.pacing().unwrap();
        if holds.is_before(limit) {
            assert_eq!((report.exposing, report.paced, report.limit_us), (1, 1, 1_000_000));
        }
        painter.draw();
        reply.reply().unwrap();
        let id = id_of(&holds.events, painter.base());
        holds.check_end(mover.base(), arrived, |event| match event.what {
            Entry::Fact(Fact::Served(Service { client, still_ready: false, .. })) if client == id => {
                Some(event.at.after(SETTLING_NS))
            }
            _ => None,
        });
        let report = control.pacing().unwrap();
        assert_eq!((report.exposing, report.paced), (0, 0));
        assert!(report.holds >= 1);
    }
}

#[test]
fn a_client_that_does_not_answer_delays_others_up_to_the_limit() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    control.set_pacing(60_000, 1_000_000).unwrap();
    let (painter, mover) = painter_and_mover(&fixture);
    let asked = Instant::now();
    mover.move_to(200);
    // With the libc host, one slice serves requests that arrive together, so send the next one after the Expose.
    painter.wait_for_expose();
    mover.answer_time();
    let waited = asked.elapsed();
    assert!(waited >= Duration::from_millis(55), "{waited:?}");
}

#[test]
fn the_floor_releases_a_mover_before_the_limit() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let (painter, mover) = painter_and_mover(&fixture);
    control.set_pacing(1_000_000, 20_000).unwrap();
    let mut holds = Holds::trace(&fixture, &control);
    mover.move_to(200);
    painter.wait_for_expose();
    let (reply, arrived) = mover.ask(&control);
    let (held, end) = holds.wait_for_hold(mover.base());
    assert!(end.since(held) <= 20_000_000, "held from {held:?} to {end:?}");
    reply.reply().unwrap();
    holds.check_end(mover.base(), arrived, |_| None);
}

#[test]
fn neither_reserved_clients_nor_grabs_nor_the_default_wait_for_an_expose() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let (painter, mover) = painter_and_mover(&fixture);
    let holds = || control.pacing().unwrap().holds;
    let move_away = || {
        mover.move_to(200);
        mover.answer_time();
        painter.wait_for_expose();
    };
    move_away();
    assert_eq!(holds(), 0, "off by default");
    mover.move_to(0);
    control.set_pacing(1_000_000, 1_000_000).unwrap();
    mover.answer_time();
    painter.draw();
    control.reserve(mover.base(), 1000, 10_000, false).unwrap();
    let before = holds();
    move_away();
    assert_eq!(holds(), before, "it has a reservation");
    control.release(mover.base()).unwrap();
    let redraw = || {
        painter.draw();
        // A client that was still in an earlier redraw must answer twice.
        painter.answer_time();
        painter.answer_time();
    };
    redraw();
    wait_for_quick("it is served while it holds the server grab", || {
        mover.move_to(0);
        mover.connection.grab_server().unwrap();
        let asked = Instant::now();
        move_away();
        mover.connection.ungrab_server().unwrap();
        mover.connection.flush().unwrap();
        // After the grab, it waits until the painter has redrawn.
        redraw();
        mover.answer_time();
        asked
    });
}

#[test]
fn a_hold_ends_with_the_painter_with_pacing_and_with_the_mover() {
    let _turn = alone();
    let mut fixture = xvfb();
    let control = fixture.control().unwrap();
    for ending in 0..3 {
        let (painter, mover) = painter_and_mover(&fixture);
        control.set_pacing(1_000_000, 1_000_000).unwrap();
        let mut holds = Holds::trace(&fixture, &control);
        mover.move_to(200);
        painter.wait_for_expose();
        holds.wait_for_hold(mover.base());
        let (reply, arrived) = mover.ask(&control);
        let id = id_of(&holds.events, painter.base());
        match ending {
            0 => drop(painter),
            1 => control.set_pacing(0, 50_000).unwrap(),
            _ => {
                // The painter has not answered, and is served nevertheless.
                drop(reply);
                drop(mover);
                painter.answer_time();
                continue;
            }
        }
        reply.reply().unwrap();
        holds.check_end(mover.base(), arrived, |event| match event.what {
            Entry::Fact(Fact::Disconnected { client }) if client == id => Some(event.at),
            Entry::Fact(Fact::Pacing(_)) => Some(event.at),
            _ => None,
        });
    }
    fixture.assert_armed();
}

#[test]
fn listeners_get_events_for_an_expose_and_its_answer() {
    let _turn = alone();
    let fixture = xvfb();
    let control = fixture.control().unwrap();
    let (painter, mover) = painter_and_mover(&fixture);
    control.select_events(event_mask::EXPOSES).unwrap();
    mover.move_to(200);
    painter.wait_for_expose();
    painter.draw();
    let mut reported = Vec::new();
    wait_for("two events", SOON, || {
        reported.extend(control.next_notify().unwrap());
        reported.len() == 2
    });
    let (exposing, answered) = (reported[0], reported[1]);
    assert_eq!((exposing.kind, exposing.client), (NotifyKind::Exposing, painter.base()));
    assert_eq!(exposing.pid, std::process::id() as i32);
    assert_eq!((answered.kind, answered.client), (NotifyKind::Answered, painter.base()));
}

#[test]
fn invalid_pacing_is_refused_and_only_the_owner_may_set_it() {
    let (fixture, control) = served();
    for (limit_us, floor_us) in [(999, 50_000), (1_000_001, 50_000), (25_000, 0), (25_000, u32::MAX)] {
        control.set_pacing(limit_us, floor_us).unwrap_err();
    }
    assert_eq!(control.pacing().unwrap().limit_us, 0);
    assert!(matches!(xqos_abi::Request::parse(&[130, 15, 1, 0], xqos_abi::ByteOrder::NATIVE), Err(Malformed::Length)));
    if !is_not_root() {
        let display = fixture.display().to_owned();
        let refused = as_nobody(move || {
            let control = Control::connect(Some(&display)).ok()??;
            Some((control.set_pacing(25_000, 50_000).is_err(), control.lend_processor(true, 0).is_err()))
        });
        assert!(refused.is_none_or(|refused| refused == (true, true)), "{refused:?}");
    }
}

/// The kernel's scheduling policy for each of the server's threads.
fn policies(fixture: &Fixture) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", fixture.pid())).unwrap();
    let threads = tasks.map(|task| task.unwrap().file_name().to_string_lossy().parse::<i32>().unwrap());
    // SAFETY: the call takes only a number.
    threads.map(|thread| unsafe { libc::sched_getscheduler(thread) } & !libc::SCHED_RESET_ON_FORK).collect()
}

#[test]
fn a_loan_raises_the_server_for_reserved_clients_and_ends_with_the_lender() {
    let _turn = alone();
    let mut fixture = xvfb();
    let lender = fixture.control().unwrap();
    // A loan needs the watcher thread, which runs for the first time soon after the server's start.
    wait_for("all threads have run and wait", SOON, || {
        fixture.switches().unwrap().iter().all(|thread| thread.voluntary > 0)
    });
    if let Err(error) = lender.lend_processor(true, 0) {
        xqos_testkit::left_out(format_args!("this user may not give real-time priorities ({error})"));
        fixture.assert_armed();
        return;
    }
    let mut reserved = fixture.native();
    lender.reserve(reserved.base, 2000, 10_000, false).unwrap();
    let before = lender.processor().unwrap();
    assert!(before.is_lent);
    // The server stays raised between requests that follow each other within the budget.
    wait_for("the server is raised twice", SOON, || {
        reserved.sync();
        lender.processor().unwrap().raises >= before.raises + 2
    });
    // An idle server is lowered at the latest after the length of the budget.
    wait_for("the server is lowered", SOON, || {
        policies(&fixture).iter().filter(|&&policy| policy == libc::SCHED_RR).count() == 1
    });
    drop(lender);
    wait_for("no thread is raised", SOON, || policies(&fixture).iter().all(|&policy| policy == libc::SCHED_OTHER));
    assert!(!fixture.control().unwrap().processor().unwrap().is_lent);
    fixture.assert_armed();
}
