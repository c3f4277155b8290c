// SPDX-License-Identifier: MIT
//! Tests which requests are executed whole: those on drawables that the server or another program reads or draws
//! without a request, and those whose parts would give another result.

use super::sheet::{LONG, Sheet, begin, start};
use super::world::{half, message};
use crate::fixture::{Fixture, SOON, entry};
use crate::wire::{Message, Wire, opcode};
use std::ptr::{null, null_mut};
use xqos_abi::{Setting, Subject};
use xqos_client::Control;

const CREATE_WINDOW: u8 = 1;
const CHANGE_WINDOW_ATTRIBUTES: u8 = 2;
const MAP_WINDOW: u8 = 8;
const SEND_EVENT: u8 = 25;
const FREE_PIXMAP: u8 = 54;
const CLEAR_AREA: u8 = 61;
const COPY_AREA: u8 = 62;
const COPY_PLANE: u8 = 63;
const AUTOMATIC: u8 = 0;
const MANUAL: u8 = 1;
const RAW_RECTANGLES: u8 = 0;
const NON_EMPTY: u8 = 3;
const INCLUDE_INFERIORS: u32 = 1 << 15;
const STRUCTURE_NOTIFY: u32 = 1 << 17;
/// A ClientMessage with its type and its format.
const CLIENT_MESSAGE: [u8; 32] = {
    let mut event = [0; 32];
    (event[0], event[1]) = (33, 32);
    event
};
const SIDE: u16 = 64;

/// A client with drawables of 64 x 64 pixels of depth 24 on a server that cuts each request that can be cut.
struct Owner {
    wire: Wire,
    control: Control,
    context: u32,
}

impl Owner {
    fn new(fixture: &Fixture) -> Owner {
        let (wire, control) = (fixture.native(), fixture.control().unwrap());
        let mut owner = Owner { wire, control, context: 0 };
        owner.context = owner.make_context(0, &[]);
        owner
    }

    fn make(&mut self, request: impl FnOnce(u32) -> Message) -> u32 {
        let id = self.wire.new_id();
        self.wire.tell(&request(id).finish()).unwrap();
        id
    }

    fn make_context(&mut self, mask: u32, values: &[u32]) -> u32 {
        let root = self.wire.root;
        self.make(|id| {
            let request = message(opcode::CREATE_GC, 0).u32(id).u32(root).u32(mask);
            values.iter().fold(request, |request, &value| request.u32(value))
        })
    }

    fn pixmap(&mut self) -> u32 {
        let root = self.wire.root;
        self.make(|id| message(opcode::CREATE_PIXMAP, 24).u32(id).u32(root).u16(SIDE).u16(SIDE))
    }

    /// A mapped window at this place with these attributes.
    fn window(&mut self, x: u16, mask: u32, values: &[u32]) -> u32 {
        let root = self.wire.root;
        let id = self.make(|id| {
            let request = message(CREATE_WINDOW, 0).u32(id).u32(root).u16(x).u16(0).u16(SIDE).u16(SIDE);
            let request = request.u16(0).u16(1).u32(0).u32(mask);
            values.iter().fold(request, |request, &value| request.u32(value))
        });
        self.wire.tell(&message(MAP_WINDOW, 0).u32(id).finish()).unwrap();
        id
    }

    fn major(&mut self, name: &str) -> u8 {
        let major = self.wire.extension(name).expect("an extension").major;
        if name != "MIT-SHM" {
            // An extension's version must be queried before other requests.
            self.wire.ask(&message(major, 0).u32(1).u32(1).finish()).unwrap();
        }
        major
    }

    fn redirect(&mut self, window: u32, how: u8) -> u32 {
        let composite = self.major("Composite");
        self.wire.tell(&message(composite, 1).u32(window).raw(&[how, 0, 0, 0]).finish()).unwrap();
        self.make(|id| message(composite, 6).u32(window).u32(id))
    }

