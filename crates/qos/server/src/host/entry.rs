// SPDX-License-Identifier: MIT
//! Loads xqos in the server, through Xorg's module data or the constructor of a preloaded object, and chooses the host.
//!
//! With the dix host, both of these call LoadExtensionList, and the server runs `hooks::init_extension` with its own
//! extensions, at start and after each reset. In a process that is not an X server, the constructor does nothing, so
//! that wrapper scripts pass the preload on to the server. In the server, the constructor removes the preload from the
//! environment immediately; otherwise the server's child `sh -c xkbcomp` would inherit it.

use crate::host::dix::hooks;
use crate::host::dix::symbols::{ExtensionModule, symbols};
use crate::host::libc::{instance, redirect};
use crate::host::startup::{self, HOST, HostChoice};
use crate::mechanism::settings::Settings;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// `XF86ModuleVersionInfo` of xf86Module.h.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleVersion {
    name: *const c_char,
    vendor: *const c_char,
    mark_1: u32,
    mark_2: u32,
    xorg_version: u32,
    major: u8,
    minor: u8,
    patch: u16,
    abi_class: *const c_char,
    abi_version: u32,
    module_class: *const c_char,
    checksum: [u32; 4],
}

/// `XF86ModuleData` of xf86Module.h.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleData {
    version: &'static ModuleVersion,
    setup: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut c_int) -> *mut c_void,
    teardown: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the data are constant, and the server only reads them.
unsafe impl Sync for ModuleVersion {}
// SAFETY: as above.
unsafe impl Sync for ModuleData {}

static VERSION: ModuleVersion = ModuleVersion {
    name: c"xqos".as_ptr(),
    vendor: c"xqos".as_ptr(),
    // MODINFOSTRING1 and MODINFOSTRING2
    mark_1: 0xef23_fdc5,
    mark_2: 0x10dc_023a,
    // Any version is accepted here, because xqos checks the server itself.
    xorg_version: 12_101_007,
    major: 0,
    minor: 1,
    patch: 0,
    // ABI_CLASS_NONE. With any other class, Xorg would refuse a module built for another ABI version, although this
    // module links no server symbols. xqos checks what it relies on before using it: symbols by name, vendor and
    // release, and the contents of the client record (`clients`).
    abi_class: null(),
    abi_version: 0,
    module_class: null(),
    checksum: [0; 4],
};

/// The symbol that Xorg looks up in a module named `xqos`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static xqosModuleData: ModuleData = ModuleData { version: &VERSION, setup: xorg_setup, teardown: None };

/// The dynamic loader runs this if the object is preloaded, or before `xorg_setup` if Xorg loads the object.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

static REGISTERED: AtomicBool = AtomicBool::new(false);

static EXTENSION: ExtensionModule =
    ExtensionModule { init: hooks::init_extension, name: c"XQOS".as_ptr(), disable: null_mut() };

extern "C" fn constructor() {
    // A panic must not unwind into the loader.
    let _ = std::panic::catch_unwind(|| {
        if !is_preloaded() {
            return;
        }
        startup::set_preloaded();
        match (HostChoice::read(), symbols()) {
            (HostChoice::Any | HostChoice::Dix, Ok(_)) => {
                leave_the_environment();
                register(null_mut());
            }
            (HostChoice::Any | HostChoice::Libc, _) if looks_like_x_server() => {
                leave_the_environment();
                instance::enable(Settings::read(|_| None, |line| eprintln!("xqos: {line}")));
            }
            (HostChoice::Dix, Err(missing)) if looks_like_x_server() => {
                leave_the_environment();
                eprintln!(
                    "xqos: this X server does not export {missing}; unset {HOST} to serve it through libc instead"
                );
            }
            _ => {}
        }
    });
}

unsafe extern "C" fn xorg_setup(
    _module: *mut c_void,
    options: *mut c_void,
    error_major: *mut c_int,
    _error_minor: *mut c_int,
) -> *mut c_void {
    const LDR_MODSPECIFIC: c_int = 12;
    let serves = || match (HostChoice::read(), symbols()) {
        // The object is also preloaded.
        _ if instance::is_enabled() => true,
        (HostChoice::Libc, _) | (HostChoice::Any, Err(_)) => serve_module_through_libc(options),
        (HostChoice::Any | HostChoice::Dix, _) => register(options),
    };
    if std::panic::catch_unwind(serves).unwrap_or(false) {
        return std::ptr::dangling_mut::<u8>().cast();
    }
    // SAFETY: Xorg passes null or a pointer to room for the code.
    if let Some(code) = unsafe { error_major.as_mut() } {
        *code = LDR_MODSPECIFIC;
    }
    null_mut()
}

/// Serves an Xorg that has loaded this module, using the libc host.
fn serve_module_through_libc(xorg_options: *mut c_void) -> bool {
    if let Err(reason) = redirect::install() {
        eprintln!("xqos: {reason}; the X server keeps its own scheduling");
        return false;
    }
    let option = |name: &str| symbols().ok().and_then(|symbols| symbols.option(xorg_options, name));
    instance::enable(Settings::read(option, |line| eprintln!("xqos: {line}")));
    true
}

/// Registers our extension with the server. Later calls do nothing.
fn register(xorg_options: *mut c_void) -> bool {
    let symbols = match symbols() {
        Ok(symbols) => symbols,
        Err(missing) => {
            eprintln!("xqos: this X server does not export {missing}, so it keeps its own scheduling");
            return false;
        }
    };
    if REGISTERED.swap(true, Ordering::SeqCst) {
        return true;
    }
    startup::set_settings(|| Settings::read(|name| symbols.option(xorg_options, name), |line| symbols.log(line)));
    // SAFETY: the entry lives as long as the object, which is never unloaded once it has a thread.
    unsafe { (symbols.load_extension_list)(&EXTENSION, 1, 0) };
    true
}

/// Returns true if LD_PRELOAD names this object. Otherwise Xorg's module loader has loaded it.
fn is_preloaded() -> bool {
    own_file_name().is_some_and(|own| preload_entries().iter().any(|entry| file_name(entry) == own))
}

/// Removes this object from LD_PRELOAD, and [`HOST`] from the environment.
fn leave_the_environment() {
    // SAFETY: as below.
    unsafe { std::env::remove_var(HOST) };
    let Some(own) = own_file_name() else { return };
    let rest: Vec<String> = preload_entries().into_iter().filter(|entry| file_name(entry) != own).collect();
    // SAFETY: the loader runs this before the process has a second thread.
    unsafe {
        if rest.is_empty() {
            std::env::remove_var("LD_PRELOAD")
        } else {
            std::env::set_var("LD_PRELOAD", rest.join(":"))
        }
    }
}

fn preload_entries() -> Vec<String> {
    let list = std::env::var("LD_PRELOAD").unwrap_or_default();
    list.split([':', ' ']).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The file from which this code was loaded.
fn own_file_name() -> Option<String> {
    // SAFETY: dladdr fills in the record for any address, and ours is in a loaded object.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(std::ptr::from_ref(&VERSION).cast(), &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let path = std::ffi::CStr::from_ptr(info.dli_fname).to_string_lossy();
        Some(file_name(&path).to_owned())
    }
}

fn looks_like_x_server() -> bool {
    const SERVERS: [&str; 8] = ["Xorg", "Xvfb", "Xephyr", "Xtigervnc", "Xvnc", "Xwayland", "Xnest", "X"];
    let program = std::env::current_exe().unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // A diverted program has the suffix .distrib.
    SERVERS.contains(&name.split('.').next().unwrap_or_default())
}
