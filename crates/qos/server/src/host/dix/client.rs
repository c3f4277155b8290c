// SPDX-License-Identifier: MIT
//! The server's client record, read and written as plain values through the C shim.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

/// The server's `ClientRec`. Only the shim reads it.
#[repr(C)]
#[derive(Debug)]
pub struct RawClient {
    _opaque: [u8; 0],
}

pub type ClientPtr = *mut RawClient;

/// A node in a ring of ready clients.
#[repr(C)]
#[derive(Debug)]
pub struct Ring {
    pub next: *mut Ring,
    pub previous: *mut Ring,
}

unsafe extern "C" {
    fn xqos_client_index(client: ClientPtr) -> c_int;
    fn xqos_client_state(client: ClientPtr) -> c_int;
    fn xqos_client_set_priority(client: ClientPtr, priority: c_int);
    fn xqos_client_request(client: ClientPtr) -> *const u8;
    fn xqos_client_request_bytes(client: ClientPtr) -> u32;
    fn xqos_client_head(client: ClientPtr, head: *mut Head);
    fn xqos_client_set_error_value(client: ClientPtr, value: u32);
    fn xqos_ring_client(node: *mut Ring) -> ClientPtr;
    fn xqos_state_client(info: *mut c_void) -> ClientPtr;
    fn xqos_grab_client(info: *mut c_void) -> ClientPtr;
    fn xqos_grab_state(info: *mut c_void) -> c_int;
    fn xqos_event_client(info: *mut c_void) -> ClientPtr;
    fn xqos_event_kind(info: *mut c_void, xinput_opcode: c_int) -> c_int;
    fn xqos_selection_atom(info: *mut c_void) -> u32;
    fn xqos_selection_owner(info: *mut c_void) -> ClientPtr;
    fn xqos_setup_root(setup: *const c_void, screen: c_int) -> u32;
    fn xqos_redirector(root: *const c_void, id: u32) -> u32;
    fn xqos_device_grab(input: *const c_void, of_keyboard: c_int) -> u32;
    fn xqos_setup_vendor(setup: *const c_void, length: *mut u32, release: *mut u32) -> *const c_char;
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    pub index: u32,
    pub sequence: u32,
    /// Major opcode + 65536 x minor opcode.
    pub request: u32,
    pub bytes: u32,
    pub swapped: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    Connecting,
    Running,
    Retained,
    Gone,
}

/// A live client of the server, used on the server's thread only.
///
/// Invariant: made by [`LiveClient::new`] from the server's pointer, and dropped at the latest when the server reports
/// the client as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveClient(NonNull<RawClient>);

