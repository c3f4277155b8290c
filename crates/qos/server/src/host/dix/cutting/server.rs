// SPDX-License-Identifier: MIT
//! The server's drawables, graphics contexts, pictures and requests, through the shim.

use crate::host::dix::client::{ClientPtr, LiveClient};
use crate::host::dix::symbols::Symbols;
use std::ffi::{c_int, c_void};

/// `struct xqos_cut_server` of the shim. Only made if every symbol was found. It is copied, so that no reference to the
/// state of this module is needed during a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CutServer {
    look_up_drawable: *const c_void,
    look_up_gc: *const c_void,
    look_up_resource: *const c_void,
    reset_request: *const c_void,
    queue_work: *const c_void,
    is_asleep: *const c_void,
    damage_create: *const c_void,
    damage_register: *const c_void,
    damage_unregister: *const c_void,
    damage_destroy: *const c_void,
    server_client: *const c_void,
    screen_info: *const c_void,
    /// The server's number for pictures among its resources; 0 if not known.
    picture_type: u32,
}

/// `struct xqos_used` of the shim.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Null for a picture without a drawable.
    pub drawable: *const c_void,
    /// The pixmap that holds the pixels.
    pub backing: *const c_void,
    /// 0 if no request can name it.
    pub id: u32,
    pub is_window: u8,
    pub has_inferiors: u8,
    /// It also uses something that is not looked up.
    pub unknown: u8,
    /// Only requests touch its pixels.
    pub is_private: u8,
    /// A pixmap that holds the pixels of a window.
    pub is_backing: u8,
    /// A picture without a transformation, a convolution or an alpha map.
    pub is_plain: u8,
    /// A picture's format uses all bits of the drawable's pixels.
    pub has_all_bits: u8,
}

impl Default for Used {
    fn default() -> Used {
        // SAFETY: null pointers and zeros are values of all fields.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// The pixmap of the tile or stipple that it draws with, if any.
    pub pattern: Used,
    pub has_inferiors: u8,
    pub has_exposures: u8,
    /// Lines have the width 0 and no dashes.
    pub is_thin: u8,
}

/// Work that the server does between slices.
pub type Work = unsafe extern "C" fn(ClientPtr, *mut c_void) -> c_int;

unsafe extern "C" {
    fn xqos_use_drawable(server: *const CutServer, id: u32, used: *mut Used) -> c_int;
    fn xqos_use_picture(server: *const CutServer, id: u32, used: *mut Used) -> c_int;
    fn xqos_use_background(server: *const CutServer, id: u32, used: *mut Used) -> c_int;
    fn xqos_use_context(server: *const CutServer, id: u32, context: *mut Context) -> c_int;
    fn xqos_set_exposures(server: *const CutServer, id: u32, on: c_int);
    fn xqos_is_there(drawable: *const c_void, x: c_int, y: c_int, width: c_int, height: c_int) -> c_int;
    fn xqos_is_watched(server: *const CutServer, drawable: *const c_void) -> c_int;
    fn xqos_client_set_request(client: ClientPtr, request: *mut u8, words: u32);
    fn xqos_client_request_words(client: ClientPtr) -> u32;
    fn xqos_client_set_sequence(client: ClientPtr, sequence: u32);
    fn xqos_client_owes_text(server: *const CutServer, client: ClientPtr) -> c_int;
    fn xqos_return_request(server: *const CutServer, client: ClientPtr);
    fn xqos_queue_work(server: *const CutServer, client: ClientPtr, work: Work) -> c_int;
    fn xqos_watch_windows(server: *const CutServer, changes: Option<unsafe extern "C" fn()>);
    fn xqos_forget_windows();
}

// All calls happen on the server's thread, in a request procedure or between two slices, and the shim's functions keep
// no pointer. By the invariant of `LiveClient`, its record is alive. The symbols of `CutServer` are of these kinds.
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
            reset_request: symbol(c"ResetCurrentRequest")?,
            queue_work: symbol(c"QueueWorkProc")?,
            is_asleep: symbol(c"ClientIsAsleep")?,
            damage_create: symbol(c"DamageCreate")?,
            damage_register: symbol(c"DamageRegister")?,
            damage_unregister: symbol(c"DamageUnregister")?,
            damage_destroy: symbol(c"DamageDestroy")?,
            server_client: symbols.server_client.cast_const().cast(),
            screen_info: symbol(c"screenInfo")?,
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
        let mut context = Context::default();
        (unsafe { xqos_use_context(self, id, &mut context) } != 0).then_some(context)
    }

    pub fn set_exposures(&self, id: u32, on: bool) {
        unsafe { xqos_set_exposures(self, id, c_int::from(on)) }
    }

    /// Returns true if all of this rectangle (x, y, width, height) has pixels: in a pixmap, or in a window that is not
    /// covered.
    pub fn is_there(&self, drawable: &Used, [x, y]: [i16; 2], [width, height]: [u16; 2]) -> bool {
        unsafe { xqos_is_there(drawable.drawable, x.into(), y.into(), width.into(), height.into()) != 0 }
    }

    /// Returns true if each operation that draws to this drawable is reported to a client.
    pub fn is_watched(&self, drawable: &Used) -> bool {
        unsafe { xqos_is_watched(self, drawable.drawable) != 0 }
    }

    pub fn request_words(&self, client: LiveClient) -> u32 {
        unsafe { xqos_client_request_words(client.raw()) }
    }

    /// Exchanges the request that the client's procedure sees.
    ///
    /// # Safety
    /// `request` points to `words` units of four bytes, which stay valid until the next call for this client.
    pub unsafe fn set_request(&self, client: LiveClient, request: *mut u8, words: u32) {
        unsafe { xqos_client_set_request(client.raw(), request, words) }
    }

    pub fn set_sequence(&self, client: LiveClient, sequence: u32) {
        unsafe { xqos_client_set_sequence(client.raw(), sequence) }
    }

    /// Returns true if the client waits for a font, and draws text later, outside of a request.
    pub fn owes_text(&self, client: LiveClient) -> bool {
        unsafe { xqos_client_owes_text(self, client.raw()) != 0 }
    }

    /// Hands the request back to the server, which dispatches it again when the client is served next.
    pub fn return_request(&self, client: LiveClient) {
        unsafe { xqos_return_request(self, client.raw()) }
    }

    /// Makes the server call `work` between slices, and before it frees the requests of a client that disconnects,
    /// until `work` returns nonzero. Returns false if there is no memory.
    pub fn queue_work(&self, client: LiveClient, work: Work) -> bool {
        unsafe { xqos_queue_work(self, client.raw(), work) != 0 }
    }

    /// Sets the function that is called before the visible parts of windows change.
    pub fn watch_windows(&self, changes: Option<unsafe extern "C" fn()>) {
        unsafe { xqos_watch_windows(self, changes) }
    }

    /// The server has new screens after a reset.
    pub fn forget_windows(&self) {
        unsafe { xqos_forget_windows() }
    }
}