    /// A segment of shared memory with room for an image.
    fn segment(&mut self, shm: u8) -> u32 {
        // SAFETY: these calls take no pointers but the null one. The segment is removed with its last user.
        let key = unsafe {
            let key = libc::shmget(libc::IPC_PRIVATE, 4 * usize::from(SIDE).pow(2), libc::IPC_CREAT | 0o600);
            libc::shmat(key, null(), 0);
            key
        };
        let id = self.make(|id| message(shm, 1).u32(id).u32(key as u32).u32(0));
        // SAFETY: as above.
        unsafe { libc::shmctl(key, libc::IPC_RMID, null_mut()) };
        id
    }

    fn shared_pixmap(&mut self) -> u32 {
        let (shm, root) = (self.major("MIT-SHM"), self.wire.root);
        let segment = self.segment(shm);
        let size = |id| message(shm, 5).u32(id).u32(root).u16(SIDE).u16(SIDE).raw(&[24, 0, 0, 0]);
        self.make(|id| size(id).u32(segment).u32(0))
    }

    fn picture(&mut self, drawable: u32) -> u32 {
        let render = self.major("RENDER");
        let formats = self.wire.ask(&message(render, 1).finish()).unwrap();
        let is_rgb = |entry: &&[u8]| entry[4] == 1 && entry[5] == 24 && half(entry, 8) == 16;
        let format = formats[32..].chunks(28).find(is_rgb).expect("a format")[..4].try_into().unwrap();
        self.make(|id| message(render, 4).u32(id).u32(drawable).u32(u32::from_ne_bytes(format)).u32(0))
    }

    fn is_cut(&mut self, request: &[u8]) -> bool {
        let before = entry(&self.control, self.wire.base).cuts;
        self.wire.tell_or_ask(request).unwrap();
        entry(&self.control, self.wire.base).cuts > before
    }

    fn fill(&self, drawable: u32, context: u32) -> Vec<u8> {
        let request = message(opcode::POLY_FILL_RECTANGLE, 0).u32(drawable).u32(context);
        (0..4).fold(request, |request, row| request.u16(0).u16(row).u16(SIDE).u16(1)).finish()
    }

    fn fills(&mut self, drawable: u32) -> bool {
        self.is_cut(&self.fill(drawable, self.context))
    }

    fn copies(&mut self, from: u32, to: u32, context: u32) -> bool {
        let request = message(COPY_AREA, 0).u32(from).u32(to).u32(context).u32(0).u16(0).u16(9);
        self.is_cut(&request.u16(SIDE).u16(20).finish())
    }

    /// RENDER Composite with this operator.
    fn composes(&mut self, operator: u8, source: u32, target: u32) -> bool {
        let render = self.major("RENDER");
        let request = message(render, 8).raw(&[operator, 0, 0, 0]).u32(source).u32(0).u32(target);
        self.is_cut(&request.u32(0).u32(0).u32(0).u16(SIDE).u16(SIDE).finish())
    }
}

#[test]
fn a_request_is_whole_if_a_client_shares_the_memory_of_a_pixmap() {
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let mut owner = Owner::new(&fixture);
    // Created before cutting is switched on.
    owner.control.set(Subject::Server, Setting::Cut(0)).unwrap();
    let (shared, pixmap) = (owner.shared_pixmap(), owner.pixmap());
    owner.control.set(Subject::Server, Setting::Cut(250)).unwrap();
    assert!(owner.fills(pixmap), "an ordinary pixmap");
    assert!(!owner.fills(shared) && !owner.copies(shared, pixmap, owner.context));
    let tiled = owner.make_context((1 << 8) | (1 << 10), &[1, shared]);
    let request = owner.fill(pixmap, tiled);
    assert!(!owner.is_cut(&request), "the tile");
    let (source, target) = (owner.picture(shared), owner.picture(pixmap));
    assert!(!owner.composes(1, source, target));
    let shm = owner.major("MIT-SHM");
    let segment = owner.segment(shm);
    let put = message(shm, 3).u32(pixmap).u32(owner.context).u16(SIDE).u16(SIDE).u32(0).u16(SIDE).u16(SIDE).u32(0);
    assert!(!owner.is_cut(&put.raw(&[24, 2, 0, 0]).u32(segment).u32(0).finish()), "PutImage of MIT-SHM");
    let get = message(shm, 4).u32(pixmap).u32(0).u16(SIDE).u16(SIDE).u32(!0).raw(&[2, 0, 0, 0]);
    assert!(!owner.is_cut(&get.u32(segment).u32(0).finish()), "GetImage of MIT-SHM");
    let get = message(opcode::GET_IMAGE, 2).u32(pixmap).u32(0).u16(SIDE).u16(SIDE).u32(!0);
    assert!(!owner.is_cut(&get.finish()), "GetImage");
}

