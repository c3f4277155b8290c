// SPDX-License-Identifier: MIT
//! Tests the relay with synthetic clients and servers that are slow, silent, closed or hostile. Every byte and file
//! descriptor arrives, and the recording shows what was relayed.

mod packets;

use packets::*;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use xqos_testkit::Random;
use xqos_wire::capture::CaptureReader;
use xqos_wire::observe::{Direction, Ending, Kind};
use xqos_wire::recording::scrub::Extent;
use xqos_wire::recording::{RecordError, RecordingSettings, Target};
use xqos_wire::relay::upstream::Upstream;
use xqos_wire::relay::{Relay, RelayError, Relayed};

const L: Order = Order::Little;
/// More time than any step needs, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Display numbers far above those of real servers.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A synthetic server with a relay in front of it.
struct Scene {
    listener: UnixListener,
    relay: Relay,
    file: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(&RecordingSettings { scrub: Some(Extent::Cookie), ..RecordingSettings::default() })
    }

    fn with(settings: &RecordingSettings) -> Scene {
        let (number, listener) = listen();
        let file = std::env::temp_dir().join(format!("xqos-relay-{}-{number}", std::process::id()));
        let target = Target::One(File::create(&file).unwrap());
        let upstream = Upstream::find(Some(&format!(":{number}"))).unwrap();
        let relay = Relay::start(upstream, target, settings).unwrap();
        // Accept the connection with which the relay tested the server.
        accept(&listener);
        Scene { listener, relay, file }
    }

    fn client(&self) -> UnixStream {
        connect(&self.relay.display())
    }

    /// A client and the server's end of its connection.
    fn pair(&self) -> (UnixStream, UnixStream) {
        (self.client(), accept(&self.listener))
    }

    /// The relay's counts, and the contents of its file.
    fn end(self) -> (Relayed, Observed) {
        let relayed = self.relay.finish().unwrap();
        let mut reader = CaptureReader::open(&self.file).unwrap();
        let mut packets = Vec::new();
        while let Some(record) = reader.next() {
            let (at_ns, link, length, bytes) = (record.at_ns, record.link, record.length, record.bytes.to_vec());
            packets.push(Captured { at_ns, link, length, bytes, program: None });
        }
        assert!(reader.notes().is_empty(), "the file is complete");
        assert!(packets.is_sorted_by_key(|packet| packet.at_ns), "in the order of time");
        fs::remove_file(&self.file).unwrap();
        (relayed, observe(&packets).0)
    }
}

/// An abstract socket, which leaves no file.
fn listen() -> (u16, UnixListener) {
    loop {
        let number = 20_000 + (std::process::id() as u16 % 1000) * 30 + NEXT.fetch_add(1, Ordering::Relaxed) % 30;
        let address = SocketAddr::from_abstract_name(format!("/tmp/.X11-unix/X{number}")).unwrap();
        match UnixListener::bind_addr(&address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            listener => return (number, listener.unwrap()),
        }
    }
}

fn accept(listener: &UnixListener) -> UnixStream {
    patient(listener.accept().unwrap().0)
}

fn connect(display: &str) -> UnixStream {
    let number = display.trim_start_matches(':');
    patient(UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).unwrap())
}

fn patient(stream: UnixStream) -> UnixStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn read(stream: &mut UnixStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random(seed);
    std::iter::repeat_with(|| random.below(256) as u8).take(count).collect()
}

#[test]
fn messages_are_relayed_and_recorded_in_both_byte_orders() {
    for order in [Order::Little, Order::Big] {
        let scene = Scene::new();
        let (mut client, mut server) = scene.pair();
        client.write_all(&setup(order)).unwrap();
        assert_eq!(read(&mut server, setup(order).len()), setup(order));
        server.write_all(&setup_reply(order)).unwrap();
        read(&mut client, setup_reply(order).len());
        for sequence in 1..=100 {
            client.write_all(&request(order, 43, 0, 1)).unwrap();
            read(&mut server, 4);
            server.write_all(&reply(order, sequence, 0, 0)).unwrap();
            read(&mut client, 32);
        }
        drop(client);
        assert_eq!(rest(&mut server), b"");
        drop(server);
        settle(&scene.relay);
        let (relayed, seen) = scene.end();
        let names: Vec<String> = seen.lines();
        assert_eq!(names.len(), 200, "{order:?}");
        assert_eq!(names[198..], ["Request 100 GetInputFocus", "Reply 100 GetInputFocus"]);
        assert_eq!(seen.endings, [Ending::Finished]);
        assert_eq!(relayed.bytes, [setup(order).len() as u64 + 400, setup_reply(order).len() as u64 + 3200]);
        assert_eq!((relayed.connections, relayed.refused, relayed.recorded.error.is_none()), (1, 0, true));
    }
}

