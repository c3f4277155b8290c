// SPDX-License-Identifier: MIT
//! Detects whether anybody is viewing a display whose server exports it to other machines: an Xvnc, or an Xorg of xrdp.
//!
//! Viewers are established connections to the server's listening sockets, except those of X11 and xqos. A server
//! without other sockets counts as watched. The user that runs the server can read all of this from /proc.
//!
//! | result | the display is | next check |
//! |---|---|---|
//! | the server's sockets are not accessible | unknown | after [`WATCHED`] |
//! | the server has no socket for viewers | watched | never: a server decides at its start where it listens |
//! | a viewer | watched | after [`WATCHED`] |
//! | no viewer for less than the limit | watched | after [`WATCHED`], or when the limit expires |
//! | no viewer for longer | unwatched | after [`UNWATCHED`], so that a cap is lifted soon after a viewer connects |
//!
//! All times are on the monotonic clock.

use crate::session::Session;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;
use xqos_abi::control;
use xqos_client::number_of;
use xqos_sys::proc;
use xqos_sys::sockets::{TcpSocket, UnixSocket, tcp, unix};

/// Absences are measured in minutes, so this is often enough.
const WATCHED: Duration = Duration::from_secs(5);
/// A viewer authenticates before it draws, so this delay is not visible.
const UNWATCHED: Duration = Duration::from_millis(500);
/// TCP port of display 0 (X11, "Connection setup").
const X11_PORT: u32 = 6000;
const X11_SOCKETS: &str = "/tmp/.X11-unix/X";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewers {
    NotKnown,
    /// The server exports the display to no other machine.
    NotOffered,
    Some(usize),
}

#[derive(Debug)]
pub struct Absence {
    limit: Duration,
    /// Time and result of the last check.
    seen: Option<(Duration, Viewers)>,
    since: Option<Duration>,
}

impl Absence {
    /// `limit`: duration of an absence after which the display counts as unwatched.
    pub fn new(limit: Duration) -> Absence {
        Absence { limit, seen: None, since: None }
    }

    pub fn record(&mut self, now: Duration, viewers: Viewers) {
        self.seen = Some((now, viewers));
        self.since = (viewers == Viewers::Some(0)).then(|| self.since.unwrap_or(now));
    }

    /// `None` if it is unknown.
    pub fn is_unwatched(&self) -> Option<bool> {
        match self.seen? {
            (_, Viewers::NotKnown) => None,
            (now, _) => Some(self.since.is_some_and(|since| now.saturating_sub(since) >= self.limit)),
        }
    }

    /// Time until the next check; `None` if no further check is needed.
    pub fn until_check(&self, now: Duration) -> Option<Duration> {
        let Some((seen, viewers)) = self.seen else { return Some(Duration::ZERO) };
        let rest = match (viewers, self.since) {
            (Viewers::NotOffered, _) => return None,
            (_, Some(_)) if self.is_unwatched() == Some(true) => UNWATCHED,
            (_, Some(since)) => WATCHED.min((since + self.limit).saturating_sub(seen)),
            _ => WATCHED,
        };
        Some((seen + rest).saturating_sub(now))
    }
}

/// Result of a single check. Without a viewer, the result is unknown, because the absence may be short.
pub fn unwatched_now(session: &Session) -> Option<bool> {
    match of_server(session) {
        Viewers::NotKnown | Viewers::Some(0) => None,
        Viewers::NotOffered | Viewers::Some(_) => Some(false),
    }
}

pub fn of_server(session: &Session) -> Viewers {
    let number = number_of(Some(&session.display));
    let (Some(number), Ok(info)) = (number, session.control.server_info()) else { return Viewers::NotKnown };
    of_process(info.server_pid, number).unwrap_or(Viewers::NotKnown)
}

/// `None` if the process belongs to another user or has ended.
fn of_process(pid: u32, display: u32) -> Option<Viewers> {
    let pid = pid as i32;
    let own = Some(proc::sockets(pid)).filter(|own| !own.is_empty())?;
    let user = proc::owner(pid).ok()?;
    let control =
        control::paths(display, user).iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let (tcp, unix) = (tcp(pid).unwrap_or_default(), unix(pid).unwrap_or_default());
    let counts = [tcp_viewers(&tcp, &own, display), unix_viewers(&unix, &own, &control)];
    let offered: Vec<usize> = counts.into_iter().flatten().collect();
    Some(if offered.is_empty() { Viewers::NotOffered } else { Viewers::Some(offered.into_iter().sum()) })
}

/// Number of connections to the server's listening ports; `None` if it listens only on X11's port.
fn tcp_viewers(sockets: &[TcpSocket], own: &HashSet<u64>, display: u32) -> Option<usize> {
    let own = || sockets.iter().filter(|socket| own.contains(&socket.inode));
    let is_offer = |socket: &&TcpSocket| socket.listens && u32::from(socket.port) != X11_PORT + display;
    let ports: BTreeSet<u16> = own().filter(is_offer).map(|socket| socket.port).collect();
    (!ports.is_empty()).then(|| own().filter(|socket| socket.is_connected && ports.contains(&socket.port)).count())
}

