// SPDX-License-Identifier: MIT
//! `[limits]` of the rules, as far as the server keeps them: what the reservations of one user may sum up to.
//!
//! The server takes it from root and from the user that runs it, and ends it with our connection. One that was set by hand
//! stands above it.

use crate::session::Session;
use xqos_abi::{Setting, Subject};
use xqos_cli::quantity::Share;
use xqos_client::Error;

/// The limit of users that we keep.
#[derive(Debug, Default)]
pub struct UserLimit {
    /// What we have set; 0: nothing.
    set_ppm: u32,
}

impl UserLimit {
    /// Has it kept from now on; `None`: none. Gives what is to be told.
    pub fn keep(&mut self, session: &Session, wanted: Option<u32>) -> Option<String> {
        let ppm = wanted.unwrap_or(0);
        if ppm == self.set_ppm {
            return None;
        }
        let control = &session.control;
        let set = control.set_origin("rules", true);
        let told = match set.and_then(|()| control.set(Subject::Server, Setting::UserLimit(ppm))) {
            Ok(()) => above_all(session, ppm),
            Err(error) => Some(why_not(session, &error)),
        };
        self.set_ppm = ppm;
        told
    }
}

/// It is kept, and less is promised in all.
fn above_all(session: &Session, ppm: u32) -> Option<String> {
    let all_ppm = session.control.processor().ok()?.limit_ppm;
    let (limit, all) = (Share(ppm), Share(all_ppm));
    (ppm > all_ppm).then(|| {
        format!("per_user = {limit} of [limits] is above {all}, which this server promises in all: that counts")
    })
}

fn why_not(session: &Session, error: &Error) -> String {
    let by_hand = session.control.groups().ok().map(|groups| groups.user_limit_ppm).filter(|&ppm| ppm > 0);
    match (error, by_hand) {
        (Error::Access, Some(ppm)) => {
            format!(
                "per_user of [limits] has no effect: {} was set by hand, `xqos policy --user-limit off` ends that",
                Share(ppm)
            )
        }
        (Error::Access, None) => {
            "per_user of [limits] has no effect: only root and the user of the X server may limit users, so \
                                  run `xqos rules run` as one of them"
                .to_owned()
        }
        (error, _) => format!("per_user of [limits] has no effect: {error}"),
    }
}
