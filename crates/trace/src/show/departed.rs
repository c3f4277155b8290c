// SPDX-License-Identifier: MIT
//! Disconnected clients, summed up by user and program. A script that starts a new process for each query thus appears
//! as one line with the total share.

use super::ms;
use crate::model::{Client, Model};
use serde::Serialize;
use std::collections::BTreeMap;

/// Disconnected clients of one user and program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Departed {
    /// The program's name; null if it is unknown, or if there are too many programs to distinguish.
    pub program: Option<String>,
    pub uid: Option<u32>,
    pub clients: u32,
    pub share: f64,
    pub server_time_ms: f64,
    pub requests: u64,
    pub waited_ms: f64,
    pub longest_wait_ms: f64,
}

/// The programs in a trace with more than one disconnected client.
pub(super) struct Programs<'a>(BTreeMap<(u32, &'a str), Departed>);

fn program(client: &Client) -> (u32, &str) {
    (client.identity.uid, &client.identity.program)
}

impl<'a> Programs<'a> {
    pub fn of(model: &'a Model, span_ns: u64) -> Programs<'a> {
        let mut programs: BTreeMap<(u32, &str), Departed> = BTreeMap::new();
        for client in model.clients().iter().filter(|client| client.gone.is_some()) {
            let sum = programs.entry(program(client)).or_default();
            let total = &client.total;
            sum.clients += 1;
            sum.share += total.server_time_ns as f64 / span_ns as f64;
            sum.server_time_ms += ms(total.server_time_ns);
            sum.requests += total.requests;
            sum.waited_ms += ms(total.waited_ns);
            sum.longest_wait_ms = sum.longest_wait_ms.max(ms(total.longest_wait_ns));
        }
        programs.retain(|_, sum| sum.clients > 1);
        for (&(uid, name), sum) in &mut programs {
            (sum.uid, sum.program) = (Some(uid), (!name.is_empty()).then(|| name.to_owned()));
        }
        Programs(programs)
    }

    /// The sum that includes this client, if any.
    pub fn sum_of(&self, client: &'a Client) -> Option<&Departed> {
        client.gone.and_then(|_| self.0.get(&program(client)))
    }

    /// "xwd x140" for clients that are summed up, otherwise the client's own name.
    pub fn name(&self, model: &'a Model, key: usize) -> String {
        match model.clients().get(key).and_then(|client| self.sum_of(client)) {
            Some(sum) => format!("{} x{}", sum.program.as_deref().unwrap_or("other"), sum.clients),
            None => model.name(key),
        }
    }

    /// The sums, largest share first.
    pub fn list(self) -> Vec<Departed> {
        let mut list: Vec<Departed> = self.0.into_values().collect();
        list.sort_by(|a, b| b.share.total_cmp(&a.share));
        list
    }
}
