// SPDX-License-Identifier: MIT
//! The server's drawables, graphics contexts and pictures, through the shim, and reading an image in parts.

use crate::host::dix::client::{Client, ClientPtr};
use crate::host::dix::symbols::Symbols;
use std::ffi::{c_int, c_void};

/// `struct xqos_cut_server` of the shim. Only made if every symbol was found.
#[repr(C)]
#[derive(Debug)]
pub struct CutServer {
    look_up_drawable: *const c_void,
    look_up_gc: *const c_void,
    look_up_resource: *const c_void,
    write_to_client: *const c_void,
    censor_image: *const c_void,
    reset_request: *const c_void,
    server_client: *const c_void,
    /// The server's number for pictures among its resources; 0 if not known.
    picture_type: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Null for a picture without a drawable.
    pub drawable: *const c_void,
    /// The pixmap that holds the pixels.
    pub backing: *const c_void,
    pub is_window: u8,
    pub is_redirected: u8,
    pub has_inferiors: u8,
    /// It also uses something that is not looked up.
    pub unknown: u8,
}

impl Default for Used {
    fn default() -> Used {
        let none = std::ptr::null();
        Used { drawable: none, backing: none, is_window: 0, is_redirected: 0, has_inferiors: 0, unknown: 0 }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The pixmap of the tile or stipple that it draws with; null if none.
    pub pattern: *const c_void,
    pub has_inferiors: u8,
    pub has_exposures: u8,
    /// Lines have the width 0 and no dashes.
    pub is_thin: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Image {
    pub x: i16,
    pub y: i16,
    pub width: u16,
    pub height: u16,
    pub planes: u32,
}

unsafe extern "C" {
    fn xqos_use_drawable(server: *const CutServer, id: u32, used: *mut Used) -> c_int;
    fn xqos_use_picture(server: *const CutServer, id: u32, used: *mut Used) -> c_int;
    fn xqos_use_background(server: *const CutServer, id: u32, used: *mut Used) -> c_int;
    fn xqos_use_context(server: *const CutServer, id: u32, context: *mut Context) -> c_int;
    fn xqos_set_exposures(server: *const CutServer, id: u32, on: c_int);
    fn xqos_is_within(drawable: *const c_void, image: *const Image) -> c_int;
    fn xqos_row_bytes(server: *const CutServer, client: ClientPtr, drawable: *const c_void, image: *const Image)
    -> u32;
    fn xqos_read_rows(
        server: *const CutServer,
        client: ClientPtr,
        drawable: *const c_void,
        image: *const Image,
        row_bytes: u32,
        into: *mut u8,
    );
    fn xqos_send_image(
        server: *const CutServer,
        client: ClientPtr,
        drawable: *const c_void,
        bytes: u32,
        data: *const u8,
    );
    fn xqos_client_set_request(client: ClientPtr, request: *mut u8, words: u32);
    fn xqos_client_request_words(client: ClientPtr) -> u32;
    fn xqos_client_set_sequence(client: ClientPtr, sequence: u32);
    fn xqos_client_set_mute(client: ClientPtr, mute: c_int) -> c_int;
    fn xqos_return_request(server: *const CutServer, client: ClientPtr);
}

// All calls happen on the server's thread, in a request procedure or between two slices, and the shim's functions keep
// no pointer. That a `Client` is alive is its own invariant. `CutServer` holds only symbols of the declared kinds.
#[allow(clippy::undocumented_unsafe_blocks, reason = "the comment above holds for each block of this impl")]
impl CutServer {
    pub fn find(symbols: &Symbols) -> Option<CutServer> {
        let symbol = |name| crate::host::dix::symbols::symbol(name).map(<*mut c_void>::cast_const).ok();
        // With Xinerama on, the procedures of the table call each other for each screen.
        let no_xinerama = symbol(c"noPanoramiXExtension").map_or(1, |flag| unsafe { *flag.cast::<c_int>() });
        let server = CutServer {
            look_up_drawable: symbol(c"dixLookupDrawable")?,
            look_up_gc: symbol(c"dixLookupGC")?,
            look_up_resource: symbol(c"dixLookupResourceByType")?,
            write_to_client: symbol(c"WriteToClient")?,
            censor_image: symbol(c"XaceCensorImage")?,
            reset_request: symbol(c"ResetCurrentRequest")?,
            server_client: symbols.server_client.cast_const().cast(),
            picture_type: symbols.resource_type(c"PICTURE").unwrap_or(0),
        };
        (no_xinerama != 0 && !server.server_client.is_null()).then_some(server)
    }

    pub fn drawable(&self, id: u32) -> Option<Used> {
        let mut used = Used::default();
        (unsafe { xqos_use_drawable(self, id, &mut used) } != 0).then_some(used)
    }

    pub fn picture(&self, id: u32) -> Option<Used> {
        let mut used = Used::default();
        (id != 0 && unsafe { xqos_use_picture(self, id, &mut used) } != 0).then_some(used)
    }

    pub fn background(&self, id: u32) -> Option<Used> {
        let mut used = Used::default();
        (unsafe { xqos_use_background(self, id, &mut used) } != 0).then_some(used)
    }

    pub fn context(&self, id: u32) -> Option<Context> {
        let mut context = Context { pattern: std::ptr::null(), has_inferiors: 0, has_exposures: 0, is_thin: 0 };
        (unsafe { xqos_use_context(self, id, &mut context) } != 0).then_some(context)
    }

    pub fn set_exposures(&self, id: u32, on: bool) {
        unsafe { xqos_set_exposures(self, id, c_int::from(on)) }
    }

    pub fn is_within(&self, drawable: &Used, image: &Image) -> bool {
        unsafe { xqos_is_within(drawable.drawable, image) != 0 }
    }

    /// The bytes of a row of the image; 0 if it cannot be read in parts.
    pub fn row_bytes(&self, client: Client, drawable: &Used, image: &Image) -> u32 {
        unsafe { xqos_row_bytes(self, client.raw(), drawable.drawable, image) }
    }

    /// Reads all rows of `image` into `into`, which has room for them.
    pub fn read_rows(&self, client: Client, drawable: &Used, image: &Image, into: &mut [u8]) {
        let row_bytes = (into.len() / usize::from(image.height.max(1))) as u32;
        unsafe { xqos_read_rows(self, client.raw(), drawable.drawable, image, row_bytes, into.as_mut_ptr()) }
    }

    /// Sends the reply of GetImage with its data, or that of MIT-SHM GetImage.
    pub fn send_image(&self, client: Client, drawable: &Used, bytes: u32, data: Option<&[u8]>) {
        let data = data.map_or(std::ptr::null(), <[u8]>::as_ptr);
        unsafe { xqos_send_image(self, client.raw(), drawable.drawable, bytes, data) }
    }

    pub fn request_words(&self, client: Client) -> u32 {
        unsafe { xqos_client_request_words(client.raw()) }
    }

    /// Exchanges the request that the client's procedure sees.
    ///
    /// # Safety
    /// `request` points to this many words, until the next call.
    pub unsafe fn set_request(&self, client: Client, request: *mut u8, words: u32) {
        unsafe { xqos_client_set_request(client.raw(), request, words) }
    }

    pub fn set_sequence(&self, client: Client, sequence: u32) {
        unsafe { xqos_client_set_sequence(client.raw(), sequence) }
    }

    /// Runs `work` while the server drops what it writes to the client.
    pub fn muted<T>(&self, client: Client, work: impl FnOnce() -> T) -> T {
        let before = unsafe { xqos_client_set_mute(client.raw(), 1) };
        let result = work();
        unsafe { xqos_client_set_mute(client.raw(), before) };
        result
    }

    /// Hands the request back to the server, which dispatches it again when the client is served next.
    pub fn return_request(&self, client: Client) {
        unsafe { xqos_return_request(self, client.raw()) }
    }
}
