// SPDX-License-Identifier: MIT
//! What a command reserves: a fixed amount, or what is measured.

use crate::error::{Result, bail};
use std::fmt;
use std::str::FromStr;
use xqos_core::ReservationKind;
use xqos_text::quantity::Reservation;

/// Processor time has the same period as the reserved server time.
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
}
