// SPDX-License-Identifier: MIT
//! An absolute pointer device of Xorg's driver `inputtest`. The driver's protocol is one C structure per message
//! (`xf86-input-inputtest-protocol.h`), in the byte order of the machine.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const CLIENT_VERSION: u32 = 0;
const MOTION: u32 = 2;
const VERSION: [u16; 2] = [1, 1];
/// Offsets in a motion: the mask of axes, the values of 64 axes, and the end.
const MASK: usize = 20;
const VALUES: usize = 32;
const END: usize = 1056;
/// The device's axes have this many steps.
const STEPS: f64 = 65_536.0;

/// A connection to the device. The driver accepts one connection per server, and does not notice when it closes.
#[derive(Debug)]
pub struct Device(UnixStream);

impl Device {
    pub(crate) fn connect(socket: &Path) -> Result<Device> {
        let mut stream = UnixStream::connect(socket).context("cannot connect to the server's pointer device")?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let version = VERSION.map(u16::to_ne_bytes).concat();
        stream.write_all(&message(CLIENT_VERSION, &version))?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).context("the server's pointer device does not answer")?;
        if answer[8..10] != VERSION[0].to_ne_bytes() {
            bail!("the server's pointer device has another protocol version");
        }
        Ok(Device(stream))
    }

    pub(super) fn move_to(&self, place: [i16; 2], screen: [u16; 2]) -> Result<Instant> {
        let motion = motion(place, screen);
        let at = Instant::now();
        (&self.0).write_all(&motion)?;
        Ok(at)
    }
}

fn message(kind: u32, body: &[u8]) -> Vec<u8> {
    [&(8 + body.len() as u32).to_ne_bytes(), &kind.to_ne_bytes(), body].concat()
}

/// A motion to the middle of a pixel.
fn motion(place: [i16; 2], screen: [u16; 2]) -> Vec<u8> {
    let mut motion = message(MOTION, &[0; END - 8]);
    motion[8..12].copy_from_slice(&1_u32.to_ne_bytes());
    motion[MASK] = 0b11;
    for (axis, (at, size)) in place.into_iter().zip(screen).enumerate() {
        let value = (f64::from(at) + 0.5) * STEPS / f64::from(size);
        motion[VALUES + 8 * axis..][..8].copy_from_slice(&value.to_ne_bytes());
    }
    motion
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_motion_has_the_layout_of_the_drivers_structure() {
        let motion = motion([0, 511], [1024, 1024]);
        let number = |at: usize| u32::from_ne_bytes(motion[at..at + 4].try_into().unwrap());
        let value = |axis: usize| f64::from_ne_bytes(motion[32 + 8 * axis..][..8].try_into().unwrap());
        assert_eq!((motion.len(), number(0), number(4), number(8), motion[20]), (1056, 1056, 2, 1, 3));
        assert_eq!([value(0), value(1), value(2)], [32.0, 32_736.0, 0.0]);
    }
}
