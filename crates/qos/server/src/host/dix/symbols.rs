// SPDX-License-Identifier: MIT
//! The server's functions and variables that xqos uses, looked up by name when the server loads xqos.
//!
//! The lookup leaves no undefined symbols, so the same binary works in every server. If a server lacks a required
//! symbol, xqos logs its name in one line and does not touch the server.

use crate::host::dix::client::{ClientPtr, ConnectionState, LiveClient};
use std::ffi::{CStr, CString, c_char, c_int, c_short, c_uint, c_ushort, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

pub type RequestProc = unsafe extern "C" fn(ClientPtr) -> c_int;
pub type Callback = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *mut c_void);
pub type BlockHandler = unsafe extern "C" fn(*mut c_void, *mut c_void);
pub type WakeupHandler = unsafe extern "C" fn(*mut c_void, c_int);
pub type NotifyFd = unsafe extern "C" fn(c_int, c_int, *mut c_void);
type MinorOpcode = unsafe extern "C" fn(ClientPtr) -> c_ushort;
type CloseDown = unsafe extern "C" fn(*mut ExtensionEntry);
type AddExtension = unsafe extern "C" fn(
    *const c_char,
    c_int,
    c_int,
    RequestProc,
    RequestProc,
    CloseDown,
    MinorOpcode,
) -> *mut ExtensionEntry;
type ChangeCallbacks = unsafe extern "C" fn(*mut c_void, Callback, *mut c_void) -> c_int;

/// The fields of `ExtensionEntry` (extnsionst.h) up to the last one that xqos reads.
#[repr(C)]
#[derive(Debug)]
pub struct ExtensionEntry {
    index: c_int,
    close_down: Option<CloseDown>,
    name: *const c_char,
    pub base: c_int,
    pub event_base: c_int,
    event_last: c_int,
    pub error_base: c_int,
}

/// `ExtensionModule` of extension.h.
#[repr(C)]
#[derive(Debug)]
pub struct ExtensionModule {
    pub init: unsafe extern "C" fn(),
    pub name: *const c_char,
    pub disable: *mut c_int,
}

// SAFETY: the server reads the module on a single thread, and the module never changes.
unsafe impl Sync for ExtensionModule {}

