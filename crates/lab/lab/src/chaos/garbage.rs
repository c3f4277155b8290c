// SPDX-License-Identifier: MIT
//! Sends invalid bytes, each time on a separate connection.

use super::op::Target;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use xqos_abi::{REQUESTS, control};
use xqos_sim::Dice;

/// GrabServer, ChangeHosts, SetAccessControl, SetCloseDownMode and KillClient can shut out other clients, and
/// SetFontPath can take away their fonts.
const LEFT_OUT: [u8; 6] = [36, 51, 109, 111, 112, 113];
/// Opcodes of the core protocol are smaller.
const FIRST_EXTENSION: u64 = 128;
/// The request that sets priorities and caps. With random values it could leave other clients without service.
const LEFT_OUT_OF_OURS: &str = "Set";
/// A server that waits for the rest of a request may stop reading, so writes need a timeout.
const PATIENCE: Duration = Duration::from_millis(50);

/// Sends up to this many bytes. A missing or closed socket is not a failure.
pub(super) fn send(target: Target, display: u32, major: u8, (bytes, seed): (usize, u64)) {
    let mut dice = Dice::new(seed);
    for path in paths(target, display) {
        let Ok(stream) = UnixStream::connect(path) else { continue };
        // All errors from here on are valid reactions to garbage.
        let _ = talk(stream, target, major, (&mut dice, bytes));
        return;
    }
}

fn paths(target: Target, display: u32) -> Vec<PathBuf> {
    match target {
        Target::Control => control::paths(display, xqos_sys::effective_ids().0),
        _ => vec![format!("/tmp/.X11-unix/X{display}").into()],
    }
}

fn talk(mut stream: UnixStream, target: Target, major: u8, (dice, bytes): (&mut Dice, usize)) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if matches!(target, Target::Core | Target::Extension) {
        stream.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        // Read as much of the server's answer as has arrived.
        let _ = stream.read(&mut [0; 65_536])?;
    }
    let mut sent = 0;
    while sent < bytes {
        let piece = match target {
            Target::Setup | Target::Control => (0..1 + dice.below(64)).map(|_| dice.below(256) as u8).collect(),
            Target::Core => request(dice, core_major),
            Target::Extension => request(dice, |dice| (major, extension_minor(dice))),
        };
        stream.write_all(&piece)?;
        sent += piece.len();
    }
    // Read all answers, because a full socket would block the server.
    while stream.read(&mut [0; 65_536])? > 0 {}
    Ok(())
}

fn core_major(dice: &mut Dice) -> (u8, u8) {
    const NO_OPERATION: u8 = 127;
    let major = dice.below(FIRST_EXTENSION) as u8;
    let major = if LEFT_OUT.contains(&major) || major == 0 { NO_OPERATION } else { major };
    (major, dice.below(256) as u8)
}

fn extension_minor(dice: &mut Dice) -> u8 {
    // One more than the number of requests, to include an unknown request.
    let minor = dice.below(REQUESTS.len() as u64 + 1) as usize;
    let is_left_out = REQUESTS.get(minor).is_some_and(|&(name, _)| name == LEFT_OUT_OF_OURS);
    if is_left_out { 0 } else { minor as u8 }
}

/// A request whose length field is usually correct and whose words are sometimes valid.
fn request(dice: &mut Dice, opcodes: impl Fn(&mut Dice) -> (u8, u8)) -> Vec<u8> {
    let (major, minor) = opcodes(dice);
    let units = 1 + dice.below(12) as u16;
    let length = if dice.below(20) == 0 { dice.below(65_536) as u16 } else { units };
    let mut request = vec![major, minor];
    request.extend(length.to_le_bytes());
    for _ in 1..units {
        let word = match dice.below(4) {
            0 => dice.below(8),
            1 => dice.below(2_000),
            2 => (1 + dice.below(8)) << 21,
            _ => dice.below(1 << 32),
        };
        request.extend((word as u32).to_le_bytes());
    }
    request
}
