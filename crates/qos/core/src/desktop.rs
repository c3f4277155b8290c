// SPDX-License-Identifier: MIT
//! The desktop rule: compositors and window managers are served first, one turn per frame.
//!
//! A compositing manager builds the screen from what all other clients have drawn; a window manager places their
//! windows. While one of them waits, every client's output is late, so an equal share per connection delays the whole
//! screen. A compositor also makes many round trips per frame (picom: at least one per damaged window). In the
//! meantime, other clients draw and cause more round trips. A compositor served once per round might never get to
//! paint. The rule follows bandwidth inheritance (Lamastra, Lipari, Abeni, RTSS 2001): a client that others wait for
//! runs in their place, and they pay for it.
//!
//! - **Turns.** A desktop client that becomes ready begins a turn. It is served before all best-effort clients of its
//!   SYNC priority or lower, and its arrival ends their slices at the next request boundary. When it has no request
//!   left, the server waits [`WAIT_NS`] for the next one and serves no other client. If none arrives, the turn ends.
//! - **Limit.** Service time and these waits count as used. A turn uses at most `share` of [`FRAME_NS`], plus the
//!   request in progress. The next turn begins (time used) / `share` after this one began; until then other clients are
//!   served first. Under contention desktop clients thus get at most `share` of any interval, plus one turn and one
//!   request. After a turn that was not cut short, others are also served first until [`DEFERRAL_FACTOR`] times the
//!   time used (at most two frames) has passed since the turn began. Above 30 frames per second this leaves 90 % to
//!   others.
//! - **Window managers.** All window managers together get [`MANAGERS_NS`] per turn, which is enough to place a window;
//!   after that the turn ends. A window manager and a client that answer each other endlessly thus delay other clients
//!   by no more than a slice.
//! - **Called turns.** A client counts as rested once it has been idle for half a frame or has received input. When a
//!   request of such a client causes an event for a desktop client, the next [`CALLED_TURNS`] turns begin as early as
//!   the limit allows: a person is probably waiting for the result. Each idle period or input counts once.
//! - **Accounting.** A compositor works for all clients: its turns are charged to no account, so the other clients are
//!   served as fairly and in the same order as on a server without a compositor. A window manager works for one client
//!   at a time, the last one whose request caused an event for it, and that client pays. Keeping a window manager busy
//!   therefore gives a client no more than its share.
//! - Among desktop clients, the one that has waited longest is served first.
//!
//! Reservations are above the rule: a client with a reservation is served before desktop clients, and a desktop client
//! with a reservation uses its reservation first. The rule applies only under `fair`. `classic` and `smart` reproduce
//! historical schedulers, and under `fixed` the user sets the priorities.

use crate::heap::Heap;
use crate::setting::DESKTOP;
use crate::{ClientId, Time};
use alloc::vec::Vec;

/// The length of a frame: 1/60 s, as on most screens.
pub const FRAME_NS: u64 = 16_666_667;
/// The time for which the server waits for a desktop client's next request. 0.1 ms was too short for picom on a loaded
/// machine with two processors; 0.2 and 0.4 ms gave the same result as 0.3 ms.
pub const WAIT_NS: u64 = 300_000;
/// The number of turns that the work of a rested client may need: one for earlier requests, one to query the damage,
/// one to paint it (xfwm4 paints about 1 ms later).
pub const CALLED_TURNS: u8 = 3;
/// The maximum server time of all window managers in one turn.
pub const MANAGERS_NS: u64 = 3_000_000;
/// The shortest interval between the beginnings of two called turns.
pub const CALLED_GAP_NS: u64 = 1_000_000;
/// The next turn is deferred by this multiple of a turn's length, but by two frames at most.
pub const DEFERRAL_FACTOR: u64 = 10;
/// A client that was idle for this long counts as rested: a person is probably waiting for what it draws next.
pub const RESTED_NS: u64 = FRAME_NS / 2;
/// The default limit: a third of the server remains for other clients.
pub const DEFAULT_SHARE_PPM: u32 = DESKTOP.initial;
/// The largest limit: a tenth of the server remains for other clients.
pub const MAX_SHARE_PPM: u32 = DESKTOP.most;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// It owns the selection `_NET_WM_CM_Sn` of a screen.
    pub compositor: bool,
    /// It owns the selection `WM_Sn` of a screen, or redirects the top-level windows of a screen.
    pub window_manager: bool,
}

impl Role {
    /// An ordinary client.
    pub const NONE: Role = Role { compositor: false, window_manager: false };

    /// True for a compositor or window manager.
    pub fn is_any(self) -> bool {
        self != Role::NONE
    }

