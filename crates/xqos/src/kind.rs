// SPDX-License-Identifier: MIT
//! Arguments of commands that reserve: what a client gets beyond its budget.

use clap::Args;
use xqos_agent::client::words;
use xqos_core::ReservationKind;
use xqos_rules::setting::SoftRule;

/// Options for the kind of a reservation.
#[derive(Args, Clone, Copy, Debug)]
pub struct Kind {
    /// Hold the client back once its budget is used up
    #[arg(long)]
    hard: bool,
    /// What a client gets beyond its budget without --hard: best-effort (default), its share among the clients without
    /// a reservation; or paper, its next budget immediately with a later deadline, so that it stays ahead of them
    #[arg(long, value_name = "best-effort|paper", conflicts_with = "hard")]
    soft: Option<SoftRule>,
}

impl Kind {
    pub fn get(self) -> ReservationKind {
        match self.soft {
            Some(rule) => rule.kind(),
            None => self.hard.into(),
        }
    }
}

/// Splits the text that was typed into `xqos top` into a reservation and its kind: `3ms/10ms hard`.
pub fn split(text: &str) -> (&str, ReservationKind) {
    let named = [ReservationKind::Hard, ReservationKind::SoftPaper].into_iter();
    let mut found = named.filter_map(|kind| Some((text.trim().strip_suffix(words(kind))?.trim(), kind)));
    found.next().unwrap_or((text.trim(), ReservationKind::Soft))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_parsed_with_its_kind() {
        assert_eq!(split(" 3ms/10ms "), ("3ms/10ms", ReservationKind::Soft));
        assert_eq!(split("3ms/10ms hard"), ("3ms/10ms", ReservationKind::Hard));
        assert_eq!(split("3ms/10ms  soft=paper "), ("3ms/10ms", ReservationKind::SoftPaper));
    }
}
