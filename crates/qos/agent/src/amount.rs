// SPDX-License-Identifier: MIT
//! The arguments of a reservation: its amount (fixed or measured), and its kind (what a client gets beyond its budget).

use crate::client::words;
use crate::error::{Result, bail};
use clap::Args;
use std::fmt;
use std::str::FromStr;
use xqos_core::ReservationKind;
use xqos_rules::setting::SoftRule;
use xqos_text::quantity::Reservation;

/// The reason why `--cpu auto` is refused for a fixed amount.
pub const CPU_NEEDS_AUTO: &str = "--cpu auto takes its period from the measured reservation";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Fixed(Reservation),
    /// The measured need.
    Auto,
}

impl Amount {
    pub fn fixed(self) -> Option<Reservation> {
        match self {
            Amount::Fixed(reservation) => Some(reservation),
            Amount::Auto => None,
        }
    }

    /// Refuses auto with a hard reservation: an underestimated demand would hold the client back.
    pub fn checked(self, kind: ReservationKind) -> Result<Amount> {
        if self == Amount::Auto && kind != ReservationKind::Soft {
            bail!(
                "auto makes soft reservations only, because a wrong measurement would hold back this client or others: leave \
                 out --hard and --soft=paper"
            );
        }
        Ok(self)
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Amount, String> {
        match text {
            "auto" => Ok(Amount::Auto),
            _ => text.parse().map(Amount::Fixed).map_err(|error| format!("{error}; or write the word auto")),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Fixed(reservation) => reservation.fmt(out),
            Amount::Auto => out.write_str("auto"),
        }
    }
}

/// Options for the kind of a reservation.
#[derive(Args, Clone, Copy, Debug)]
pub struct KindOptions {
    /// Hold the client back once its budget is used up
    #[arg(long)]
    hard: bool,
    /// Without --hard, what a client gets after its budget is used up: best-effort (default), a share like clients
    /// without a reservation; paper, the next budget immediately with a later deadline, ahead of those clients
    #[arg(long, value_name = "best-effort|paper", conflicts_with = "hard")]
    soft: Option<SoftRule>,
}

impl KindOptions {
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
    fn auto_is_accepted_in_place_of_a_reservation() {
        assert_eq!("auto".parse(), Ok(Amount::Auto));
        let fixed: Amount = "3ms/10ms".parse().unwrap();
        assert_eq!((fixed.fixed().unwrap().typed(), fixed.to_string()), ("3ms/10ms".into(), "3 ms / 10 ms".into()));
        assert!("automatic".parse::<Amount>().unwrap_err().contains("or write the word auto"));
        assert!(Amount::Auto.checked(true.into()).is_err() && Amount::Auto.checked(false.into()).is_ok());
    }

    #[test]
    fn a_reservation_is_parsed_with_its_kind() {
        assert_eq!(split(" 3ms/10ms "), ("3ms/10ms", ReservationKind::Soft));
        assert_eq!(split("3ms/10ms hard"), ("3ms/10ms", ReservationKind::Hard));
        assert_eq!(split("3ms/10ms  soft=paper "), ("3ms/10ms", ReservationKind::SoftPaper));
    }
}