/// Waits until no connection is left.
fn settle(relay: &Relay) {
    xqos_testkit::wait_for("no connection is left", PATIENCE, || relay.open() == 0);
}

#[test]
fn requests_and_replies_of_8_megabytes_are_relayed() {
    let scene = Scene::with(&RecordingSettings { scrub: None, ..RecordingSettings::default() });
    let (mut client, mut server) = scene.pair();
    let (there, back) = (noise(1, 8 << 20), noise(2, 8 << 20));
    let (mut clients, mut servers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| servers.write_all(&back).unwrap());
        scope.spawn(|| {
            clients.write_all(&there).unwrap();
            clients.shutdown(Shutdown::Write).unwrap();
        });
        let serve = scope.spawn(|| rest(&mut server));
        assert!(read(&mut client, back.len()) == back, "the rest arrives although one direction is closed");
        assert!(serve.join().unwrap() == there);
    });
    let (relayed, seen) = scene.end();
    assert_eq!(relayed.bytes, [8 << 20, 8 << 20]);
    // The connection is not X, but its packets are complete.
    let bytes: u64 = seen.packets.iter().map(|packet| u64::from(packet.length)).sum();
    assert_eq!(bytes, 16 << 20);
}

#[test]
fn a_blocked_server_blocks_only_its_own_client() {
    let scene = Scene::new();
    let (mut slow, mut sleeping) = scene.pair();
    slow.set_nonblocking(true).unwrap();
    let (mut taken, mut idle_since) = (0_usize, Instant::now());
    // Write until the socket buffers and the relay are full. Without backpressure, everything would be accepted.
    while idle_since.elapsed() < Duration::from_millis(300) && taken < 64 << 20 {
        match slow.write(&[0x7f; 65_536]) {
            Ok(count) => (taken, idle_since) = (taken + count, Instant::now()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        thread::sleep(Duration::from_micros(200));
    }
    assert!((1..16 << 20).contains(&taken), "{taken} bytes are on their way");
    let (mut client, mut server) = scene.pair();
    client.write_all(b"lively").unwrap();
    assert_eq!(read(&mut server, 6), b"lively");
    server.write_all(b"indeed").unwrap();
    assert_eq!(read(&mut client, 6), b"indeed");
    drop(slow);
    assert_eq!(rest(&mut sleeping).len(), taken, "nothing is lost");
    let (_, seen) = scene.end();
    let closed: Vec<_> = seen.packets.iter().filter(|packet| packet.window == 0).collect();
    assert!(closed.iter().any(|packet| packet.direction == Direction::Replies), "the receive window was closed");
}

#[test]
fn file_descriptors_are_relayed_both_ways() {
    let scene = Scene::new();
    let (client, server) = scene.pair();
    for (from, to) in [(&client, &server), (&server, &client)] {
        let files: Vec<File> = (0..3).map(|number| unlinked_file(&format!("file {number}"))).collect();
        let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
        sendmsg(from, &[IoSlice::new(b"three files")], &mut control, SendFlags::empty()).unwrap();
        let (bytes, files) = receive(to);
        assert_eq!(bytes, b"three files");
        let texts = files.into_iter().map(|file| {
            let mut text = String::new();
            File::from(file).read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["file 0", "file 1", "file 2"]);
    }
    let (relayed, _) = scene.end();
    assert_eq!((relayed.files, relayed.files_lost), (6, 0));
}

/// An unlinked file with this text.
fn unlinked_file(text: &str) -> File {
    let path = std::env::temp_dir().join(format!("xqos-passed-{}-{}", std::process::id(), text.replace(' ', "-")));
    fs::write(&path, text).unwrap();
    let file = File::open(&path).unwrap();
    fs::remove_file(path).unwrap();
    file
}

fn receive(stream: &UnixStream) -> (Vec<u8>, Vec<OwnedFd>) {
    let (mut bytes, mut files) = (vec![0; 100], Vec::new());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(10))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::empty()).unwrap();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            files.extend(more);
        }
    }
    bytes.truncate(got.bytes);
    (bytes, files)
}

