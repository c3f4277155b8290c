// SPDX-License-Identifier: MIT
//! Reservations made and released from the screen; each can be taken back.

use super::View;
use super::keys::Target;
use crate::kind;
use xqos_agent::client::{Connection, connection, reservation_of};
use xqos_agent::sample::{Client, Sample, Sampler};
use xqos_agent::session::Account;
use xqos_cli::quantity::Reservation;
use xqos_core::ReservationKind;

/// A change that can be taken back: the client, and the reservation that it had before.
pub struct Change {
    connection: Connection,
    before: Option<(u32, u32, ReservationKind)>,
    what: String,
}

impl View {
    pub fn reserve(&mut self, target: &Target, text: &str, sample: &Sample, sampler: &mut Sampler) {
        let is_it = |client: &&Client| connection(&client.entry) == target.connection;
        let Some(client) = sample.clients.iter().find(is_it) else {
            self.said = format!("{} has ended", target.name);
            return;
        };
        let (amount, kind) = kind::split(text);
        let result = amount.parse::<Reservation>().and_then(|wanted| {
            let done = sampler.session.reserve(&Account::of_client(&client.entry), wanted, kind);
            done.map(|()| wanted).map_err(|error| error.in_one_line())
        });
        match result {
            Ok(wanted) => self.changed(client, format!("{wanted} reserved for {}", client.name())),
            Err(error) => self.said = error,
        }
    }

    pub fn release(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(client) = self.chosen(sample) else { return };
        if reservation_of(&client.entry).is_none() {
            self.said = format!("{} has no reservation", client.name());
            return;
        }
        match sampler.session.control.release(client.entry.client) {
            Ok(()) => self.changed(client, format!("{}'s reservation released", client.name())),
            Err(error) => self.said = sampler.session.explained(error, &client.entry).in_one_line(),
        }
    }

    fn changed(&mut self, client: &Client, what: String) {
        let entry = &client.entry;
        let before = reservation_of(entry).map(|_| (entry.budget_us, entry.period_us, entry.kind()));
        self.said = format!("{what}; u takes it back");
        self.changes.push(Change { connection: connection(entry), before, what });
    }

    pub fn undo(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(change) = self.changes.pop() else {
            self.said = "nothing to take back".to_owned();
            return;
        };
        let same = |client: &&Client| connection(&client.entry) == change.connection;
        let Some(client) = sample.clients.iter().find(same) else {
            self.said = format!("the client has ended: {}", change.what);
            return;
        };
        let control = &sampler.session.control;
        let result = match change.before {
            Some((budget_us, period_us, kind)) => control.reserve(client.entry.client, budget_us, period_us, kind),
            None => control.release(client.entry.client),
        };
        self.said = match result {
            Ok(()) => format!("taken back: {}", change.what),
            Err(error) => sampler.session.explained(error, &client.entry).in_one_line(),
        };
    }
}
