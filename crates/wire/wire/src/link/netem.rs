// SPDX-License-Identifier: MIT
//! Uses the kernel's netem instead of our emulator, on the devices of both sides.
//!
//! Devices and namespaces stay the same. Each side's kernel shapes what it sends, and our loop only forwards packets.
//! The queue is then in the kernel, so there is no log.

use super::Error;
use super::shape::{Queue, Shape};
use std::io::ErrorKind;
use std::process::Command;

/// Packet size used to convert a bound in bytes to netem's bound, which is a number of packets.
const FULL_PACKET_BYTES: u64 = 1500;

/// The `tc` command that sets this shape on the device of its namespace.
pub fn command(shape: &Shape) -> Command {
    let mut command = Command::new("tc");
    command.args(["qdisc", "add", "dev", "link0", "root", "netem"]);
    command.args(arguments(shape));
    command
}

fn arguments(shape: &Shape) -> Vec<String> {
    let mut arguments = vec!["limit".to_owned(), packets(shape).to_string()];
    let mut add = |words: [String; 2]| arguments.extend(words);
    if let Some(rate) = shape.rate {
        add(["rate".to_owned(), format!("{rate}bit")]);
    }
    if shape.delay_ns > 0 || shape.jitter_ns > 0 {
        add(["delay".to_owned(), format!("{}us", shape.delay_ns / 1000)]);
    }
    if shape.jitter_ns > 0 {
        arguments.push(format!("{}us", shape.jitter_ns / 1000));
    }
    if shape.loss_ppm > 0 {
        let percent = format!("{}.{:04}%", shape.loss_ppm / 10_000, shape.loss_ppm % 10_000);
        arguments.extend(["loss".to_owned(), percent]);
    }
    arguments
}

/// Queue bound in packets. netem also counts packets in flight.
fn packets(shape: &Shape) -> u64 {
    let waiting = match shape.queue() {
        Queue::Packets(packets) => packets,
        Queue::Bytes(bytes) => bytes.div_ceil(FULL_PACKET_BYTES),
    };
    // Without a rate, no packet waits: allow the packets in flight at 10 Gb/s.
    let rate = shape.rate.map_or(10_000_000_000, |rate| rate.get());
    let flight_ns = u128::from(shape.delay_ns + shape.jitter_ns);
    let flight_bytes = u128::from(rate) / 8 * flight_ns / 1_000_000_000;
    waiting + (flight_bytes as u64).div_ceil(FULL_PACKET_BYTES) + 1
}

/// Runs the command and explains a failure.
pub fn set(mut command: Command) -> Result<(), Error> {
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Netem("tc is not installed: install iproute2".to_owned()),
        _ => Error::Netem(format!("cannot run tc: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    Err(Error::Netem(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    #[test]
    fn a_shape_becomes_tc_arguments() {
        let shape = Shape {
            rate: NonZeroU64::new(10_000_000),
            delay_ns: 10_000_000,
            jitter_ns: 500_000,
            queue: Some(Queue::Packets(50)),
            loss_ppm: 1000,
        };
        let words = arguments(&shape).join(" ");
        assert_eq!(words, "limit 60 rate 10000000bit delay 10000us 500us loss 0.1000%");
        let plain = Shape { queue: Some(Queue::Bytes(3000)), ..Shape::default() };
        assert_eq!(arguments(&plain).join(" "), "limit 3");
    }
}
