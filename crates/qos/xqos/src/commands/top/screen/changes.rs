// SPDX-License-Identifier: MIT
//! Changes that keys request from the server. Reservations that were made or released can be undone.

use super::{Page, Prompt, Purpose, View};
use std::borrow::Cow;
use xqos_abi::trace::Level;
use xqos_agent::Result;
use xqos_agent::amount::split;
use xqos_agent::client::{ConnectionKey, connection, reservation_of, words};
use xqos_agent::sample::{ClientSample, Sample, Sampler};
use xqos_agent::session::Account;
use xqos_core::ReservationKind;
use xqos_text::quantity::Reservation;

/// The result of a key press, if the view cannot handle it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAction {
    Nothing,
    Quit,
    Reserve(PromptClient, String),
    Release(PromptClient),
    Undo,
    Requests,
}

/// The client that a prompt is for; it stays valid when the order of the clients changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptClient {
    pub connection: ConnectionKey,
    /// The name of its program and its pid.
    pub name: String,
}

/// A change that can be undone: the client, and its previous reservation.
pub struct Change {
    connection: ConnectionKey,
    before: Option<(u32, u32, ReservationKind)>,
    what: String,
}

impl View {
    pub fn perform(&mut self, action: KeyAction, sample: &Sample, sampler: &mut Sampler) {
        match action {
            KeyAction::Nothing | KeyAction::Quit => {}
            KeyAction::Reserve(target, text) => self.reserve(&target, &text, sample, sampler),
            KeyAction::Release(target) => self.release(&target, sample, sampler),
            KeyAction::Undo => self.undo(sample, sampler),
            KeyAction::Requests => self.toggle_requests(sampler),
        }
    }

    /// The selected client as the target of a change; if there is none, sets the message.
    fn target<'a>(&mut self, sample: &'a Sample) -> Option<(PromptClient, &'a ClientSample)> {
        let row = self.chosen(sample).filter(|_| matches!(self.page, Page::Table | Page::Details))?;
        let Cow::Borrowed(client) = row.client else {
            self.message = "this is a group: unfold it with + and choose a client".to_owned();
            return None;
        };
        let name = match client.entry.pid {
            0 => client.name(),
            pid => format!("{} ({pid})", client.name()),
        };
        Some((PromptClient { connection: connection(&client.entry), name }, client))
    }

    pub fn ask_reservation(&mut self, sample: &Sample) {
        if let Some((target, _)) = self.target(sample) {
            self.prompt = Some(Prompt::new(Purpose::Reserve(target), "3ms/10ms".to_owned()));
        }
    }

    /// Asks before a reservation is released, because the row under the selection may not be the expected one.
    pub fn ask_release(&mut self, sample: &Sample) {
        let Some((target, client)) = self.target(sample) else { return };
        match reservation_of(&client.entry) {
            None => self.message = format!("{} has no reservation", client.name()),
            Some((reserved, kind)) => {
                let text = format!("release {reserved}{} of {}", words(kind), target.name);
                self.prompt = Some(Prompt::new(Purpose::Release(target), text));
            }
        }
    }

    fn toggle_requests(&mut self, sampler: &mut Sampler) {
        let to = if sampler.feed.level == Level::Requests { Level::Slices } else { Level::Requests };
        let traced = sampler.feed.trace(&sampler.session, to);
        self.message = said_of_trace(traced, sampler.feed.is_open(), to);
    }

    fn reserve(&mut self, target: &PromptClient, text: &str, sample: &Sample, sampler: &mut Sampler) {
        let Some(client) = self.target_in(sample, target) else { return };
        let (amount, kind) = split(text);
        let result = amount.parse::<Reservation>().and_then(|wanted| {
            let done = sampler.session.reserve(&Account::of_client(&client.entry), wanted, kind);
            done.map(|()| wanted).map_err(|error| error.in_one_line())
        });
        match result {
            Ok(wanted) => self.changed(client, format!("{wanted} reserved for {}", client.name())),
            Err(error) => self.message = error,
        }
    }

    fn release(&mut self, target: &PromptClient, sample: &Sample, sampler: &mut Sampler) {
        let Some(client) = self.target_in(sample, target) else { return };
        match sampler.session.control.release(client.entry.client) {
            Ok(()) => self.changed(client, format!("{}'s reservation released", client.name())),
            Err(error) => self.message = sampler.session.explained(error, &client.entry).in_one_line(),
        }
    }

    /// The client in this sample; if it has disconnected, sets the message.
    fn target_in<'a>(&mut self, sample: &'a Sample, target: &PromptClient) -> Option<&'a ClientSample> {
        let found = sample.clients.iter().find(|client| connection(&client.entry) == target.connection);
        if found.is_none() {
            self.message = format!("{} has disconnected", target.name);
        }
        found
    }

    fn changed(&mut self, client: &ClientSample, what: String) {
        let entry = &client.entry;
        let before = reservation_of(entry).map(|_| (entry.budget_us, entry.period_us, entry.kind()));
        self.message = format!("{what}; press u to undo");
        self.changes.push(Change { connection: connection(entry), before, what });
    }

    fn undo(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(change) = self.changes.pop() else {
            self.message = "nothing to undo".to_owned();
            return;
        };
        let same = |client: &&ClientSample| connection(&client.entry) == change.connection;
        let Some(client) = sample.clients.iter().find(same) else {
            self.message = format!("cannot undo, the client has disconnected: {}", change.what);
            return;
        };
        let control = &sampler.session.control;
        let result = match change.before {
            Some((budget_us, period_us, kind)) => control.reserve(client.entry.client, budget_us, period_us, kind),
            None => control.release(client.entry.client),
        };
        self.message = match result {
            Ok(()) => format!("undone: {}", change.what),
            Err(error) => sampler.session.explained(error, &client.entry).in_one_line(),
        };
    }
}

/// The message after an attempt to change the level of the trace. `is_open`: there is a trace.
fn said_of_trace(traced: Result<()>, is_open: bool, level: Level) -> String {
    match (traced, level) {
        (Err(_), _) if !is_open => "this server provides no trace because it runs on another machine".to_owned(),
        (Err(error), _) => error.in_one_line(),
        (Ok(()), Level::Requests) => "each request is timed until you press R again".to_owned(),
        (Ok(()), Level::Slices) => "requests are no longer timed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_client::Error;

    #[test]
    fn a_failure_to_time_requests_is_reported() {
        let refused = said_of_trace(Err(Error::NeedsSingleRequests.into()), true, Level::Requests);
        assert!(refused.contains("through libc") && !refused.contains("is timed"), "{refused}");
        assert!(said_of_trace(Err(Error::NoDescriptor.into()), false, Level::Requests).contains("another machine"));
    }
}
