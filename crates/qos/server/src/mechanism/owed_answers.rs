// SPDX-License-Identifier: MIT
//! Clients that a person waits for: they must answer an Expose, or input while another client redraws.
//!
//! The list is short, and it is empty unless a client listens for these events.

use xqos_core::{ClientId, Time};

#[derive(Clone, Copy, Debug)]
struct OwedAnswer {
    client: ClientId,
    cause: Option<ClientId>,
    until: Time,
}

#[derive(Debug, Default)]
pub struct OwedAnswers(Vec<OwedAnswer>);

impl OwedAnswers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn begin(&mut self, client: ClientId, cause: Option<ClientId>, until: Time) {
        self.end(client);
        self.0.push(OwedAnswer { client, cause, until });
    }

    /// Removes a client that has answered or disconnected. Returns true if the client was in the list.
    pub fn end(&mut self, client: ClientId) -> bool {
        let before = self.0.len();
        self.0.retain(|one| one.client != client);
        self.0.len() < before
    }

    /// True while an answer is expected and this client neither has to answer nor caused an Expose in the list.
    pub fn excludes(&mut self, client: ClientId, now: Time) -> bool {
        self.forget_late(now);
        !self.0.is_empty() && !self.0.iter().any(|one| one.client == client || one.cause == Some(client))
    }

    /// The latest time at which an answer is still expected.
    pub fn latest(&mut self, now: Time) -> Option<Time> {
        self.forget_late(now);
        self.0.iter().map(|one| one.until).max()
    }

    fn forget_late(&mut self, now: Time) {
        self.0.retain(|one| one.until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uninvolved_clients_are_left_out_and_late_entries_expire() {
        let (painter, mover, other) = (ClientId(1), ClientId(2), ClientId(3));
        let mut owed_answers = OwedAnswers::default();
        assert!(!owed_answers.excludes(other, Time(5)), "no client owes an answer");
        owed_answers.begin(painter, Some(mover), Time(10));
        assert!(owed_answers.excludes(other, Time(5)));
        assert!(!owed_answers.excludes(painter, Time(5)) && !owed_answers.excludes(mover, Time(5)));
        owed_answers.begin(other, None, Time(20));
        assert_eq!(owed_answers.latest(Time(9)), Some(Time(20)));
        assert!(owed_answers.end(other) && !owed_answers.end(other));
        assert_eq!(owed_answers.latest(Time(10)), None);
    }
}