/// Declares the exported functions and variables. If a symbol marked `?` is missing, xqos does not touch the server.
macro_rules! exported {
    ($($(#[$meta:meta])* $seen:vis $field:ident: $type:ty = $found:expr;)*) => {
        /// The server's exported symbols. Functions are called on the server's main thread only.
        #[derive(Debug)]
        pub struct Symbols {
            $($(#[$meta])* $seen $field: $type,)*
        }

        fn look_up() -> Result<Symbols, &'static str> {
            // SAFETY: the types are those of the server's headers extension.h, extnsionst.h, dix.h, os.h and xf86Opt.h.
            unsafe { Ok(Symbols { $($field: $found,)* }) }
        }
    };
}

exported! {
    pub load_extension_list: unsafe extern "C" fn(*const ExtensionModule, c_int, c_int) = function(c"LoadExtensionList")?;
    pub add_extension: AddExtension = function(c"AddExtension")?;
    pub check_extension: unsafe extern "C" fn(*const c_char) -> *mut ExtensionEntry = function(c"CheckExtension")?;
    pub standard_minor_opcode: MinorOpcode = function(c"StandardMinorOpcode")?;
    pub register_handlers: unsafe extern "C" fn(BlockHandler, WakeupHandler, *mut c_void) -> c_int =
        function(c"RegisterBlockAndWakeupHandlers")?;
    pub remove_handlers: unsafe extern "C" fn(BlockHandler, WakeupHandler, *mut c_void) =
        function(c"RemoveBlockAndWakeupHandlers")?;
    pub add_callback: ChangeCallbacks = function(c"AddCallback")?;
    pub delete_callback: ChangeCallbacks = function(c"DeleteCallback")?;
    get_client_fd: unsafe extern "C" fn(ClientPtr) -> c_int = function(c"GetClientFd")?;
    pub ignore_client: unsafe extern "C" fn(ClientPtr) = function(c"IgnoreClient")?;
    pub attend_client: unsafe extern "C" fn(ClientPtr) = function(c"AttendClient")?;
    pub set_notify_fd: unsafe extern "C" fn(c_int, NotifyFd, c_int, *mut c_void) -> c_int = function(c"SetNotifyFd")?;
    write_to_client: unsafe extern "C" fn(ClientPtr, c_int, *const c_void) -> c_int = function(c"WriteToClient")?;
    /// Missing if the server was built without descriptor passing.
    pub write_fd_to_client: Option<unsafe extern "C" fn(ClientPtr, c_int, c_int) -> c_int> =
        function(c"WriteFdToClient").ok();
    error_f: unsafe extern "C" fn(*const c_char, ...) = function(c"ErrorF")?;
    process_work_queue: Option<unsafe extern "C" fn()> = function(c"ProcessWorkQueue").ok();
    /// Missing if the server does not track client names.
    client_command: Option<unsafe extern "C" fn(ClientPtr) -> *const c_char> = function(c"GetClientCmdName").ok();
    /// If this or `selection_callback` is missing, roles cannot be recognised.
    name_for_atom: Option<unsafe extern "C" fn(u32) -> *const c_char> = function(c"NameForAtom").ok();
    look_up_window: Option<unsafe extern "C" fn(*mut *const c_void, u32, ClientPtr, u32) -> c_int> =
        function(c"dixLookupWindow").ok();
    resource_name: Option<unsafe extern "C" fn(u32) -> *const c_char> = function(c"LookupResourceName").ok();
    last_resource_type: *mut u32 = symbol(c"lastResourceType").unwrap_or(std::ptr::null_mut()).cast();
    pub server_client: *mut ClientPtr = symbol(c"serverClient").unwrap_or(std::ptr::null_mut()).cast();
    /// Null if device grabs cannot be read.
    pub input_info: *mut c_void = symbol(c"inputInfo").unwrap_or(std::ptr::null_mut());
    pub selection_callback: *mut c_void = symbol(c"SelectionCallback").unwrap_or(std::ptr::null_mut());
    check_string_option: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_char> =
        function(c"xf86CheckStrOption").ok();
    /// Addresses of callback lists.
    pub client_state_callback: *mut c_void = symbol(c"ClientStateCallback")?;
    pub event_callback: *mut c_void = symbol(c"EventCallback")?;
    pub server_grab_callback: *mut c_void = symbol(c"ServerGrabCallback")?;
    is_it_time_to_yield: *mut c_char = symbol(c"isItTimeToYield")?.cast();
    clients: *mut ClientPtr = symbol(c"clients")?.cast();
    current_max_clients: *mut c_int = symbol(c"currentMaxClients")?.cast();
    pub proc_vector: *mut RequestProc = symbol(c"ProcVector")?.cast();
    pub swapped_proc_vector: *mut RequestProc = symbol(c"SwappedProcVector")?.cast();
    connection_info: *mut *const c_void = symbol(c"ConnectionInfo")?.cast();
}

// SAFETY: addresses of the server's own functions and variables, which live as long as the process. The variables are
// touched on the server's thread only, except `is_it_time_to_yield`, which the watcher sets with an atomic store.
unsafe impl Send for Symbols {}
// SAFETY: as above.
unsafe impl Sync for Symbols {}

static SYMBOLS: OnceLock<Result<Symbols, &'static str>> = OnceLock::new();

/// The symbols of this process's server, or the name of the first missing one.
pub fn symbols() -> Result<&'static Symbols, &'static str> {
    SYMBOLS.get_or_init(look_up).as_ref().map_err(|name| *name)
}

/// The address of a symbol of the process, or its name if it is missing.
pub fn symbol(name: &'static CStr) -> Result<*mut c_void, &'static str> {
    // SAFETY: the name is a C string, and dlsym documents the handle.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() { Err(name.to_str().unwrap_or("?")) } else { Ok(address) }
}

/// A function of the process, by name.
///
/// # Safety
/// `F` is a function pointer type of the C declaration of `name`.
unsafe fn function<F: Copy>(name: &'static CStr) -> Result<F, &'static str> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = symbol(name)?;
    // SAFETY: the caller guarantees that F is the type of this function; both are one pointer wide.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

impl Symbols {
    pub fn log(&self, line: &str) {
        let text: Vec<u8> = format!("xqos: {line}\n").bytes().filter(|&byte| byte != 0).chain([0]).collect();
        // SAFETY: the format takes one string, and the string is terminated.
        unsafe { (self.error_f)(c"%s".as_ptr(), text.as_ptr().cast::<c_char>()) }
    }

    /// Runs the server's queued work, which would otherwise wait until the server polls again. Call it only between
    /// slices and without references to the engine: the work may disconnect clients.
    pub fn do_queued_work(&self) {
        if let Some(process) = self.process_work_queue {
            // SAFETY: this runs on the server's thread, on which the server also calls this function itself.
            unsafe { process() }
        }
    }

    /// Ends the running slice after the current request.
    pub fn end_slice(&self) {
        // SAFETY: this char of the server is volatile and lives as long as the process; any thread may set it.
        unsafe { AtomicU8::from_ptr(self.is_it_time_to_yield.cast()) }.store(1, Ordering::Relaxed);
    }

    /// Returns true if the running slice is to end after the current request.
    pub fn should_yield(&self) -> bool {
        // SAFETY: as in `end_slice`.
        unsafe { AtomicU8::from_ptr(self.is_it_time_to_yield.cast()) }.load(Ordering::Relaxed) != 0
    }

    /// Returns true if RECORD has exchanged the request table of any running client.
    pub fn is_recorded(&self) -> bool {
        let tables = [self.proc_vector, self.swapped_proc_vector].map(|table| table.cast_const().cast());
        let is_other = |client: LiveClient| !tables.contains(&client.request_vector());
        self.live_clients().any(|client| client.state() == ConnectionState::Running && is_other(client))
    }

    pub fn live_clients(&self) -> impl Iterator<Item = LiveClient> {
        // SAFETY: the entries are null or live clients, and this runs on the server's thread.
        (0..self.max_clients()).filter_map(|index| unsafe { LiveClient::new(self.client_at(index)) })
    }

    /// The server's number for resources of this name.
    pub fn resource_type(&self, name: &CStr) -> Option<u32> {
        let name_of = self.resource_name?;
        // SAFETY: this is null or a number of the server, read on the server's thread.
        let last = *unsafe { self.last_resource_type.as_ref() }?;
        (1..=last).find(|&number| {
            // SAFETY: the server returns null or a string that lives as long as the generation.
            let found = unsafe { name_of(number).as_ref() };
            // SAFETY: as above.
            found.is_some_and(|found| unsafe { CStr::from_ptr(found) } == name)
        })
    }

    /// A client's socket; negative if it has none.
    pub fn descriptor(&self, client: LiveClient) -> c_int {
        // SAFETY: by the invariant of `LiveClient`, the record is alive, and its connection is open.
        unsafe { (self.get_client_fd)(client.raw()) }
    }

    /// Sends a reply or event that is already in the client's byte order.
    pub fn send(&self, client: LiveClient, bytes: &[u8]) {
        if !client.is_gone() {
            // SAFETY: the client is open, and the server copies the bytes, of which there are this many.
            unsafe { (self.write_to_client)(client.raw(), bytes.len() as c_int, bytes.as_ptr().cast()) };
        }
    }

    /// The server's client record at this index; null if there is none.
    pub fn client_at(&self, index: usize) -> ClientPtr {
        if index >= self.max_clients() {
            return std::ptr::null_mut();
        }
        // SAFETY: the server's table holds at least currentMaxClients entries.
        unsafe { *self.clients.add(index) }
    }

    /// One more than the largest client index in use.
    pub fn max_clients(&self) -> usize {
        // SAFETY: this is an int of the server, read on the server's thread.
        usize::try_from(unsafe { *self.current_max_clients }).unwrap_or(0)
    }

    pub fn atom_name(&self, atom: u32) -> Option<String> {
        // SAFETY: the server returns null or a string that lives as long as the generation.
        let name = unsafe { (self.name_for_atom?)(atom).as_ref() }?;
        // SAFETY: as above.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// The window with this id, looked up with the server's own access rights.
    pub fn window(&self, id: u32) -> Option<NonNull<c_void>> {
        /// `DixGetAttrAccess` of resource.h.
        const GET_ATTRIBUTES: u32 = 1 << 4;
        if self.server_client.is_null() {
            return None;
        }
        let mut window = std::ptr::null();
        // SAFETY: `window` has room for the result, and the server's own client is read on the server's thread.
        let status = unsafe { (self.look_up_window?)(&mut window, id, *self.server_client, GET_ATTRIBUTES) };
        NonNull::new(window.cast_mut()).filter(|_| status == x_error::SUCCESS)
    }

    pub fn extension(&self, name: &CStr) -> Option<&ExtensionEntry> {
        // SAFETY: the server returns null or an entry that lives until the extensions are closed down.
        unsafe { (self.check_extension)(name.as_ptr()).as_ref() }
    }

    /// The connection setup sent to clients; null until the server has created it.
    pub fn connection_setup(&self) -> *const c_void {
        // SAFETY: this is a pointer variable of the server, read on the server's thread.
        unsafe { *self.connection_info }
    }

    /// A client's command name, if the server knows it.
    pub fn command_of(&self, client: ClientPtr) -> Option<String> {
        // SAFETY: the server returns null or a string that lives as long as the client.
        let name = unsafe { (self.client_command?)(client).as_ref() }?;
        // SAFETY: as above.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// Hides our extension by overwriting the first letter of its name. Programs then use the control socket.
    pub fn hide_extension(&self, name: &CStr) {
        // SAFETY: the name is a C string, and the entry has the server's own copy of it.
        unsafe {
            if let Some(entry) = (self.check_extension)(name.as_ptr()).as_ref() {
                entry.name.cast_mut().write(b'-' as c_char);
            }
        }
    }

    /// An option of our `SubSection` in xorg.conf.
    pub fn option(&self, options: *mut c_void, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        if options.is_null() {
            return None;
        }
        // SAFETY: `options` is the list that Xorg gave to the module's setup, and the default is null.
        let value = unsafe { (self.check_string_option?)(options, name.as_ptr(), std::ptr::null()).as_mut() }?;
        // SAFETY: Xorg returns a copy allocated with malloc.
        unsafe {
            let text = CStr::from_ptr(value).to_string_lossy().into_owned();
            libc::free(std::ptr::from_mut(value).cast());
            Some(text)
        }
    }
}

/// The core error codes that our procedures return (X.h).
pub mod x_error {
    use super::c_int;
    pub const SUCCESS: c_int = 0;
    pub const IMPLEMENTATION: c_int = 17;
}

// These types appear only in signatures. The build fails on a platform where their sizes differ.
const _: () = assert!(size_of::<c_uint>() == 4 && size_of::<c_short>() == 2);
