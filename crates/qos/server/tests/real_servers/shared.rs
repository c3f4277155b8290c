// SPDX-License-Identifier: MIT
//! Tests of memory that a client shares with the server (MIT-SHM), attached in each possible way: by key, by a
//! descriptor from the client, and by a descriptor from the server. Pictures must not change when they are read back.

use crate::busy::Busy;
use crate::fixture::{Fixture, SOON, in_parallel, setup, wait_for, xvfb};
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::Event;
use x11rb::protocol::shm::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, CreateGCAux, ImageFormat, Rectangle};
use x11rb::rust_connection::RustConnection;
use xqos_lab::server::ServerKind;

const SIDE: u16 = 100;
const DEPTH: u8 = 24;
/// The size of a picture.
const BYTES: usize = 4 * SIDE as usize * SIDE as usize;
/// A segment holds the picture to draw and the picture that is read back.
const SEGMENT_BYTES: usize = 2 * BYTES;

#[derive(Clone, Copy, Debug)]
enum Method {
    Key,
    ClientDescriptor,
    ServerDescriptor,
}

impl Method {
    const ALL: [Method; 3] = [Method::Key, Method::ClientDescriptor, Method::ServerDescriptor];
}

/// The client's side of a segment.
#[derive(Debug)]
enum Memory {
    /// Mapped at this address.
    Mapped(*mut u8),
    File(File),
}

impl Memory {
    /// Creates a segment to attach by key. Also returns the key.
    fn with_key() -> (Memory, u32) {
        // SAFETY: these calls take no pointers. The segment is marked for removal later and removed with its last user.
        unsafe {
            let key = libc::shmget(libc::IPC_PRIVATE, SEGMENT_BYTES, libc::IPC_CREAT | 0o600);
            let address = libc::shmat(key, std::ptr::null(), 0);
            assert!(key >= 0 && address as isize != -1, "no shared memory: {}", std::io::Error::last_os_error());
            (Memory::Mapped(address.cast()), key as u32)
        }
    }

    fn in_file() -> (Memory, File) {
        // SAFETY: the name is a C string, and the descriptor is new and has no other owner.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"picture".as_ptr(), libc::MFD_CLOEXEC);
            assert!(descriptor >= 0, "no memory file: {}", std::io::Error::last_os_error());
            File::from(OwnedFd::from_raw_fd(descriptor))
        };
        file.set_len(SEGMENT_BYTES as u64).unwrap();
        let ours = file.try_clone().unwrap();
        (Memory::File(ours), file)
    }

    fn write(&self, picture: &[u8]) {
        assert!(picture.len() <= BYTES);
        match self {
            // SAFETY: the segment is longer than the picture, and the server has finished all requests that use it.
            Memory::Mapped(address) => unsafe { address.copy_from(picture.as_ptr(), picture.len()) },
            Memory::File(file) => file.write_all_at(picture, 0).unwrap(),
        }
    }

    /// The picture that the server has written after the picture to draw.
    fn read_back(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        match self {
            // SAFETY: the segment has BYTES bytes here, and the server has finished all requests that write to it.
            Memory::Mapped(address) => unsafe { address.add(BYTES).copy_to(bytes.as_mut_ptr(), BYTES) },
            Memory::File(file) => file.read_exact_at(&mut bytes, BYTES as u64).unwrap(),
        }
        bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Mapped(address) = self {
            // SAFETY: the segment is mapped at this address and no longer used.
            unsafe { libc::shmdt(address.cast()) };
        }
    }
}