#[test]
fn a_request_is_whole_if_the_server_copies_the_window_by_itself() {
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let mut owner = Owner::new(&fixture);
    let window = owner.window(0, 0, &[]);
    assert!(owner.fills(window), "an ordinary window");
    let manual = owner.window(100, 0, &[]);
    let name = owner.redirect(manual, MANUAL);
    assert!(owner.fills(manual), "the server does not copy it");
    assert!(!owner.fills(name), "a pixmap of a window");
    let copied = owner.window(200, 0, &[]);
    let name = owner.redirect(copied, AUTOMATIC);
    assert!(!owner.fills(copied) && !owner.fills(name));
    let backed = owner.window(300, 1 << 6, &[2]);
    assert!(!owner.fills(backed), "a window with backing store");
    let inferiors = owner.make_context(INCLUDE_INFERIORS, &[1]);
    let request = owner.fill(window, inferiors);
    assert!(!owner.is_cut(&request), "a window with its inferiors");
}

#[test]
fn a_request_is_whole_if_its_drawable_was_presented_or_each_operation_on_it_is_reported() {
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let mut owner = Owner::new(&fixture);
    let [window, elsewhere] = [0, 100].map(|x| owner.window(x, 0, &[]));
    let [pixmap, drawn, damaged] = [(); 3].map(|()| owner.pixmap());
    assert!([window, elsewhere, pixmap, drawn, damaged].into_iter().all(|drawable| owner.fills(drawable)));
    let present = owner.major("Present");
    let request = message(present, 1).u32(window).u32(pixmap).u32(1);
    owner.wire.tell(&(0..14).fold(request, |request, _| request.u32(0)).finish()).unwrap();
    assert!(!owner.fills(window) && !owner.fills(pixmap));
    assert!(owner.fills(elsewhere) && owner.fills(drawn));
    let damage = owner.major("DAMAGE");
    owner.make(|id| message(damage, 1).u32(id).u32(drawn).raw(&[NON_EMPTY, 0, 0, 0]));
    owner.make(|id| message(damage, 1).u32(id).u32(damaged).raw(&[RAW_RECTANGLES, 0, 0, 0]));
    assert!(owner.fills(drawn) && !owner.fills(damaged));
    // The server also uses the pixmaps after their ids are freed.
    let pictures = [pixmap, damaged].map(|named| owner.picture(named));
    for name in [pixmap, damaged] {
        owner.wire.tell(&message(FREE_PIXMAP, 0).u32(name).finish()).unwrap();
    }
    let render = owner.major("RENDER");
    assert!(pictures.into_iter().all(|picture| {
        let request = message(render, 26).raw(&[1, 0, 0, 0]).u32(picture).u32(!0).u32(!0);
        !owner.is_cut(&(0..4).fold(request, |request, row| request.u16(0).u16(row).u16(SIDE).u16(1)).finish())
    }));
    let root = owner.wire.root;
    owner.make(|id| message(damage, 1).u32(id).u32(root).raw(&[RAW_RECTANGLES, 0, 0, 0]));
    assert!(!owner.fills(elsewhere) && owner.fills(drawn), "all windows are reported");
}

