// SPDX-License-Identifier: MIT
//! Redirects the server program's libc calls to ours. If xqos is a module, the loader has bound these calls to libc.
//!
//! A program calls a library function through a slot that the loader fills with the function's address. This host puts
//! its own functions into the program's slots for the calls that it needs. All other objects still call libc.

use super::calls;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;

/// `Elf64_Dyn` of elf.h.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const END: i64 = 0;
const PLT_RELOCATIONS_BYTES: i64 = 2;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_BYTES: i64 = 8;
const PLT_RELOCATIONS: i64 = 23;

/// Relocation types that mark a slot: `GLOB_DAT` and `JUMP_SLOT` of elf.h.
#[cfg(target_arch = "x86_64")]
const SLOT_KINDS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const SLOT_KINDS: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SLOT_KINDS: [u32; 0] = [];

/// The calls that this host interposes.
fn ours() -> [(&'static CStr, *const c_void); 7] {
    [
        (c"epoll_ctl", calls::epoll_ctl as *const c_void),
        (c"epoll_wait", calls::epoll_wait as *const c_void),
        (c"read", calls::read as *const c_void),
        (c"recvmsg", calls::recvmsg as *const c_void),
        (c"sendmsg", calls::sendmsg as *const c_void),
        (c"setitimer", calls::setitimer as *const c_void),
        (c"writev", calls::writev as *const c_void),
    ]
}

/// The main program of the process, as described by the loader.
struct MainProgram {
    base: u64,
    dynamic: *const Dynamic,
    /// Addresses that the loader has made read-only after filling them.
    read_only: std::ops::Range<u64>,
}

/// Redirects the program's calls. Fails if the program does not call epoll_ctl and epoll_wait.
pub fn install() -> io::Result<()> {
    let program = program().ok_or_else(|| io::Error::other("the program's dynamic section was not found"))?;
    let found: Vec<(u64, *const c_void)> = ours()
        .into_iter()
        .flat_map(|(name, call)| slots(&program, name).into_iter().map(move |slot| (slot, call)))
        .collect();
    let is_called = |wanted: *const c_void| found.iter().any(|&(_, call)| call == wanted);
    if let Some((name, _)) = ours().into_iter().take(2).find(|&(_, call)| !is_called(call)) {
        return Err(io::Error::other(format!("the program does not call {}", name.to_string_lossy())));
    }
    for (slot, call) in found {
        write(&program, slot, call)?;
    }
    Ok(())
}

fn program() -> Option<MainProgram> {
    /// The loader reports the program as the first object.
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader passes its record and headers, and the variable that `program` gave it.
        unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            let of_kind = |kind| headers.iter().find(|header| header.p_type == kind);
            let read_only = of_kind(libc::PT_GNU_RELRO).map_or(0..0, |header| {
                info.dlpi_addr + header.p_vaddr..info.dlpi_addr + header.p_vaddr + header.p_memsz
            });
            if let Some(dynamic) = of_kind(libc::PT_DYNAMIC) {
                let dynamic = (info.dlpi_addr + dynamic.p_vaddr) as *const Dynamic;
                *found.cast::<Option<MainProgram>>() = Some(MainProgram { base: info.dlpi_addr, dynamic, read_only });
            }
        }
        1
    }
    let mut found: Option<MainProgram> = None;
    // SAFETY: the callback has the right type, and the variable lives through the call.
    unsafe { libc::dl_iterate_phdr(Some(first), std::ptr::from_mut(&mut found).cast()) };
    found
}

impl MainProgram {
    /// A value in the dynamic section; 0 if it is missing.
    fn entry(&self, tag: i64) -> u64 {
        let mut at = self.dynamic;
        // SAFETY: the section ends with an END entry.
        unsafe {
            while (*at).tag != END {
                if (*at).tag == tag {
                    return (*at).value;
                }
                at = at.add(1);
            }
        }
        0
    }

    /// An entry's value as an address. Some loaders have already added the base to it.
    fn address(&self, tag: i64) -> u64 {
        let value = self.entry(tag);
        if value != 0 && value < self.base { value + self.base } else { value }
    }

    fn relocations(&self, table: i64, bytes: i64) -> &[libc::Elf64_Rela] {
        let (address, bytes) = (self.address(table), self.entry(bytes));
        if address == 0 {
            return &[];
        }
        // SAFETY: the table belongs to the program, which stays loaded.
        unsafe { std::slice::from_raw_parts(address as *const _, bytes as usize / size_of::<libc::Elf64_Rela>()) }
    }
}

/// The slots that hold the address of a function.
fn slots(program: &MainProgram, name: &CStr) -> Vec<u64> {
    let (symbols, strings) = (program.address(SYMBOLS) as *const libc::Elf64_Sym, program.address(STRINGS));
    if symbols.is_null() || strings == 0 {
        return Vec::new();
    }
    let all = [(RELOCATIONS, RELOCATIONS_BYTES), (PLT_RELOCATIONS, PLT_RELOCATIONS_BYTES)];
    all.into_iter()
        .flat_map(|(table, bytes)| program.relocations(table, bytes))
        .filter(|entry| SLOT_KINDS.contains(&(entry.r_info as u32)))
        .filter(|entry| {
            // SAFETY: relocations refer to symbols of the program's table, which refer to strings of its string table.
            let symbol = unsafe { &*symbols.add((entry.r_info >> 32) as usize) };
            // SAFETY: as above.
            unsafe { CStr::from_ptr((strings + u64::from(symbol.st_name)) as *const c_char) == name }
        })
        .map(|entry| program.base + entry.r_offset)
        .collect()
}

fn write(program: &MainProgram, slot: u64, call: *const c_void) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let start = (slot & !(page - 1)) as *mut c_void;
    let protect = |protection| {
        // SAFETY: the page is part of the program's data and stays readable.
        if unsafe { libc::mprotect(start, page as usize, protection) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    protect(libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: the slot holds an address and is now writable, and no other thread of the server can call through it yet.
    unsafe { (slot as *mut *const c_void).write_volatile(call) };
    if program.read_only.contains(&slot) { protect(libc::PROT_READ) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_slots_only_for_the_functions_it_calls() {
        let program = program().unwrap();
        assert!(!slots(&program, c"mprotect").is_empty());
        assert!(slots(&program, c"no_such_function").is_empty());
    }

    #[test]
    fn slots_in_read_only_pages_can_be_written() {
        let program = program().unwrap();
        for slot in slots(&program, c"mprotect") {
            // SAFETY: this is a slot of this program.
            let now = unsafe { *(slot as *const *const c_void) };
            write(&program, slot, now).unwrap();
        }
    }
}
