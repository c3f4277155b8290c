// SPDX-License-Identifier: MIT
//! Names of requests: "GetImage" and "RANDR GetScreenResources" instead of 73 and 140.8.
//!
//! Core opcodes and the minor opcodes of extensions are fixed; the server assigns the major opcodes of extensions. A
//! GLX request without a known name is shown as "GLX minor 99".

use xqos_x11::codes::FIRST_EXTENSION;
use xqos_x11::names::{CORE, NameKind, table};

/// The extensions of one server.
#[derive(Debug, Default)]
pub struct Names {
    extensions: Vec<(String, u8)>,
}

impl Names {
    /// Names for a server with these extensions and major opcodes.
    pub fn new(extensions: impl IntoIterator<Item = (String, u8)>) -> Names {
        Names { extensions: extensions.into_iter().collect() }
    }

    pub fn extensions(&self) -> impl Iterator<Item = (String, u8)> + '_ {
        self.extensions.iter().cloned()
    }

    /// The name of a request that is encoded as major opcode + 65536 x minor opcode.
    pub fn of(&self, request: u32) -> String {
        let (major, minor) = opcodes(request);
        self.name(major, minor)
    }

    pub fn name(&self, major: u8, minor: u16) -> String {
        if major < FIRST_EXTENSION {
            return CORE.name(NameKind::Request, major).map_or_else(|| format!("opcode {major}"), str::to_owned);
        }
        let Some((name, _)) = self.extensions.iter().find(|(_, known)| *known == major) else {
            return format!("opcode {major} minor {minor}");
        };
        let known = table(name).and_then(|table| table.name(NameKind::Request, minor));
        known.map_or_else(|| format!("{name} minor {minor}"), |request| request.replacen("::", " ", 1))
    }
}

/// Decodes `longest_request` of a ListClients entry into (major, minor).
pub fn opcodes(longest_request: u32) -> (u8, u16) {
    (longest_request as u8, (longest_request >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(extensions: &[(&str, u8)]) -> Names {
        Names::new(extensions.iter().map(|&(name, major)| (name.to_owned(), major)))
    }

    #[test]
    fn core_requests_have_names_without_a_query() {
        let names = Names::default();
        for (major, name) in [
            (1, "CreateWindow"),
            (66, "PolySegment"),
            (73, "GetImage"),
            (119, "GetModifierMapping"),
            (127, "NoOperation"),
        ] {
            assert_eq!(names.name(major, 0), name);
        }
        assert_eq!(names.name(125, 0), "opcode 125");
    }

    #[test]
    fn extension_requests_use_the_servers_extension_names() {
        let names = names(&[("RANDR", 140), ("GLX", 150), ("XQOS", 151)]);
        assert_eq!(names.name(140, 8), "RANDR GetScreenResources");
        assert_eq!(names.name(150, 250), "GLX minor 250");
        assert_eq!(names.name(151, xqos_abi::Request::ListClients.minor().into()), "XQOS ListClients");
        assert_eq!(names.name(151, 99), "XQOS minor 99");
        assert_eq!(names.name(199, 3), "opcode 199 minor 3");
        assert_eq!(names.name(140, 300), "RANDR minor 300");
    }

    #[test]
    fn a_field_holds_both_opcodes() {
        assert_eq!(opcodes(73), (73, 0));
        assert_eq!(opcodes(140 + 65536 * 8), (140, 8));
    }
}