#[test]
fn clients_get_all_data_before_a_closing_server_ends_them() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.pair();
    server.write_all(b"last words").unwrap();
    drop(server);
    assert_eq!(rest(&mut client), b"last words");
    settle(&scene.relay);
    let Scene { listener, relay, file } = scene;
    drop(listener);
    assert_eq!(rest(&mut connect(&relay.display())), b"", "the server has exited");
    let relayed = relay.finish().unwrap();
    assert_eq!((relayed.connections, relayed.refused), (1, 1));
    fs::remove_file(file).unwrap();
}

#[test]
fn silent_clients_do_not_affect_others() {
    let scene = Scene::new();
    let _silent: Vec<_> = (0..20).map(|_| scene.pair()).collect();
    let (mut client, mut server) = scene.pair();
    client.write_all(&setup(L)).unwrap();
    read(&mut server, setup(L).len());
    assert_eq!(scene.relay.open(), 21);
    let (relayed, seen) = scene.end();
    assert_eq!((relayed.connections, seen.opened.len()), (21, 21));
    assert_eq!(seen.messages.iter().filter(|(_, received)| received.kind == Kind::Setup).count(), 1);
}

#[test]
fn arbitrary_bytes_are_relayed_and_leave_a_complete_file() {
    for seed in 0..20 {
        let scene = Scene::with(&RecordingSettings { scrub: Some(Extent::All), ..RecordingSettings::default() });
        let (mut client, mut server) = scene.pair();
        // Start with a valid setup, so that the rest is decoded.
        let there = [setup(L), noise(seed, 70_000)].concat();
        let back = [setup_reply(L), noise(seed + 1000, 70_000)].concat();
        thread::scope(|scope| {
            scope.spawn(|| server.write_all(&back).unwrap());
            scope.spawn(|| there.chunks(1000).for_each(|part| client.write_all(part).unwrap()));
        });
        assert!(read(&mut server, there.len()) == there && read(&mut client, back.len()) == back);
        if seed % 2 == 0 {
            drop(client);
        }
        scene.end();
    }
}

#[test]
fn a_full_disk_stops_only_the_recording() {
    let full = Path::new("/dev/full");
    let (number, listener) = listen();
    let file = OpenOptions::new().write(true).open(full).unwrap();
    let upstream = Upstream::find(Some(&format!(":{number}"))).unwrap();
    let relay = Relay::start(upstream, Target::One(file), &RecordingSettings::default()).unwrap();
    accept(&listener);
    let (mut client, mut server) = (connect(&relay.display()), accept(&listener));
    for _ in 0..100 {
        client.write_all(&[1; 10_000]).unwrap();
        read(&mut server, 10_000);
    }
    drop((client, server));
    let relayed = relay.finish().unwrap();
    let error = relayed.recorded.error;
    assert!(matches!(&error, Some(RecordError::File(it)) if it.kind() == ErrorKind::StorageFull), "{error:?}");
    assert_eq!(relayed.bytes[0], 1_000_000, "all data are forwarded");
}

#[test]
fn the_display_is_removed_with_the_relay() {
    let scene = Scene::new();
    let number = scene.relay.display().trim_start_matches(':').to_owned();
    let files = [format!("/tmp/.X{number}-lock"), format!("/tmp/.X11-unix/X{number}")];
    // Other processes can take the number as soon as it is free.
    let identity = |file: &String| fs::symlink_metadata(file).map(|of| (of.ino(), of.ctime(), of.ctime_nsec())).ok();
    let made = files.each_ref().map(identity);
    assert!(made.iter().all(Option::is_some));
    let (client, _server) = scene.pair();
    scene.end();
    assert!(files.iter().zip(made).all(|(file, made)| identity(file) != made));
    assert_eq!(rest(&mut { client }), b"", "the client is disconnected");
}

#[test]
fn invalid_displays_are_reported() {
    let start = |name: &str| Upstream::find(Some(name)).unwrap_err();
    assert!(matches!(start("nonsense"), RelayError::NoDisplay(_)));
    assert!(matches!(start(":59000"), RelayError::Unreachable(..)));
    assert!(start(":59000").to_string().contains(":59000"));
}