/// Accessors for a client's plain values, by a function of the shim.
macro_rules! asks {
    ($($(#[$meta:meta])* $name:ident: $type:ty = $call:ident;)*) => {$(
        $(#[$meta])*
        pub fn $name(self) -> $type {
            unsafe extern "C" {
                fn $call(client: ClientPtr) -> $type;
            }
            // SAFETY: by the invariant of `LiveClient`, the record is alive.
            unsafe { $call(self.raw()) }
        }
    )*};
}

impl LiveClient {
    /// Returns `None` for a null pointer.
    ///
    /// # Safety
    /// The pointer is null or a `ClientRec` of the running server, and the `LiveClient` is not used after the server
    /// frees the record, which the server announces by the state Gone.
    pub unsafe fn new(client: ClientPtr) -> Option<LiveClient> {
        NonNull::new(client).map(LiveClient)
    }

    pub fn raw(self) -> ClientPtr {
        self.0.as_ptr()
    }

    pub fn index(self) -> usize {
        // SAFETY: by the invariant of `LiveClient`, the record is alive.
        usize::try_from(unsafe { xqos_client_index(self.raw()) }).unwrap_or(usize::MAX)
    }

    asks! {
        /// The first resource id of the client.
        base: u32 = xqos_client_base;
        sequence: u32 = xqos_client_sequence;
        last_request: u32 = xqos_client_last_request;
        is_swapped: bool = xqos_client_swapped;
        /// Returns true if the client's connection is closed or about to be closed.
        is_gone: bool = xqos_client_gone;
        priority: i32 = xqos_client_priority;
        request_vector: *const c_void = xqos_client_request_vector;
        /// The client's node in the server's rings; linked to itself if the client is in no ring.
        ring: *mut Ring = xqos_client_ring;
    }

    pub fn state(self) -> ConnectionState {
        // SAFETY: by the invariant of `LiveClient`, the record is alive.
        match unsafe { xqos_client_state(self.raw()) } {
            0 => ConnectionState::Connecting,
            1 => ConnectionState::Running,
            2 => ConnectionState::Retained,
            _ => ConnectionState::Gone,
        }
    }

    pub fn set_priority(self, priority: i32) {
        // SAFETY: by the invariant of `LiveClient`, the record is alive.
        unsafe { xqos_client_set_priority(self.raw(), priority) }
    }

    /// The request being dispatched. May only be called in a request procedure.
    pub fn request(self) -> Vec<u8> {
        // SAFETY: the caller is a request procedure, and the slice is copied immediately.
        unsafe { self.request_bytes() }.to_vec()
    }

    /// The bytes of the request being dispatched, in the server's own buffer.
    ///
    /// # Safety
    /// May only be called in a request procedure, and the slice is not used after the request.
    pub unsafe fn request_bytes<'a>(self) -> &'a [u8] {
        // SAFETY: while a request is dispatched, the buffer holds `request_bytes` bytes of it.
        unsafe { std::slice::from_raw_parts(self.request_start(), xqos_client_request_bytes(self.raw()) as usize) }
    }

    /// The beginning of the client's request in the server's buffer.
    pub fn request_start(self) -> *mut u8 {
        // SAFETY: by the invariant of `LiveClient`, the record is alive.
        unsafe { xqos_client_request(self.raw()) }.cast_mut()
    }

    /// Reads all values needed for each request in a single call. May only be called in a request procedure.
    pub fn head(self) -> Head {
        let mut head = Head::default();
        // SAFETY: by the invariant of `LiveClient`, the record is alive, and `head` has room for the result.
        unsafe { xqos_client_head(self.raw(), &mut head) };
        head
    }

    pub fn set_error_value(self, value: u32) {
        // SAFETY: by the invariant of `LiveClient`, the record is alive.
        unsafe { xqos_client_set_error_value(self.raw(), value) }
    }

    /// Returns true if the client is in a ring of ready clients.
    pub fn is_linked(self) -> bool {
        let node = self.ring();
        // SAFETY: the node is part of the live client.
        unsafe { (*node).next != node }
    }
}

/// The client record that contains this ring node; meaningless for the head of a ring.
pub fn record_around(node: *mut Ring) -> ClientPtr {
    // SAFETY: this is only address arithmetic.
    unsafe { xqos_ring_client(node) }
}

/// The client of a ClientStateCallback.
///
/// # Safety
/// `info` is that callback's argument.
pub unsafe fn of_state_info(info: *mut c_void) -> Option<LiveClient> {
    // SAFETY: guaranteed by the caller.
    unsafe { LiveClient::new(xqos_state_client(info)) }
}

/// The client of a ServerGrabCallback, and whether it grabbed the server (`Some(true)`), ungrabbed it, or neither.
///
/// # Safety
/// `info` is that callback's argument.
pub unsafe fn of_grab_info(info: *mut c_void) -> (Option<LiveClient>, Option<bool>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let state = match xqos_grab_state(info) {
            1 => Some(true),
            0 => Some(false),
            _ => None,
        };
        (LiveClient::new(xqos_grab_client(info)), state)
    }
}

/// The client that an EventCallback names, and the kind of event: `Some(true)` for user input, `Some(false)` for an
/// Expose, `None` for any other event.
///
/// # Safety
/// `info` is that callback's argument.
pub unsafe fn of_event_info(info: *mut c_void, xinput_opcode: c_int) -> (Option<LiveClient>, Option<bool>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let kind = match xqos_event_kind(info, xinput_opcode) {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        };
        (LiveClient::new(xqos_event_client(info)), kind)
    }
}

/// The selection's atom and its new owner, from a SelectionCallback.
///
/// # Safety
/// `info` is that callback's argument.
pub unsafe fn of_selection_info(info: *mut c_void) -> (u32, Option<LiveClient>) {
    // SAFETY: guaranteed by the caller.
    unsafe { (xqos_selection_atom(info), LiveClient::new(xqos_selection_owner(info))) }
}

/// The ids of the root windows of all screens.
///
/// # Safety
/// `setup` is the server's ConnectionInfo, not null.
pub unsafe fn roots(setup: *const c_void) -> Vec<u32> {
    // SAFETY: guaranteed by the caller.
    (0..).map(|screen| unsafe { xqos_setup_root(setup, screen) }).take_while(|&id| id != 0).collect()
}

/// A resource id of the client that redirects the top-level windows of this screen, if any client does.
///
/// # Safety
/// `root` is the `WindowRec` of the window `id`, in a server of release 21.1 or later.
pub unsafe fn redirector(root: NonNull<c_void>, id: u32) -> Option<u32> {
    // SAFETY: guaranteed by the caller.
    Some(unsafe { xqos_redirector(root.as_ptr(), id) }).filter(|&resource| resource != 0)
}

/// Resource ids of the clients that have grabbed the pointer and the keyboard; 0 if not grabbed.
///
/// # Safety
/// `input` is the `inputInfo` of a server of release 21.1.
pub unsafe fn device_grabs(input: NonNull<c_void>) -> [u32; 2] {
    // SAFETY: guaranteed by the caller.
    [0, 1].map(|of_keyboard| unsafe { xqos_device_grab(input.as_ptr(), of_keyboard) })
}

/// The vendor and release in a connection setup.
///
/// # Safety
/// `setup` is the server's ConnectionInfo, not null.
pub unsafe fn vendor_and_release(setup: *const c_void) -> (String, u32) {
    let (mut length, mut release) = (0, 0);
    // SAFETY: guaranteed by the caller. The fixed part is followed by the vendor string of `length` bytes.
    unsafe {
        let vendor = xqos_setup_vendor(setup, &mut length, &mut release);
        let bytes = std::slice::from_raw_parts(vendor.cast::<u8>(), (length as usize).min(256));
        (String::from_utf8_lossy(bytes).into_owned(), release)
    }
}
