// SPDX-License-Identifier: MIT
//! What system calls cost on this machine (Packard 2000, Table 1).
//!
//! A cost is the least mean of several batches of calls, because other programs can only make a batch slower. A round
//! trip sends one byte to another thread and waits until it returns, so it includes two switches between threads.

use anyhow::{Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::process::getppid;
use signal_hook::consts::SIGUSR1;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Instant;

const BATCHES: usize = 20;
const CALLS: usize = 1000;
/// With this byte, a round trip ends the other thread.
const END: [u8; 1] = [0];

/// Cost of the call with this name, in microseconds.
pub fn cost_us(call: &str) -> Result<f64> {
    let mut byte = [1];
    match call {
        "procedure" => each(|| Ok(_ = black_box(nothing as fn() -> u8)())),
        "getppid" => each(|| Ok(_ = black_box(getppid()))),
        "clock" => each(|| Ok(_ = black_box(Instant::now()))),
        "read" => {
            let mut zero = File::open("/dev/zero")?;
            each(|| zero.read_exact(&mut byte))
        }
        "write" => {
            let mut null = File::create("/dev/null")?;
            each(|| null.write_all(&byte))
        }
        "select_10" => selected(10),
        "select_500" => selected(500),
        "epoll_10" => polled(10),
        "epoll_500" => polled(500),
        "signal" => {
            let handled = signal_hook::flag::register(SIGUSR1, Default::default())?;
            let cost = each(|| signal_hook::low_level::raise(SIGUSR1));
            signal_hook::low_level::unregister(handled);
            cost
        }
        "udp" => {
            let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
            near.connect(far.local_addr()?)?;
            far.connect(near.local_addr()?)?;
            round_trip(near.into(), far.into())
        }
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let near = TcpStream::connect(listener.local_addr()?)?;
            let (far, _) = listener.accept()?;
            round_trip(near.into(), far.into())
        }
        "unix" => {
            let (near, far) = UnixStream::pair()?;
            round_trip(near.into(), far.into())
        }
        _ => bail!("there is no system call '{call}' to measure"),
    }
}

#[inline(never)]
fn nothing() -> u8 {
    0
}

fn each(mut call: impl FnMut() -> io::Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..BATCHES {
        let began = Instant::now();
        (0..CALLS).try_for_each(|_| call())?;
        least = least.min(began.elapsed().as_secs_f64() * 1e6 / CALLS as f64);
    }
    Ok(least)
}

fn sockets(count: usize) -> io::Result<Vec<UnixDatagram>> {
    (0..count).map(|_| UnixDatagram::unbound()).collect()
}

fn selected(count: usize) -> Result<f64> {
    let sockets = sockets(count)?;
    let files: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    each(|| xqos_sys::select(&files).map(drop))
}

fn polled(count: usize) -> Result<f64> {
    let (sockets, queue) = (sockets(count)?, epoll::create(epoll::CreateFlags::CLOEXEC)?);
    for socket in &sockets {
        epoll::add(&queue, socket, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    let (mut events, now) = (Vec::with_capacity(count), Timespec { tv_sec: 0, tv_nsec: 0 });
    each(|| Ok(epoll::wait(&queue, spare_capacity(&mut events), Some(&now)).map(drop)?))
}

fn round_trip(near: OwnedFd, far: OwnedFd) -> Result<f64> {
    let (mut near, mut far) = (File::from(near), File::from(far));
    let echo = std::thread::spawn(move || {
        let mut byte = [1];
        while byte != END && far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let cost = each(|| near.write_all(&[1]).and_then(|()| near.read_exact(&mut [0])));
    near.write_all(&END)?;
    // The thread has no result.
    let _ = echo.join();
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_a_cost_and_an_unknown_one_is_refused() {
        for call in ["procedure", "getppid", "read", "select_10", "epoll_10", "signal", "udp", "tcp", "unix"] {
            assert!(cost_us(call).unwrap() > 0.0, "{call}");
        }
        assert_eq!(cost_us("nap").unwrap_err().to_string(), "there is no system call 'nap' to measure");
    }
}
