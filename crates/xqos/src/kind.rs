// SPDX-License-Identifier: MIT
//! What a client gets beyond its budget: as options of commands, and in words.

use clap::Args;
use xqos_agent::client::words;
use xqos_cli::quantity::SoftRule;
use xqos_core::ReservationKind;

/// The options of a command that reserves.
#[derive(Args, Clone, Copy, Debug)]
pub struct Kind {
    /// Hold the client back when its budget is used up
    #[arg(long)]
    hard: bool,
    /// What a client gets beyond its budget without --hard: best-effort (default), its share among the clients without a
    /// reservation; or paper, the next budget at once and a later deadline, so that it stays above them
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

/// As options of a command line, after a reservation.
pub fn options(kind: ReservationKind) -> &'static str {
    match kind {
        ReservationKind::Soft => "",
        ReservationKind::Hard => " --hard",
        ReservationKind::SoftPaper => " --soft=paper",
    }
}

/// A reservation as it is typed into `xqos top`, with its kind after it: `3ms/10ms hard`.
pub fn split(text: &str) -> (&str, ReservationKind) {
    let named = [ReservationKind::Hard, ReservationKind::SoftPaper].into_iter();
    let mut found = named.filter_map(|kind| Some((text.trim().strip_suffix(words(kind))?.trim(), kind)));
    found.next().unwrap_or((text.trim(), ReservationKind::Soft))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_read_with_its_kind() {
        assert_eq!(split(" 3ms/10ms "), ("3ms/10ms", ReservationKind::Soft));
        assert_eq!(split("3ms/10ms hard"), ("3ms/10ms", ReservationKind::Hard));
        assert_eq!(split("3ms/10ms  soft=paper "), ("3ms/10ms", ReservationKind::SoftPaper));
    }
}
