// SPDX-License-Identifier: MIT
//! What the protocol fixes for good: which requests have replies, and how long the core's requests are.
//!
//! The library knows the first only of a request that it has parsed whole, which is no way to count five million of them
//! and fails on one that was cut off. A test compares with the protocol's own description (Debian: xcb-proto).

/// Minor opcodes of the extensions' requests that have replies; of the core, under an empty name, the major ones.
const WITH_REPLY: [(&str, &[u8]); 32] = [
    (
        "",
        &[
            3, 14, 15, 16, 17, 20, 21, 23, 26, 31, 38, 39, 40, 43, 44, 47, 48, 49, 50, 52, 73, 83, 84, 85, 86, 87, 91,
            92, 97, 98, 99, 101, 103, 106, 108, 110, 116, 117, 118, 119,
        ],
    ),
    ("BIG-REQUESTS", &[0]),
    ("Composite", &[0, 7]),
    ("DAMAGE", &[0]),
    ("DOUBLE-BUFFER", &[0, 6, 7]),
    ("DPMS", &[0, 1, 2, 7]),
    ("DRI2", &[0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 13]),
    ("DRI3", &[0, 1, 3, 5, 6, 8]),
    ("Generic Event Extension", &[0]),
    (
        "GLX",
        &[
            5, 6, 7, 14, 17, 18, 19, 21, 25, 26, 29, 104, 107, 108, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120,
            121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141,
            143, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 162, 163, 164, 165,
            166,
        ],
    ),
    ("Present", &[0, 4]),
    ("RANDR", &[0, 2, 5, 6, 8, 9, 10, 11, 15, 16, 20, 21, 22, 23, 25, 27, 28, 29, 31, 32, 33, 36, 37, 41, 42, 45]),
    ("RECORD", &[0, 4, 5]),
    ("RENDER", &[0, 1, 2, 29]),
    ("X-Resource", &[0, 1, 2, 3, 4, 5]),
    ("MIT-SCREEN-SAVER", &[0, 1]),
    ("SHAPE", &[0, 5, 7, 8]),
    ("MIT-SHM", &[0, 4, 7]),
    ("SYNC", &[0, 1, 5, 10, 13, 18]),
    ("XC-MISC", &[0, 1, 2]),
    ("XEVIE", &[0, 1, 2, 3, 4]),
    ("XFree86-DRI", &[0, 1, 2, 4, 5, 7, 9, 10, 11]),
    ("XFree86-VidModeExtension", &[0, 1, 4, 6, 9, 11, 13, 16, 17, 19, 20]),
    ("XFIXES", &[0, 4, 19, 24, 25, 34]),
    ("XINERAMA", &[0, 1, 2, 3, 4, 5]),
    (
        "XInputExtension",
        &[
            1, 2, 3, 5, 7, 9, 10, 11, 12, 13, 20, 22, 24, 26, 27, 28, 29, 30, 33, 34, 35, 36, 39, 40, 45, 47, 48, 50,
            51, 54, 56, 59, 60,
        ],
    ),
    ("XKEYBOARD", &[0, 4, 6, 8, 10, 12, 13, 15, 17, 21, 22, 23, 24, 101]),
    ("XpExtension", &[0, 1, 4, 6, 12, 16, 17, 19, 21, 22, 23, 24]),
    ("SELinux", &[0, 2, 4, 6, 7, 9, 11, 12, 13, 14, 16, 18, 19, 20, 21, 22]),
    ("XTEST", &[0, 1]),
    ("XVideo", &[0, 1, 2, 3, 12, 14, 15, 16, 17]),
    ("XVideo-MotionCompensation", &[0, 1, 2, 4, 6, 8]),
];

/// Lengths of the core's requests in words, by major opcode. A negative one is a minimum; 0: there is no such request.
const WORDS: [i8; 128] = [
    0, -8, -3, 2, 2, 2, 2, 4, 2, 2, 2, 2, -3, 2, 2, 2, //
    -2, 2, -6, 3, 6, 2, 4, 2, 6, 11, 6, 2, 6, 3, 4, 4, //
    2, 4, 3, 2, 1, 1, 2, 4, 4, 6, 3, 1, 1, -3, 2, 2, //
    -2, -2, -2, -2, 1, 4, 2, -4, -3, 4, -3, -3, 2, 4, 7, 8, //
    -3, -3, -3, -3, -3, -4, -3, -3, -6, 5, -4, -4, -4, -4, 4, 2, //
    3, 2, 2, 2, 4, -3, 3, 4, -3, -2, -4, -2, -3, 8, 8, 2, //
    5, 3, -2, 1, -2, 2, -2, 1, 1, 3, 1, 3, 1, -2, 1, 1, //
    1, 2, -3, 1, -1, 1, -1, 1, 0, 0, 0, 0, 0, 0, 0, -1,
];

/// Whether each request of an extension has a reply, by its minor opcode; nothing of extensions that are not known.
pub fn with_reply(extension: &str) -> Option<[bool; 256]> {
    let (_, opcodes) = WITH_REPLY.iter().find(|(name, _)| *name == extension)?;
    let mut table = [false; 256];
    for &opcode in *opcodes {
        table[usize::from(opcode)] = true;
    }
    Some(table)
}

/// The names of all extensions that have a table.
pub fn extensions() -> impl Iterator<Item = &'static str> {
    WITH_REPLY.iter().map(|(name, _)| *name).filter(|name| !name.is_empty())
}

/// Whether a core request can have this length.
pub fn is_core_length(major: u8, words: u64) -> bool {
    match WORDS.get(usize::from(major)) {
        Some(0) | None => false,
        Some(&least) if least < 0 => words >= u64::from(least.unsigned_abs()),
        Some(&exactly) => words == exactly as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_requests_have_their_lengths() {
        assert!(is_core_length(43, 1) && !is_core_length(43, 2), "GetInputFocus is its header");
        assert!(
            is_core_length(1, 8) && is_core_length(1, 20) && !is_core_length(1, 7),
            "CreateWindow has 8 words or more"
        );
        assert!(
            !is_core_length(0, 1) && !is_core_length(120, 1) && !is_core_length(128, 1),
            "these are no core requests"
        );
    }

    /// Extension and opcodes with replies of one of the protocol's files.
    fn described(text: &str) -> (String, Vec<u8>) {
        let attribute =
            |line: &str, name: &str| Some(line.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.to_owned());
        let (mut extension, mut opcode, mut opcodes) = (String::new(), None::<u8>, Vec::new());
        // What is only thought of stands in comments.
        let said: String =
            text.split("<!--").map(|part| part.split_once("-->").map_or(part, |(_, said)| said)).collect();
        for line in said.lines() {
            extension = attribute(line, "extension-xname").unwrap_or(extension);
            if line.contains("<request ") {
                opcode = attribute(line, "opcode").and_then(|opcode| opcode.parse().ok());
            }
            if line.contains("<reply>") {
                opcodes.extend(opcode);
            }
        }
        opcodes.sort();
        (extension, opcodes)
    }

    #[test]
    fn replies_come_to_the_requests_that_the_protocol_says() {
        let Ok(files) = std::fs::read_dir("/usr/share/xcb") else {
            return xqos_skip::left_out("the protocol's description is not installed (xcb-proto)");
        };
        let files =
            files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "xml"));
        for path in files {
            let (extension, opcodes) = described(&std::fs::read_to_string(&path).unwrap());
            let ours = with_reply(&extension).map(|table| (0..=255).filter(|&it| table[usize::from(it)]).collect());
            assert_eq!(ours, Some(opcodes), "{}", path.display());
        }
    }
}