    /// The encoding in records and in the protocol: bit 0 compositor, bit 1 window manager.
    pub fn bits(self) -> u8 {
        u8::from(self.compositor) | (u8::from(self.window_manager) << 1)
    }

    /// Decodes these bits; other bits are ignored.
    pub fn from_bits(bits: u8) -> Role {
        Role { compositor: bits & 1 != 0, window_manager: bits & 2 != 0 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) began: Time,
    /// The end of its last slice.
    pub(crate) served: Time,
    /// Service time and waits.
    pub(crate) used_ns: u64,
    /// Service time of window managers that are not compositors; part of `used_ns`.
    pub(crate) managers_ns: u64,
    /// The number of following turns that are not deferred, because a rested client has caused work.
    pub(crate) calls: u8,
}

/// The desktop clients of a server and their turns.
#[derive(Debug)]
pub(crate) struct Desktop {
    /// The largest share of the server under contention, in millionths; 0: the rule is off.
    pub(crate) share_ppm: u32,
    pub(crate) turn: Option<Turn>,
    /// Clients with a role, in no particular order.
    pub(crate) members: Vec<ClientId>,
    /// Desktop clients that wait for service, by SYNC priority, then longest wait first.
    pub(crate) ready: Heap<(i64, Time)>,
}

impl Desktop {
    pub(crate) fn new() -> Desktop {
        Desktop { share_ppm: DEFAULT_SHARE_PPM, turn: None, members: Vec::new(), ready: Heap::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.share_ppm > 0
    }

    /// The time from which desktop clients are served first: within a turn, `now`; otherwise the beginning of the next
    /// turn.
    pub(crate) fn turn_from(&self, now: Time) -> Time {
        match self.turn {
            Some(turn) if !self.is_open(&turn, now) => now.max(self.next(&turn)),
            _ => now,
        }
    }

    /// The time left for a client with this role in the current turn, or in one that begins now.
    pub(crate) fn left_ns(&self, now: Time, role: Role) -> u64 {
        let turn = self.turn.filter(|turn| self.is_open(turn, now)).unwrap_or_default();
        let left_ns = self.most_ns() - turn.used_ns;
        if role.compositor { left_ns } else { left_ns.min(MANAGERS_NS - turn.managers_ns) }
    }

    /// The time until which the server waits for the next request of a client that was served in this turn.
    pub(crate) fn waits_until(&self, now: Time) -> Option<Time> {
        let turn = self.turn.filter(|turn| self.is_open(turn, now))?;
        let until = turn.served.after(WAIT_NS.min(self.most_ns() - turn.used_ns));
        (now < until).then_some(until)
    }

    /// Records a slice of a desktop client; `others_wait`: other clients are waiting now. If none waits, the slice does
    /// not count, unless a window manager used up its part of the turn; in that case, clients that became ready in the
    /// meantime are served first.
    pub(crate) fn served(&mut self, role: Role, (start, end): (Time, Time), others_wait: bool) {
        let is_all = !role.compositor && end.since(start) >= MANAGERS_NS;
        let was_alone = !others_wait || self.turn_from(start) > start;
        if was_alone && !is_all {
            return;
        }
        let open = self.turn.filter(|turn| self.is_open(turn, start));
        let calls = self.turn.map_or(0, |turn| turn.calls.saturating_sub(1));
        let mut turn = open.unwrap_or(Turn { began: start, served: start, calls, ..Turn::default() });
        let waited_ns = start.since(turn.served).min(WAIT_NS);
        turn.used_ns = turn.used_ns.saturating_add(waited_ns).saturating_add(end.since(start));
        if !role.compositor {
            turn.managers_ns = turn.managers_ns.saturating_add(end.since(start)).min(MANAGERS_NS);
        }
        turn.served = end;
        self.turn = Some(turn);
    }

    /// Records that a rested client caused work for a desktop client.
    pub(crate) fn called(&mut self) {
        if let Some(turn) = self.turn.as_mut() {
            turn.calls = CALLED_TURNS;
        }
    }

    fn most_ns(&self) -> u64 {
        FRAME_NS * u64::from(self.share_ppm) / 1_000_000
    }

    fn is_open(&self, turn: &Turn, now: Time) -> bool {
        now < turn.served.after(WAIT_NS) && !self.is_used_up(turn)
    }

    fn is_used_up(&self, turn: &Turn) -> bool {
        turn.used_ns >= self.most_ns() || turn.managers_ns >= MANAGERS_NS
    }

    /// The earliest beginning of the next turn.
    fn next(&self, turn: &Turn) -> Time {
        let used_ns = turn.used_ns.saturating_add(WAIT_NS);
        let paid_ns = u128::from(used_ns) * 1_000_000 / u128::from(self.share_ppm.max(1));
        let deferred_ns = match turn.calls {
            0 if !self.is_used_up(turn) => used_ns.saturating_mul(DEFERRAL_FACTOR).min(2 * FRAME_NS),
            0 => 0,
            _ => CALLED_GAP_NS,
        };
        turn.began.after(u64::try_from(paid_ns).unwrap_or(u64::MAX).max(deferred_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const COMPOSITOR: Role = Role { compositor: true, window_manager: true };
    const MANAGER: Role = Role { compositor: false, window_manager: true };

    fn at(us: u64) -> Time {
        Time(100 * MS + us * 1000)
    }

    #[test]
    fn a_turn_lasts_while_requests_arrive_and_delays_the_next_one() {
        let mut desktop = Desktop { share_ppm: 500_000, ..Desktop::new() };
        assert_eq!(desktop.turn_from(at(0)), at(0));
        desktop.served(COMPOSITOR, (at(0), at(50)), true);
        assert_eq!((desktop.waits_until(at(60)), desktop.waits_until(at(350))), (Some(at(350)), None));
        assert_eq!(desktop.turn_from(at(340)), at(340), "the turn goes on");
        desktop.served(COMPOSITOR, (at(250), at(1200)), true);
        assert_eq!(desktop.turn.map(|turn| turn.used_ns), Some(1_200_000), "two slices and a wait");
        assert_eq!(desktop.turn_from(at(1600)), at(15_000), "ten times as long, with the wait at its end");
        desktop.served(COMPOSITOR, (at(5000), at(6000)), true);
        assert_eq!(desktop.turn.map(|turn| turn.began), Some(at(0)), "no other client was ready");
        desktop.called();
        assert_eq!(desktop.turn_from(at(1600)), at(3000), "twice as long");
        for (began_us, next_us) in [(3000, 4000), (4000, 5000), (5000, 8100)] {
            desktop.served(COMPOSITOR, (at(began_us), at(began_us + 10)), true);
            assert_eq!(desktop.turn_from(at(began_us + 400)), at(next_us), "three turns are called");
        }
    }

    #[test]
    fn a_turn_that_reaches_the_limit_is_cut_short() {
        let mut desktop = Desktop { share_ppm: 500_000, ..Desktop::new() };
        assert_eq!(desktop.left_ns(at(0), COMPOSITOR), FRAME_NS / 2);
        desktop.served(COMPOSITOR, (at(0), at(5000)), true);
        assert_eq!(desktop.left_ns(at(5000), COMPOSITOR), FRAME_NS / 2 - 5 * MS);
        desktop.served(COMPOSITOR, (at(5000), at(40_000)), true);
        assert_eq!((desktop.waits_until(at(40_000)), desktop.turn_from(at(40_000))), (None, at(80_600)));
        desktop.called();
        assert_eq!(desktop.turn_from(at(40_000)), at(80_600), "a rested client does not change the limit");
        desktop.served(COMPOSITOR, (Time(u64::MAX - 1), Time::NEVER), true);
        assert_eq!(desktop.turn_from(Time::NEVER), Time::NEVER, "no overflow");
    }

    #[test]
    fn costly_frames_are_served_less_often_down_to_every_second_one() {
        let rest_after = |length_us: u64| {
            let mut desktop = Desktop::new();
            desktop.served(COMPOSITOR, (at(0), at(length_us)), true);
            desktop.turn_from(at(length_us + 2000)).since(at(0))
        };
        assert_eq!([700, 2000, 5000].map(rest_after), [10 * MS, 23 * MS, 2 * FRAME_NS]);
    }

    #[test]
    fn window_managers_use_up_a_turn_sooner_than_compositors() {
        let mut desktop = Desktop { share_ppm: 500_000, ..Desktop::new() };
        desktop.served(COMPOSITOR, (at(0), at(4000)), true);
        desktop.served(MANAGER, (at(4000), at(6000)), true);
        assert_eq!((desktop.left_ns(at(6000), MANAGER), desktop.turn_from(at(6000))), (MS, at(6000)));
        desktop.served(MANAGER, (at(6000), at(7000)), true);
        assert_eq!(desktop.turn_from(at(7000)), at(14_600), "the turn has ended and delays the next one as usual");
        assert_eq!(desktop.left_ns(at(14_600), MANAGER), MANAGERS_NS);
        desktop.served(MANAGER, (at(20_000), at(22_000)), false);
        assert_eq!(desktop.turn_from(at(22_000)), at(22_000), "no client waited for it");
        desktop.served(MANAGER, (at(30_000), at(33_000)), false);
        assert_eq!(desktop.turn_from(at(33_000)), at(36_600), "a client may have become ready meanwhile");
    }
}
