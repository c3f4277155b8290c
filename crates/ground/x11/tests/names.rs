// SPDX-License-Identifier: MIT
//! The names and replies of messages are those of the protocol description.

use xqos_x11::names::{CORE, ExtensionNames, NameKind, all, request, table};

fn named(name: &str) -> &'static ExtensionNames {
    table(name).unwrap()
}

#[test]
fn messages_of_every_kind_are_named() {
    let is = |name: Option<&str>, expected: &str| assert_eq!(name, Some(expected));
    is(named("XInputExtension").name(NameKind::GenericEvent, 32_u16), "XInputExtension::GestureSwipeEnd");
    is(named("XInputExtension").name(NameKind::Error, 3_u8), "XInputExtension::DeviceBusy");
    is(named("XKEYBOARD").name(NameKind::Event, 11_u8), "XKEYBOARD::ExtensionDeviceNotify");
    is(named("MIT-SHM").name(NameKind::Event, 0_u8), "MIT-SHM::Completion");
    is(named("MIT-SCREEN-SAVER").name(NameKind::Event, 0_u8), "MIT-SCREEN-SAVER::Notify");
    is(named("XFree86-VidModeExtension").name(NameKind::Error, 0_u8), "XFree86-VidModeExtension::BadClock");
    is(named("RANDR").name(NameKind::Request, 8_u8), "RANDR::GetScreenResources");
    is(named("XQOS").name(NameKind::Request, 6_u8), "XQOS::ListClients");
    assert!(named("XQOS").has_reply(6) && !named("XQOS").has_reply(2));
    is(named("DPMS").name(NameKind::GenericEvent, 0_u16), "DPMS::InfoNotify");
    is(CORE.name(NameKind::Event, 34_u8), "MappingNotify");
    is(CORE.name(NameKind::Error, 14_u8), "IDChoice");
    assert_eq!((0..=u8::MAX).filter_map(|opcode| CORE.name(NameKind::Request, opcode)).count(), 120);
    assert_eq!((0..=u8::MAX).filter_map(|code| CORE.name(NameKind::Event, code)).count(), 33);
}

#[test]
fn a_request_is_found_by_its_name() {
    for (kind, name) in all().filter(|(kind, _)| matches!(*kind, NameKind::Request | NameKind::Reply)) {
        let (table, number) = request(name).unwrap();
        assert_eq!(table.name(NameKind::Request, number), Some(name));
        assert!(kind == NameKind::Request || table.has_reply(number), "{name}");
    }
    assert!(request("CreateWindo").is_none() && request("NOBODYS::CreateWindow").is_none());
    assert_eq!(table("").and_then(|core| core.name(NameKind::Request, 1_u8)), Some("CreateWindow"));
}

/// Returns an XML description's extension name and its opcodes with replies.
fn description(text: &str) -> (String, Vec<u8>) {
    let attribute =
        |line: &str, name: &str| Some(line.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.to_owned());
    let (mut extension, mut opcode, mut opcodes) = (String::new(), None::<u8>, Vec::new());
    // Requests in XML comments are not implemented.
    let said: String = text.split("<!--").map(|part| part.split_once("-->").map_or(part, |(_, said)| said)).collect();
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
fn replies_match_the_protocol_description() {
    let Some(folder) = xqos_testkit::file("/usr/share/xcb") else { return };
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "xml"));
    for path in files {
        let (extension, opcodes) = description(&std::fs::read_to_string(&path).unwrap());
        let ours = table(&extension).map(|table| (0..=255).filter(|&it| table.has_reply(it)).collect());
        assert_eq!(ours, Some(opcodes), "{}", path.display());
    }
}
