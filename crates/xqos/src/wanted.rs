// SPDX-License-Identifier: MIT
//! What is asked for on the command line: so much, or what measurement finds.

use anyhow::{Result, bail};
use std::fmt;
use std::str::FromStr;
use xqos_cli::quantity::Reservation;
use xqos_core::ReservationKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// So much, as it was typed.
    Fixed(Reservation),
    /// What measurement finds.
    Auto,
}

impl Wanted {
    pub fn fixed(self) -> Option<Reservation> {
        match self {
            Wanted::Fixed(reservation) => Some(reservation),
            Wanted::Auto => None,
        }
    }

    /// Measurement sets no hard reservations: a demand that was estimated too low would hold the client back.
    pub fn checked(self, kind: ReservationKind) -> Result<Wanted> {
        if self == Wanted::Auto && kind != ReservationKind::Soft {
            bail!(
                "auto reserves soft only, since a budget that was found too small or too large would hold back this client or \
                 others: leave --hard and --soft=paper away"
            );
        }
        Ok(self)
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        match text {
            "auto" => Ok(Wanted::Auto),
            _ => text.parse().map(Wanted::Fixed).map_err(|error| format!("{error}; or write the word auto")),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Fixed(reservation) => reservation.fmt(out),
            Wanted::Auto => out.write_str("auto"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_a_word_beside_reservations() {
        assert_eq!("auto".parse(), Ok(Wanted::Auto));
        let fixed: Wanted = "3ms/10ms".parse().unwrap();
        assert_eq!((fixed.fixed().unwrap().typed(), fixed.to_string()), ("3ms/10ms".into(), "3 ms / 10 ms".into()));
        assert!("automatic".parse::<Wanted>().unwrap_err().contains("or write the word auto"));
        assert!(Wanted::Auto.checked(true.into()).is_err() && Wanted::Auto.checked(false.into()).is_ok());
    }
}
