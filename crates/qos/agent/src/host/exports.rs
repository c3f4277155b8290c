// SPDX-License-Identifier: MIT
//! Reads a server program's dynamic symbol table to find out whether the program exports the symbols that xqos needs.
//!
//! Debian's Xorg, Xvfb, Xephyr and Xtigervnc export them. Xwayland, and servers linked without export flags (Xvfb and
//! Xephyr of some other distributions), do not, so they are served through libc.

use crate::error::{Result, asking, refused};
use object::{Object, ObjectSymbol};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The symbols that the module needs to use a server's own functions.
pub const NEEDED: [&str; 15] = [
    "LoadExtensionList",
    "AddExtension",
    "RegisterBlockAndWakeupHandlers",
    "AddCallback",
    "ClientStateCallback",
    "isItTimeToYield",
    "clients",
    "currentMaxClients",
    "GetClientFd",
    "IgnoreClient",
    "AttendClient",
    "SetNotifyFd",
    "WriteToClient",
    "ProcVector",
    "SwappedProcVector",
];

/// The needed symbols that a program does not export; `None` if it is not an ELF program, such as a script.
pub fn missing(program: &Path) -> Result<Option<Vec<&'static str>>> {
    let bytes = fs::read(program).map_err(asking(format!("cannot read {}", program.display())))?;
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let file = object::File::parse(&*bytes).map_err(|error| refused!("{} is damaged: {error}", program.display()))?;
    let exported: HashSet<&str> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.is_global())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    Ok(Some(NEEDED.into_iter().filter(|name| !exported.contains(name)).collect()))
}

/// Describes the exports of a program, as the predicate of a sentence.
pub fn verdict(missing: &[&str]) -> String {
    let count = NEEDED.len();
    match missing {
        [] => format!("exports all {count} symbols that xqos needs"),
        [one] => format!("does not export {one}, which xqos needs"),
        all if all.len() == count => format!("exports none of the {count} symbols that xqos needs"),
        [first, rest @ ..] => {
            format!("does not export {first} and {} more of the {count} symbols that xqos needs", rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_a_server_exports_none_of_them() {
        let me = std::env::current_exe().unwrap();
        let missing = missing(&me).unwrap().expect("tests are ELF programs");
        assert_eq!(missing.len(), NEEDED.len());
        assert_eq!(verdict(&missing), "exports none of the 15 symbols that xqos needs");
    }

    #[test]
    fn a_script_is_not_an_elf_program_and_a_missing_file_is_an_error() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(missing(&manifest).unwrap(), None);
        assert!(missing(Path::new("/nowhere/Xvfb")).is_err());
    }

    #[test]
    fn missing_symbols_are_counted() {
        assert_eq!(verdict(&["clients"]), "does not export clients, which xqos needs");
        assert!(verdict(&["clients", "ProcVector"]).contains("clients and 1 more of the 15 symbols"));
    }
}
