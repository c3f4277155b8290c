// SPDX-License-Identifier: MIT
//! Messages on the wire in the lanes of their clients.

use super::{Column, Lane};
use crate::model::Model;
use crate::wire::{Connection, Wire};
use serde::Serialize;

/// The messages of a connection: those of the client, then those of the server.
#[derive(Debug, Default, Serialize)]
pub struct Messages {
    /// Name of the connection: the program may be behind a relay, which is the server's client.
    #[serde(skip)]
    pub name: String,
    /// The trace has all requests since the client's start, so that sequence numbers tell when one was executed.
    is_whole: bool,
    directions: [Direction; 2],
}

#[derive(Debug, Default, Serialize)]
struct Direction {
    times: Column,
    names: Column,
    sequences: Column,
    bytes: Column,
}

/// The messages of the trace's clients by key, and lanes for all other connections.
pub fn lanes(wire: &Wire, model: &Model) -> (Vec<(usize, Messages)>, Vec<Lane>) {
    let (mut of_clients, mut of_others) = (Vec::new(), Vec::new());
    for (connection, key) in wire.connections.iter().zip(wire.clients(model)) {
        let has_start = key.is_some_and(|key| Some(model.clients()[key].connected) > model.began);
        let is_whole = has_start && model.lost == 0;
        let (name, directions) = (connection.name.clone(), directions(connection, model));
        let messages = Messages { name, is_whole, directions };
        match key {
            Some(key) => of_clients.push((key, messages)),
            None => of_others.push(Lane { name: connection.name.clone(), wire: Some(messages), ..Lane::default() }),
        }
    }
    (of_clients, of_others)
}

fn directions(connection: &Connection, model: &Model) -> [Direction; 2] {
    let mut directions: [Direction; 2] = Default::default();
    for message in &connection.messages {
        let direction = &mut directions[usize::from(!message.is_request)];
        direction.times.push(model.since_start_ns(message.at));
        direction.names.push_integer(message.name);
        direction.sequences.push(message.sequence as f64);
        direction.bytes.push(message.bytes as f64);
    }
    directions
}
