// SPDX-License-Identifier: MIT
//! Compares captures with tshark: opcodes of requests, sequence numbers of replies, codes and sequence numbers of
//! events and errors.
//!
//! tshark is correct on short captures without losses, like these. It runs during the test, which is skipped if tshark
//! is not installed (Debian: tshark).
//!
//! The test compensates for differences of tshark: it shows all messages of a packet in one field, with commas; it
//! shows the highest bit of an event sent by a client in another field; it counts the event in a SendEvent request.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xqos_wire::capture::CaptureReader;
use xqos_wire::observe::{ConnectionId, Kind, Message, Observer, Opened};
use xqos_wire::session::Session;

const FIELDS: [&str; 6] = [
    "x11.opcode",
    "x11.reply-sequencenumber",
    "x11.eventcode",
    "x11.event-sequencenumber",
    "x11.errorcode",
    "x11.error_sequencenumber",
];

/// All values of each field on one connection.
type Values = [Vec<u64>; 6];

#[derive(Default)]
struct Ours {
    connections: BTreeMap<ConnectionId, (u16, u16, Values)>,
}

impl Observer for Ours {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        self.connections.insert(id, (opened.client.port(), opened.server.port(), Values::default()));
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let values = &mut self.connections.get_mut(&id).expect("the connection was opened").2;
        let code = |at: usize| u64::from(message.bytes[at] & 0x7f);
        match message.kind {
            Kind::Request => values[0].push(u64::from(message.major)),
            Kind::Reply => values[1].push(message.sequence),
            Kind::Event => {
                values[2].push(code(0));
                values[3].push(message.sequence);
            }
            Kind::Error => {
                values[4].push(u64::from(message.bytes[1]));
                values[5].push(message.sequence);
            }
            Kind::Setup | Kind::SetupReply => {}
        }
    }
}

fn theirs(file: &Path, client: u16, server: u16) -> Values {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-o", "tcp.reassemble_out_of_order:TRUE", "-T", "fields"]);
    command.args(["-d", &format!("tcp.port=={server},x11"), "-Y", &format!("x11 && tcp.port=={client}")]);
    command.args(["-e", "tcp.srcport"]);
    FIELDS.iter().for_each(|field| _ = command.args(["-e", field]));
    let output = command.stderr(Stdio::null()).output().expect("tshark is installed");
    let mut values = Values::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut fields = line.split('\t');
        // Fields with a code or a sequence number belong to the server's messages.
        let count = if fields.next().map(number) == Some(u64::from(client)) { 1 } else { FIELDS.len() };
        for (values, field) in values.iter_mut().zip(fields).take(count) {
            values.extend(field.split(',').filter(|value| !value.is_empty()).map(number));
        }
    }
    values[2].iter_mut().for_each(|code| *code &= 0x7f);
    values
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

fn unpacked(name: &str) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.pcapng.zst"));
    let mut bytes = Vec::new();
    zstd::Decoder::new(File::open(packed).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    let file = std::env::temp_dir().join(format!("xqos-{}-{name}.pcapng", std::process::id()));
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn real_captures_are_read_as_tshark_reads_them() {
    if xqos_testkit::program("tshark").is_none() {
        return;
    }
    for name in ["xterm", "gtk3-demo", "qt5", "emacs", "x11perf"] {
        let file = unpacked(name);
        let (mut ours, mut reader) = (Ours::default(), CaptureReader::open(&file).unwrap());
        let mut session = Session::new(vec![&mut ours]);
        while let Some(record) = reader.next() {
            session.packet(&record);
        }
        session.finish();
        for (client, server, ours) in ours.connections.values() {
            let theirs = theirs(&file, *client, *server);
            for (field, (ours, theirs)) in FIELDS.iter().zip(ours.iter().zip(&theirs)) {
                assert_eq!(ours, theirs, "{field} of {name}, from port {client}");
            }
        }
        fs::remove_file(&file).unwrap();
    }
}
