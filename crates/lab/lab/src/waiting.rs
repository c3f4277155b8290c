// SPDX-License-Identifier: MIT
//! A client that waits for a counter of the SYNC extension (Packard 2000, section 1.3).
//!
//! One client awaits the next value of the counter. Another client sets it and asks for a reply. **Released** is the
//! time from setting the counter until the waiting client gets the reply to its next request. **Recognized** is the
//! part of this time after the other client's reply, in which the server only has to notice that the waiting client may
//! continue, and to choose it.

use crate::server::Server;
use anyhow::Result;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::sync::{ConnectionExt as _, Int64, TESTTYPE, Trigger, VALUETYPE, Waitcondition};
use x11rb::protocol::xproto::ConnectionExt as _;

/// Released and recognized, in milliseconds, of this many waits.
pub fn measure(server: &Server, every: Duration, count: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let (setter, waiter) = (server.connect()?, server.connect()?);
    for client in [&setter, &waiter] {
        client.sync_initialize(3, 1)?.reply()?;
    }
    let counter = setter.generate_id()?;
    setter.sync_create_counter(counter, Int64 { hi: 0, lo: 0 })?.check()?;
    let mut both = (Vec::new(), Vec::new());
    for value in 1..=count as u32 {
        let wait_value = Int64 { hi: 0, lo: value };
        let (wait_type, test_type) = (VALUETYPE::ABSOLUTE, TESTTYPE::POSITIVE_COMPARISON);
        let trigger = Trigger { counter, wait_type, wait_value, test_type };
        // Request no event, however far the counter exceeds the value.
        let event_threshold = Int64 { hi: i32::MAX, lo: u32::MAX };
        let before = waiter.get_input_focus()?;
        waiter.sync_await_(&[Waitcondition { trigger, event_threshold }])?;
        let answer = waiter.get_input_focus()?;
        waiter.flush()?;
        // The server sends replies after the client's turn, so it has executed Await.
        before.reply()?;
        std::thread::sleep(every);
        let began = Instant::now();
        setter.sync_set_counter(counter, wait_value)?;
        setter.get_input_focus()?.reply()?;
        let set = began.elapsed();
        answer.reply()?;
        let released = began.elapsed();
        both.0.push(released.as_secs_f64() * 1e3);
        both.1.push((released - set).as_secs_f64() * 1e3);
    }
    Ok(both)
}