#[test]
fn a_request_is_whole_if_its_parts_would_give_another_result() {
    const OVER: u8 = 3;
    const SATURATE: u8 = 13;
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let mut owner = Owner::new(&fixture);
    let [window, above, redirected] = [0, 48, 200].map(|x| owner.window(x, 0, &[]));
    let [pixmap, other] = [(); 2].map(|()| owner.pixmap());
    let (plain, exposes) = (owner.make_context(1 << 16, &[0]), owner.context);
    assert!(owner.copies(pixmap, pixmap, exposes) && owner.copies(pixmap, other, exposes));
    assert!(owner.copies(above, pixmap, plain) && owner.copies(above, above, exposes));
    assert!(!owner.copies(window, pixmap, plain), "the window above it covers a part of the source");
    assert!(!owner.copies(above, window, plain), "two windows of one pixmap");
    let name = owner.redirect(redirected, MANUAL);
    let composite = owner.major("Composite");
    let again = owner.make(|id| message(composite, 6).u32(redirected).u32(id));
    assert!(!owner.copies(name, again, plain) && !owner.copies(name, redirected, plain), "names of one pixmap");

    let render = owner.major("RENDER");
    let [source, target] = [pixmap, other].map(|drawable| owner.picture(drawable));
    assert!(owner.composes(OVER, source, target) && !owner.composes(OVER, source, source));
    assert!(!owner.composes(SATURATE, source, target));
    let of_window = owner.picture(above);
    assert!(!owner.composes(OVER, of_window, target), "it shows whatever covers the window");
    let kernel = [3, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0].map(|value| value << 16);
    let filter = message(render, 30).u32(source).u16(11).u16(0).raw(b"convolution\0");
    owner.wire.tell(&kernel.iter().fold(filter, |request, &value| request.u32(value)).finish()).unwrap();
    assert!(!owner.composes(OVER, source, target), "a convolution");
    let scaled = owner.picture(pixmap);
    let transform = [2, 0, 0, 0, 2, 0, 0, 0, 1].map(|value| value << 16);
    let request = transform.iter().fold(message(render, 28).u32(scaled), |request, &value| request.u32(value));
    owner.wire.tell(&request.finish()).unwrap();
    assert!(!owner.composes(OVER, scaled, target), "a transformation");
    let gradient = owner.make(|id| {
        let request = message(render, 34).u32(id).u32(0).u32(0).u32(0).u32(64 << 16).u32(2).u32(0).u32(1 << 16);
        [0u32, !0, !0, !0].iter().fold(request, |request, &colour| request.u32(colour))
    });
    assert!(!owner.composes(OVER, gradient, target), "a gradient");
    let wide = owner.make_context(1 << 4, &[3]);
    let [thin_arcs, wide_arcs] = [exposes, wide].map(|context| {
        let request = message(68, 0).u32(pixmap).u32(context);
        (0..3).fold(request, |request, at| request.u16(at).u16(0).u16(20).u16(20).u16(0).u16(64 * 300)).finish()
    });
    assert!(owner.is_cut(&thin_arcs) && !owner.is_cut(&wide_arcs), "wide arcs are joined");
}

/// The server paints a border only when the slice has ended.
#[test]
fn a_request_is_whole_in_a_slice_in_which_windows_changed() {
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let mut owner = Owner::new(&fixture);
    let pixmap = owner.pixmap();
    let window = owner.window(0, 1 << 2, &[pixmap]);
    let composite = owner.major("Composite");
    let redirect = message(composite, 1).u32(window).raw(&[MANUAL, 0, 0, 0]).finish();
    let before = entry(&owner.control, owner.wire.base).cuts;
    owner.wire.send_many(&[redirect, owner.fill(pixmap, owner.context)].concat(), 2);
    owner.wire.sync();
    assert_eq!(entry(&owner.control, owner.wire.base).cuts, before);
    assert!(owner.fills(pixmap), "in the next slice");
}

/// A client that is held with the rest of a long request pending, and another one.
struct Pending {
    fixture: Fixture,
    owner: Wire,
    other: Owner,
    sheet: Sheet,
}

/// Runs `work` while a rest is pending. `prepare` creates a drawable first.
fn pending(prepare: impl FnOnce(&mut Owner, &Sheet) -> u32, work: impl FnOnce(&mut Pending, u32)) {
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let (mut owner, mut other) = (fixture.native(), Owner::new(&fixture));
    let sheet = Sheet::new(&mut owner);
    let made = prepare(&mut other, &sheet);
    // The owner gets events of the root window.
    let select = message(CHANGE_WINDOW_ATTRIBUTES, 0).u32(owner.root).u32(1 << 11).u32(STRUCTURE_NOTIFY);
    owner.tell(&select.finish()).unwrap();
    begin(&other.control, &mut owner, &sheet);
    let mut pending = Pending { fixture, owner, other, sheet };
    work(&mut pending, made);
    pending.other.control.release(pending.owner.base).unwrap();
    pending.owner.sync();
    pending.sheet.assert_inverted(&mut pending.owner, &[LONG]);
    pending.fixture.assert_armed();
}

