// SPDX-License-Identifier: MIT
//! Enforces `per_user` of `[limits]`: the server limits the sum of one user's reservations.
//!
//! The server accepts this limit from root and from its own user, and drops it when our connection ends. A limit that
//! was set manually takes precedence.

use crate::error::Result;
use crate::session::Session;
use xqos_abi::{Setting, Subject};
use xqos_client::Error;
use xqos_text::quantity::Share;

#[derive(Debug, Default)]
pub struct UserLimit {
    /// The value that we have set; 0 for none.
    set_ppm: u32,
}

impl UserLimit {
    /// Sets the limit; `None` removes it. Returns a message, if any. An error means that the server has not answered in
    /// time: call this again.
    pub fn keep(&mut self, session: &Session, wanted: Option<u32>) -> Result<Option<String>> {
        let ppm = wanted.unwrap_or(0);
        if ppm == self.set_ppm {
            return Ok(None);
        }
        let control = &session.control;
        let set = control.set_origin("rules", true);
        let message = match set.and_then(|()| control.set(Subject::Server, Setting::UserLimit(ppm))) {
            Ok(()) => above_all(session, ppm),
            Err(error @ Error::Late) => return Err(error.into()),
            Err(error) => Some(why_not(session, &error)),
        };
        self.set_ppm = ppm;
        Ok(message)
    }
}

/// The message for a limit per user that exceeds the limit for all reservations.
fn above_all(session: &Session, ppm: u32) -> Option<String> {
    let all_ppm = session.control.processor().ok()?.limit_ppm;
    let (limit, all) = (Share(ppm), Share(all_ppm));
    (ppm > all_ppm)
        .then(|| format!("per_user = {limit} in [limits] has no effect: this server promises at most {all} in total"))
}

fn why_not(session: &Session, error: &Error) -> String {
    let by_hand = session.control.groups().ok().map(|groups| groups.user_limit_ppm).filter(|&ppm| ppm > 0);
    let why = match (error, by_hand) {
        (Error::Access, Some(ppm)) => {
            format!("{} was set manually; `xqos policy --user-limit off` removes it", Share(ppm))
        }
        (Error::Access, None) => {
            "only root and the user of the X server may limit users, so run `xqos rules run` as one of them".to_owned()
        }
        (error, _) => error.to_string(),
    };
    format!("per_user in [limits] has no effect: {why}")
}
