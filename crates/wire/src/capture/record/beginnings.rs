// SPDX-License-Identifier: MIT
//! Knows how to begin a file in the middle of connections.
//!
//! A second session decodes each packet when it leaves the recorder, into a file or not at all. It is therefore always
//! where the next file begins, even if that file has the seconds before its start event.

use crate::capture::{KeptRecord, Record};
use crate::observe::ConnectionId;
use crate::session::Session;
use std::collections::HashSet;

#[derive(Debug)]
pub struct Beginnings {
    session: Session<'static>,
    /// Connections of which the current file has a packet.
    in_file: HashSet<ConnectionId>,
}

impl Beginnings {
    pub fn new(also_port: Option<u16>) -> Beginnings {
        let session = also_port.into_iter().fold(Session::new(Vec::new()), Session::also_port);
        Beginnings { session, in_file: HashSet::new() }
    }

    pub fn next_file(&mut self) {
        self.in_file.clear();
    }

    /// Takes a packet that is in no file.
    pub fn leave_out(&mut self, record: &Record<'_>) {
        self.session.packet(record);
    }

    /// Takes a packet of the current file. If it is the connection's first one in this file, but not its first one at
    /// all, returns it with the program's name and a checkpoint.
    pub fn write(&mut self, record: &Record<'_>) -> Option<KeptRecord> {
        let connection = self.session.connection(record);
        let is_joined = connection.is_some_and(|connection| self.in_file.insert(connection));
        let joined = is_joined.then(|| self.session.beginning(record)).flatten().map(|(program, checkpoint)| {
            let (program, checkpoint) = (record.program.or(program), checkpoint.as_deref());
            KeptRecord::new(&Record { program, checkpoint, ..*record })
        });
        self.session.packet(record);
        if connection.is_none() {
            self.in_file.extend(self.session.connection(record));
        }
        joined
    }
}