/// Like [`tcp_viewers`], for Unix sockets, which xrdp and `-rfbunixpath` use.
fn unix_viewers(sockets: &[UnixSocket], own: &HashSet<u64>, control: &[String]) -> Option<usize> {
    let own = || sockets.iter().filter(|socket| own.contains(&socket.inode));
    let is_x11 = |path: &str| path.trim_start_matches('@').starts_with(X11_SOCKETS);
    let is_offer = |socket: &&UnixSocket| socket.listens && !is_x11(&socket.path) && !control.contains(&socket.path);
    let paths: BTreeSet<&str> = own().filter(is_offer).map(|socket| socket.path.as_str()).collect();
    let is_viewer = |socket: &&UnixSocket| socket.is_connected && paths.contains(socket.path.as_str());
    (!paths.is_empty()).then(|| own().filter(is_viewer).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_sys::sockets::{parse_tcp, parse_unix};

    const LISTENS: &str = "0A";
    const ESTABLISHED: &str = "01";
    const LIMIT: Duration = Duration::from_secs(60);

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_display_becomes_unwatched_after_the_limit_and_watched_with_a_viewer() {
        let mut absence = Absence::new(LIMIT);
        assert_eq!((absence.is_unwatched(), absence.until_check(at(3.0))), (None, Some(Duration::ZERO)));
        let (mut now, mut checks) = (at(10.0), 0);
        loop {
            absence.record(now, Viewers::Some(0));
            checks += 1;
            if absence.is_unwatched() == Some(true) {
                break;
            }
            now += absence.until_check(now).unwrap();
        }
        assert_eq!((now, checks), (at(70.0), 13));
        assert_eq!(absence.until_check(now), Some(UNWATCHED), "a viewer is seen soon");
        absence.record(at(70.5), Viewers::Some(1));
        assert_eq!((absence.is_unwatched(), absence.until_check(at(71.5))), (Some(false), Some(at(4.0))));
        absence.record(at(75.0), Viewers::Some(0));
        absence.record(at(134.9), Viewers::Some(0));
        assert_eq!(absence.is_unwatched(), Some(false), "the minute starts again");
        assert!(absence.until_check(at(134.9)).unwrap() <= at(0.11));
    }

    #[test]
    fn a_display_without_sockets_is_watched_and_a_hidden_one_unknown() {
        let mut absence = Absence::new(LIMIT);
        absence.record(at(1.0), Viewers::NotOffered);
        assert_eq!((absence.is_unwatched(), absence.until_check(at(999.0))), (Some(false), None));
        absence.record(at(2.0), Viewers::NotKnown);
        assert_eq!((absence.is_unwatched(), absence.until_check(at(2.0))), (None, Some(WATCHED)));
        // An unknown state does not count as an absence.
        absence.record(at(90.0), Viewers::Some(0));
        assert_eq!(absence.is_unwatched(), Some(false));
    }

    #[test]
    fn tcp_viewers_are_connections_to_the_servers_ports() {
        let line = |local: &str, state: &str, inode: u32| {
            format!(
                "   0: 0100007F:{local} 0100007F:9999 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1\n"
            )
        };
        let own = HashSet::from([1, 2, 3, 4]);
        let x11 = line("1777", LISTENS, 1) + &line("1777", ESTABLISHED, 2);
        assert_eq!(tcp_viewers(&parse_tcp(&x11), &own, 7), None, "6007 is X11's");
        let offered = x11 + &line("170D", LISTENS, 3);
        assert_eq!(tcp_viewers(&parse_tcp(&offered), &own, 7), Some(0));
        assert_eq!(
            tcp_viewers(&parse_tcp(&(offered.clone() + &line("170D", ESTABLISHED, 99))), &own, 7),
            Some(0),
            "this is the viewer's end"
        );
        assert_eq!(tcp_viewers(&parse_tcp(&(offered + &line("170D", ESTABLISHED, 4))), &own, 7), Some(1));
        assert_eq!(tcp_viewers(&parse_tcp("  sl  local_address rem_address   st\nrubbish\n"), &own, 7), None);
    }

    #[test]
    fn unix_viewers_are_distinguished_from_clients() {
        let line = |flags: &str, state: &str, inode: u32, path: &str| {
            format!("0000000000000000: 00000002 00000000 {flags} 0001 {state} {inode} {path}\n")
        };
        let own = HashSet::from([1, 2, 3, 4, 5]);
        let control = ["/run/user/1000/xqos/7.socket".to_owned()];
        let of_x11 = line("00010000", "01", 1, "@/tmp/.X11-unix/X7") + &line("00000000", "03", 2, "@/tmp/.X11-unix/X7");
        let of_xqos = line("00010000", "01", 3, &control[0]) + &line("00000000", "03", 4, &control[0]);
        let both = of_x11 + &of_xqos;
        assert_eq!(unix_viewers(&parse_unix(&both), &own, &control), None);
        let offered = both + &line("00010000", "01", 4, "/run/xrdp/sockdir/xrdp_display_7");
        assert_eq!(unix_viewers(&parse_unix(&offered), &own, &control), Some(0));
        let viewed = offered + &line("00000000", "03", 5, "/run/xrdp/sockdir/xrdp_display_7");
        assert_eq!(unix_viewers(&parse_unix(&viewed), &own, &control), Some(1));
    }
}
