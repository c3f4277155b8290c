//! Who has to answer an Expose, or input beside one, and what is done about it.

use super::Engine;
use crate::host::Host;
use crate::mechanism::recorded::Exposed;
use xqos_abi::NotifyKind;
use xqos_core::{Choice, ClientId, Fact, Time};

/// How long a client that gets input beside an Expose may take to answer; most need less than a millisecond.
const INPUT_ATTENTION_NS: u64 = 10_000_000;

impl<H: Host> Engine<H> {
    /// User input, or else an Expose, was delivered to a client.
    pub fn noticed(&mut self, id: ClientId, is_input: bool) {
        let at = self.host.now();
        if is_input {
            self.scheduler.handle(at, Fact::Input { client: id });
            self.input_beside_an_expose(id, at);
            return;
        }
        let cause = self.who_runs();
        let Exposed { is_new, held } = self.scheduler.exposed(id, cause, at);
        if is_new {
            self.attend_to(NotifyKind::Exposing, id, cause, self.scheduler.exposing_until(id));
        }
        if held.is_some() {
            self.holds = self.holds.wrapping_add(1);
            self.to_hold = held;
            self.host.end_slice();
        }
    }

    /// Who has to redraw has the processor, and who gets input meanwhile is to have it too; not who uncovers others by it.
    fn input_beside_an_expose(&mut self, id: ClientId, at: Time) {
        if self.attention.leaves_out(id, at) {
            self.attend_to(NotifyKind::Input, id, None, at.after(INPUT_ATTENTION_NS));
        }
    }

    fn attend_to(&mut self, kind: NotifyKind, id: ClientId, cause: Option<ClientId>, until: Time) {
        if self.listeners.is_empty() {
            return;
        }
        self.attention.begin(id, cause, until);
        // First: whoever is told may raise others at once, and we would wait for those.
        if self.lender.is_some() {
            self.host.raise(until);
        }
        self.notify(kind, id, 0);
    }

    /// Whose request is being executed, if it is one's.
    pub(super) fn who_runs(&self) -> Option<ClientId> {
        match self.running?.choice {
            Choice::Client(id, _) => Some(id),
            Choice::Server => self.host.who_runs(),
        }
    }
}
