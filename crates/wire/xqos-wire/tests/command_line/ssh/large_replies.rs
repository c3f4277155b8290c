// SPDX-License-Identifier: MIT
//! Tests images over a long link: ssh's flow-control window for X11 allows 64 kB of replies per round trip.

use super::{Far, with_program};
use crate::fixture::{Ended, Server, ended};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const ONE_WAY: Duration = Duration::from_millis(50);

/// Delivers what it reads one delay later, without a limit on the rate.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let (sender, queue) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (arrived, bytes) in queue {
            thread::sleep((arrived + ONE_WAY).saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 18];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if sender.send((Instant::now(), bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// Starts a link to this port of the machine. Returns the port at its near end.
fn long_link(to: u16) -> u16 {
    let near_end = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = near_end.local_addr().unwrap().port();
    thread::spawn(move || {
        for near in near_end.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(("127.0.0.1", to)).unwrap();
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            carry(near.try_clone().unwrap(), far.try_clone().unwrap());
            carry(far, near);
        }
    });
    port
}

/// Milliseconds for the fastest image, because a busy machine delays some of them. The lines are like `2 reps @ 340.1
/// msec ( 2.9/sec): GetImage 500x500 square`.
fn image_ms(ended: Ended) -> f64 {
    let ended = ended.with(0);
    let lines = ended.out.lines().filter(|line| line.contains("reps @"));
    let times = lines.map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap());
    times.min_by(f64::total_cmp).unwrap_or_else(|| panic!("{ended:#?}"))
}

/// A program that reads this many images.
fn reading(images: &str) -> [&str; 6] {
    ["x11perf", "-getimage500", "-reps", "1", "-repeat", images]
}

#[test]
fn an_image_over_a_long_link_takes_a_fraction_of_the_time_that_ssh_needs() {
    let Some(mut far) = Far::start("ssh-images", &with_program(), "") else { return };
    far.port = long_link(far.port);
    let server = Server::stock();
    let forwarded = image_ms(far.run(&server, &[], &reading("15")));
    let mut ssh = server.command("ssh");
    far.log_in(&mut ssh).args(["-C", "-Y", "127.0.0.1"]).args(reading("1"));
    let by_ssh = image_ms(ended(&mut ssh));
    // 1 MB takes 16 round trips through a window of 64 kB, and 2 without one.
    assert!(forwarded * 5.0 < by_ssh, "{forwarded} ms instead of {by_ssh} ms");
}