/// A picture with different contents for each seed.
fn picture(seed: u32) -> Vec<u8> {
    (0..BYTES as u32)
        .map(|at| ((at ^ seed.wrapping_mul(0x9E37_79B9)).wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// The first pixel that differs. The fourth byte of a pixel is unused.
fn difference(is: &[u8], wanted: &[u8]) -> Option<usize> {
    assert_eq!(is.len(), wanted.len());
    is.chunks(4).zip(wanted.chunks(4)).position(|(is, wanted)| is[..3] != wanted[..3])
}

/// A client that draws from shared memory.
struct Painter {
    connection: RustConnection,
    root: u32,
    context: u32,
}

impl Painter {
    fn connect(server: &Fixture) -> Painter {
        let connection = server.connect().unwrap();
        let version = connection.shm_query_version().unwrap().reply().expect("the server has MIT-SHM");
        assert!((version.major_version, version.minor_version) >= (1, 2), "descriptors can be passed: {version:?}");
        let (root, context) = (connection.setup().roots[0].root, connection.generate_id().unwrap());
        connection.create_gc(context, root, &CreateGCAux::new()).unwrap();
        Painter { connection, root, context }
    }

    fn pixmap(&self) -> u32 {
        let pixmap = self.connection.generate_id().unwrap();
        self.connection.create_pixmap(DEPTH, pixmap, self.root, SIDE, SIDE).unwrap();
        pixmap
    }

    /// Attaches a new segment. Does not wait for the server if the client passes a descriptor.
    fn attach(&self, method: Method) -> (shm::Seg, Memory) {
        let segment = self.connection.generate_id().unwrap();
        let memory = match method {
            Method::Key => {
                let (memory, key) = Memory::with_key();
                self.connection.shm_attach(segment, key, false).unwrap().check().unwrap();
                // SAFETY: the call needs no pointers, and the segment is removed when both sides have detached.
                unsafe { libc::shmctl(key as i32, libc::IPC_RMID, std::ptr::null_mut()) };
                memory
            }
            Method::ClientDescriptor => {
                let (memory, theirs) = Memory::in_file();
                self.connection.shm_attach_fd(segment, OwnedFd::from(theirs), false).unwrap();
                memory
            }
            Method::ServerDescriptor => {
                let made = self.connection.shm_create_segment(segment, SEGMENT_BYTES as u32, false).unwrap();
                Memory::File(File::from(made.reply().unwrap().shm_fd))
            }
        };
        (segment, memory)
    }

    fn put(&self, segment: shm::Seg, pixmap: u32, tells: bool) {
        let (side, format) = (SIDE, ImageFormat::Z_PIXMAP.into());
        let put = self.connection.shm_put_image(
            pixmap,
            self.context,
            side,
            side,
            0,
            0,
            side,
            side,
            0,
            0,
            DEPTH,
            format,
            tells,
            segment,
            0,
        );
        put.unwrap();
    }

    /// Reads the pixmap's picture over the connection.
    fn get(&self, pixmap: u32) -> Vec<u8> {
        let image = self.connection.get_image(ImageFormat::Z_PIXMAP, pixmap, 0, 0, SIDE, SIDE, !0);
        image.unwrap().reply().unwrap().data
    }

    /// Reads the pixmap's picture through the segment.
    fn get_shared(&self, pixmap: u32, segment: shm::Seg, memory: &Memory) -> Vec<u8> {
        let format = ImageFormat::Z_PIXMAP.into();
        let got = self.connection.shm_get_image(pixmap, 0, 0, SIDE, SIDE, !0, format, segment, BYTES as u32);
        assert_eq!(got.unwrap().reply().unwrap().size as usize, BYTES);
        memory.read_back()
    }

    /// Sends about 0.1 s of work, much of which waits while other clients are served.
    fn fill(&self, pixmap: u32) {
        let all = [Rectangle { x: 0, y: 0, width: SIDE, height: SIDE }; 8];
        for _ in 0..300 {
            self.connection.poly_fill_rectangle(pixmap, self.context, &all).unwrap();
        }
    }

    fn sync(&self) {
        self.connection.get_input_focus().unwrap().reply().unwrap();
    }
}

/// The number of unnamed files that the server has open; memory passed by descriptor is one of these.
fn shared_files(server: &Fixture) -> usize {
    let links = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let is_one = |path: std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().ends_with(" (deleted)"))
    };
    links.filter(|link| link.as_ref().is_ok_and(|link| is_one(link.path()))).count()
}

#[test]
fn pictures_in_shared_memory_are_drawn_and_read_back_by_every_method() {
    let _turn = in_parallel();
    let mut server = xvfb();
    let _busy = Busy::start(&server);
    let painter = Painter::connect(&server);
    let complete = painter.connection.extension_information(shm::X11_EXTENSION_NAME).unwrap().unwrap().first_event;
    for (seed, method) in (0..10).flat_map(|turn| Method::ALL.map(|method| (3 * turn + method as u32, method))) {
        let (picture, pixmap) = (picture(seed), painter.pixmap());
        let (segment, memory) = painter.attach(method);
        memory.write(&picture);
        painter.put(segment, pixmap, true);
        assert_eq!(difference(&painter.get(pixmap), &picture), None, "{method:?}");
        assert_eq!(difference(&painter.get_shared(pixmap, segment, &memory), &picture), None, "{method:?}");
        let event = painter.connection.poll_for_event().unwrap();
        let Some(Event::ShmCompletion(completion)) = event else { panic!("{method:?}: {event:?}") };
        assert_eq!((completion.response_type, completion.shmseg, completion.drawable), (complete, segment, pixmap));
        painter.connection.shm_detach(segment).unwrap();
        painter.connection.free_pixmap(pixmap).unwrap();
    }
    painter.sync();
    wait_for("the server has closed the passed descriptors", SOON, || shared_files(&server) == 0);
    server.assert_armed();
}

/// Checks that each descriptor reaches its request even if the client sends more than a single read returns.
fn assert_each_descriptor_finds_its_request(server: &Fixture) {
    let _busy = Busy::start(server);
    let painter = Painter::connect(server);
    let mut drawn = Vec::new();
    for seed in 0..12 {
        let (picture, pixmap) = (picture(seed), painter.pixmap());
        painter.fill(pixmap);
        let (segment, memory) = painter.attach(Method::ClientDescriptor);
        memory.write(&picture);
        painter.put(segment, pixmap, false);
        painter.connection.shm_detach(segment).unwrap();
        drawn.push((pixmap, picture));
    }
    painter.connection.flush().unwrap();
    for (pixmap, picture) in &drawn {
        assert_eq!(difference(&painter.get(*pixmap), picture), None);
    }
    let event = painter.connection.poll_for_event().unwrap();
    assert!(event.is_none(), "no request causes an event or an error: {event:?}");
}

#[test]
fn descriptors_among_other_work_reach_their_requests() {
    let _turn = in_parallel();
    let mut server = xvfb();
    assert_each_descriptor_finds_its_request(&server);
    server.assert_armed();
}

/// When xqos steps aside, it has read some of the data. The server executes those requests afterwards.
#[test]
fn descriptors_reach_their_requests_even_if_xqos_steps_aside() {
    let _turn = in_parallel();
    for calls in [200, 300, 450] {
        let mut wanted = setup(ServerKind::Xvfb);
        wanted.environment.push(("XQOS_HOST".into(), "libc".into()));
        wanted.environment.push(("XQOS_TEST_FAULT".into(), format!("call:{calls}").into()));
        let server = Fixture::start(&wanted);
        assert_each_descriptor_finds_its_request(&server);
        assert!(server.xqos_log().contains("stepped aside"), "after {calls} calls: {}", server.xqos_log());
    }
}