/// Libraries write to shared memory again when an event shows that the request that reads it is done.
#[test]
fn an_event_names_a_request_only_when_all_of_it_is_done() {
    pending(
        |_, _| 0,
        |Pending { owner, other, sheet, .. }, _| {
            let number = owner.sequence();
            let finished = other.control.cut().unwrap().finished;
            let root = owner.root;
            let event = |other: &mut Owner, owner: &mut Wire| {
                let request = message(SEND_EVENT, 0).u32(root).u32(STRUCTURE_NOTIFY).raw(&CLIENT_MESSAGE);
                other.wire.tell(&request.finish()).unwrap();
                let event = owner.event(SOON).expect("an event");
                owner.u16_in(&event, 2)
            };
            assert_eq!(event(other, owner), number - 1, "only a part is done");
            assert_eq!(other.control.cut().unwrap().finished, finished);
            sheet.assert_inverted(&mut other.wire, &[LONG]);
            assert_eq!(event(other, owner), number, "all of it is done");
        },
    );
}

/// Libraries end a program if the numbers of its events decrease, or belong to requests that it has not sent.
#[test]
fn the_numbers_of_events_are_those_of_requests_that_were_sent_and_never_go_back() {
    let watched = |other: &mut Owner, sheet: &Sheet| {
        let damage = other.major("DAMAGE");
        other.make(|id| message(damage, 1).u32(id).u32(sheet.pixmap).raw(&[NON_EMPTY, 0, 0, 0]))
    };
    pending(watched, |Pending { other, sheet, .. }, damage| {
        let major = other.major("DAMAGE");
        let (context, pixmap, first) = (other.context, other.pixmap(), other.wire.sequence());
        // The copy finishes the rest, which causes an event, and is cut itself.
        let copy = message(COPY_AREA, 0).u32(sheet.pixmap).u32(pixmap).u32(context).u32(0).u32(0);
        let copy = copy.u16(SIDE).u16(SIDE).finish();
        let subtract = message(major, 3).u32(damage).u32(0).u32(0).finish();
        let focus = message(opcode::GET_INPUT_FOCUS, 0).finish();
        other.wire.send_many(&[copy.clone(), copy, subtract, focus].concat(), 4);
        let (mut last, mut events) = (0, 0);
        loop {
            let bytes = other.wire.message_of_any_kind().expect("a message");
            let number = half(&bytes, 2).wrapping_sub(first);
            if bytes[0] == 1 && number == 4 {
                break;
            }
            // Skip events of earlier requests.
            if number <= 4 {
                assert!(number >= last, "{number} after {last}");
                (last, events) = (number, events + 1);
            }
        }
        assert!(events > 0);
    });
}

/// The server paints a window with its background where a copy has no source.
#[test]
fn a_rest_that_draws_the_background_of_a_window_is_finished_before_the_server_paints_it() {
    for major in [CLEAR_AREA, COPY_AREA, COPY_PLANE] {
        let window = |other: &mut Owner, sheet: &Sheet| other.window(0, 1, &[sheet.pixmap]);
        pending(window, |Pending { other, .. }, window| {
            let before = other.control.cut().unwrap().finished;
            let request = match major {
                CLEAR_AREA => message(major, 0).u32(window).u32(0).u32(0),
                _ => message(major, 0).u32(window).u32(window).u32(other.context).u32(!0).u32(0).u16(9).u16(9),
            };
            let request = if major == COPY_PLANE { request.u32(1) } else { request };
            other.wire.tell(&request.finish()).unwrap();
            assert_eq!(other.control.cut().unwrap().finished, before + 1, "opcode {major}");
        });
    }
}
