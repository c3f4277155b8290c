// SPDX-License-Identifier: MIT
//! Decides how much a client's read may return, and when the running slice is over.
//!
//! | the server reads from | the read returns |
//! |---|---|
//! | a client that was not chosen | EAGAIN |
//! | the running client, after the end of its slice | EAGAIN |
//! | a client that is being set up | all available data |
//! | a client with cheap requests | all available data |
//! | a client with expensive requests | complete requests worth one chunk of time, but at least one request |
//! | a client with an incomplete request | at most the rest of this request |

use super::framing::frame;
use super::{Libc, MIN_PEEK_BYTES};
use crate::host::kernel::now;
use crate::host::real_libc;
use crate::mechanism::early_end::EarlyEndAction;
use std::os::fd::RawFd;
use xqos_core::{ClientId, Time};
use xqos_x11::ByteOrder;

/// The minimum time between two checks for arrivals.
const ARRIVAL_CHECK_NS: u64 = 50_000;
/// The maximum number of requests counted in one read. Any further requests are estimated, unless a trace is running.
const COUNTED_REQUESTS: u32 = 32;
/// The maximum number of bytes to peek at. The server's buffer for a client's requests is never larger.
const MAX_BUFFER_BYTES: usize = 65_536;

impl Libc {
    /// Called before a client's read. Returns the maximum number of bytes; `None` if it is not the client's turn.
    pub fn before_read(&mut self, id: ClientId, fd: RawFd, wanted: usize) -> Option<usize> {
        let now = now();
        self.measure(now);
        let is_first = self.running.chunks == 0;
        if self.known(id)?.is_set_up() {
            let is_chosen = self.running.chosen.is_none_or(|chosen| chosen == id);
            if !is_chosen || (!is_first && self.is_over(now)) {
                return None;
            }
        } else if self.buffer_bytes == 0 && wanted <= MAX_BUFFER_BYTES {
            // The buffer already holds a request header that the server has made up, so the first read is smaller.
            self.buffer_bytes = wanted.next_multiple_of(1024);
        }
        self.running.reader = Some(id);
        let (buffer_bytes, chunk_ns) = (self.buffer_bytes, self.chunk_ns);
        let known = self.known_mut(id)?;
        known.reading = Some(now);
        known.begins_request = known.is_set_up() && (known.at_boundary || wanted == buffer_bytes);
        if known.begins_request {
            let room = known.bytes_in(chunk_ns);
            if room >= wanted {
                return Some(wanted);
            }
            let order = known.order;
            return Some(self.whole_requests(fd, room, wanted, order));
        }
        Some(if known.rest_bytes > 0 { known.rest_bytes.min(wanted) } else { wanted })
    }

    /// The length of the complete requests that fit into `room`; at least one request.
    fn whole_requests(&mut self, fd: RawFd, room: usize, wanted: usize, order: ByteOrder) -> usize {
        let most = room.max(MIN_PEEK_BYTES).min(wanted).min(MAX_BUFFER_BYTES);
        if self.peeked.len() < most {
            self.peeked.resize(most, 0);
        }
        let seen = real_libc::peek(fd, &mut self.peeked[..most]);
        let stream = &self.peeked[..seen];
        let in_room = frame(&stream[..room.min(seen)], order, u32::MAX);
        let bytes = if in_room.bytes > 0 { in_room.bytes } else { one_request(stream, order) };
        if bytes == 0 { wanted } else { bytes.min(wanted) }
    }

    /// Called after a client's read. `None`: there are no more data. Empty: the client has closed its connection.
    pub fn after_read(&mut self, id: ClientId, read: Option<&[u8]>) {
        let max_requests = if self.is_traced { u32::MAX } else { COUNTED_REQUESTS };
        let Some(known) = self.known_mut(id) else { return };
        let Some(read) = read.filter(|read| !read.is_empty()) else {
            (known.pending, known.reading) = (false, None);
            return;
        };
        known.last_bytes = read.len();
        let (mut requests, mut last_request) = (0, None);
        if !known.is_set_up() {
            known.begin_setup(read[0]);
        } else if known.begins_request {
            let found = frame(read, known.order, max_requests);
            let is_whole = found.requests < max_requests;
            let rest = read.len() - found.bytes;
            requests = found.requests;
            known.at_boundary = rest == 0;
            if is_whole {
                known.rest_bytes = found.next_bytes.saturating_sub(rest);
            } else {
                (known.rest_bytes, requests) =
                    (0, (u64::from(requests) * read.len() as u64 / found.bytes as u64) as u32);
            }
            last_request = Some(found.last_request);
        } else if known.rest_bytes > 0 {
            known.rest_bytes = known.rest_bytes.saturating_sub(read.len());
            known.at_boundary = known.rest_bytes == 0;
            requests = u32::from(known.at_boundary);
        }
        let running = &mut self.running;
        running.chunks += 1;
        running.bytes += read.len() as u64;
        running.requests += requests;
        running.last_request = last_request.unwrap_or(running.last_request);
    }

    pub(super) fn measure(&mut self, now: Time) {
        if let Some(known) = self.running.reader.and_then(|id| self.known_mut(id)) {
            known.measure(now);
        }
    }

    fn is_over(&mut self, now: Time) -> bool {
        let Some((_, until)) = self.running.contest else { return self.end };
        if now >= self.ask_at {
            self.ask_at = Time::NEVER;
            let until = if self.running.ended_at.is_some() { Time::NEVER } else { until };
            let verdict = self.early.time_has_come(self.slice, until, now);
            self.carry_out(verdict, now);
        }
        if !self.end && now.since(self.running.checked_at) >= ARRIVAL_CHECK_NS {
            self.running.checked_at = now;
            self.check_arrivals(now);
        }
        self.end
    }

    /// Checks which clients have become ready since the slice began.
    fn check_arrivals(&mut self, now: Time) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let count = real_libc::epoll_wait_now(self.epoll, &mut events);
        let Some((contest, _)) = self.running.contest else { return };
        for event in &events[..count] {
            let (data, bits) = (event.u64, event.events);
            let Some(id) = self.by_data.get(&data).copied() else {
                if self.running.server_may_preempt {
                    let verdict = self.early.server_has_work(self.slice, now);
                    self.carry_out(verdict, now);
                }
                continue;
            };
            let was_idle = self.known(id).is_some_and(|known| !known.pending);
            self.has(id, bits);
            let Some(known) = self.known_mut(id) else { continue };
            let Some(rank) = known.watched.filter(|_| was_idle && known.is_ready()) else { continue };
            // The data may have arrived before the server listened to the client again.
            (known.watched, known.arrived) = (None, known.arrived.or(Some(now)));
            let verdict = self.early.arrived(self.slice, &contest, rank, now);
            self.carry_out(verdict, now);
        }
    }

    fn carry_out(&mut self, verdict: EarlyEndAction, now: Time) {
        match verdict {
            EarlyEndAction::Nothing => {}
            EarlyEndAction::AskAt(at) => self.ask_at = self.ask_at.min(at),
            EarlyEndAction::End => {
                self.running.ended_at.get_or_insert(now);
                self.end = true;
            }
        }
    }
}

/// The length of the first request; 0 if its header is incomplete.
fn one_request(stream: &[u8], order: ByteOrder) -> usize {
    let first = frame(stream, order, 1);
    first.bytes.max(first.next_bytes)
}
