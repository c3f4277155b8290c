// SPDX-License-Identifier: MIT
//! Computes which waits would remain with a proxy next to the program ([`crate::answerable`] lists its answers), and
//! which would remain without a proxy if one request could ask for many answers.
//!
//! | proxy | answers | when |
//! |---|---|---|
//! | [`Remedy::Lbx`] | the requests that LBX (1996) answered; atoms are known | always |
//! | [`Remedy::Strict`] | the requests in that list | if the one before it had a reply or is silent ([`is_silent`]) |
//! | [`Remedy::Relaxed`] | the requests in that list | always, except from a barrier to the server's next reply |
//! | [`Remedy::Batch`] | atoms; extensions and their versions; properties | after the first; properties in a row |
//!
//! The proxy is assumed to have kept every possible answer from the program's last start, except properties of windows
//! that are neither the program's own nor a root. Replies arrive in order. The wait for a batch therefore remains if
//! one of its requests is forwarded, and the next wait remains if the reply to a forwarded request has not arrived yet.

mod client_model;
pub mod figures;

use super::avoidable::{Family, family};
use super::names::NameId;
use super::round_trip::Wait;
use crate::answerable::{Barrier, Class, Lbx, Row, barrier, is_silent, row};
use crate::observe::{Kind, Message};
use client_model::{ClientModel, atom};
use std::collections::BTreeMap;
use std::str::FromStr;

/// A proxy, or [`Remedy::Batch`]: requests that ask for many answers, without a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    Lbx,
    Strict,
    Relaxed,
    Batch,
}

impl Remedy {
    pub const ALL: [Remedy; 4] = [Remedy::Lbx, Remedy::Strict, Remedy::Relaxed, Remedy::Batch];

    pub fn name(self) -> &'static str {
        ["lbx", "strict", "relaxed", "batch"][self as usize]
    }
}

impl FromStr for Remedy {
    type Err = String;

    fn from_str(text: &str) -> Result<Remedy, String> {
        let found = Remedy::ALL.into_iter().find(|remedy| remedy.name() == text);
        found.ok_or_else(|| format!("'{text}' is not a proxy: write lbx, strict, relaxed or batch"))
    }
}

/// Number of waits with one name: in total, and those that would remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    pub waits: u64,
    pub left: u64,
}

#[derive(Debug)]
pub struct Proxied {
    pub remedy: Remedy,
    pub by_name: BTreeMap<NameId, WaitCounts>,
    client_model: ClientModel,
    /// True if a request was forwarded to the server, and the client has not waited since.
    is_pending: bool,
    /// True if the last request that was not silent had no reply.
    is_after_one_way: bool,
    /// Sequence number of the last barrier, until a reply from the server follows it.
    barrier: Option<u64>,
    /// For [`Remedy::Batch`]: whether atoms and extensions were asked for, and whether the last request with a reply
    /// asked for a property.
    asked: [bool; 3],
}

impl Proxied {
    pub fn new(remedy: Remedy) -> Proxied {
        Proxied {
            remedy,
            by_name: BTreeMap::new(),
            client_model: ClientModel::default(),
            is_pending: false,
            is_after_one_way: false,
            barrier: None,
            asked: [false; 3],
        }
    }

    /// Takes a message and the wait that it completes or reveals. For a request that has a reply, returns whether the
    /// proxy answers it; for a reply that the proxy could not predict, returns `Some(false)`.
    pub fn message(&mut self, message: &Message<'_>, wait: Option<&Wait>) -> Option<bool> {
        // A request shows that an earlier wait is over, so count that wait first. A reply completes its own wait.
        let is_request = matches!(message.kind, Kind::Request | Kind::Setup);
        if is_request {
            self.waited(wait);
        }
        self.client_model.learn(message);
        let is_answered = match message.kind {
            Kind::Setup => {
                self.is_pending = true;
                Some(false)
            }
            Kind::Request => self.request(message),
            Kind::Reply | Kind::Error => self.reply(message),
            Kind::SetupReply | Kind::Event => None,
        };
        if !is_request {
            self.waited(wait);
        }
        is_answered
    }

    fn request(&mut self, message: &Message<'_>) -> Option<bool> {
        let mut is_answered = None;
        if message.has_reply {
            let row = row(message.name);
            let is_known = match self.remedy {
                Remedy::Batch => self.is_batched(message.name),
                _ => self.is_allowed(&row) && self.client_model.can_answer(&row, message),
            };
            self.is_pending |= !is_known;
            is_answered = Some(is_known);
        } else if self.is_barrier(message) {
            self.barrier = Some(message.sequence);
        }
        if message.has_reply || !is_silent(message.name) {
            self.is_after_one_way = !message.has_reply;
        }
        is_answered
    }

    fn is_barrier(&self, message: &Message<'_>) -> bool {
        match barrier(message.name) {
            Barrier::None => false,
            Barrier::ForeignWindow => self.client_model.names_foreign_window(message),
            // OpenFont succeeds for a font that existed at the last start.
            Barrier::Always => message.name != "OpenFont",
        }
    }

    /// True if an earlier request could have asked for this answer too.
    fn is_batched(&mut self, request: &str) -> bool {
        let family = family(request);
        let is_property = family == Some(Family::Property);
        let was_property = std::mem::replace(&mut self.asked[2], is_property);
        match family {
            Some(Family::Atom) => std::mem::replace(&mut self.asked[0], true),
            Some(Family::Extension | Family::Version) => std::mem::replace(&mut self.asked[1], true),
            _ => is_property && was_property,
        }
    }

    /// True if the order of requests allows a proxy to answer.
    fn is_allowed(&self, row: &Row) -> bool {
        match self.remedy {
            Remedy::Lbx => row.lbx == Lbx::Answered,
            Remedy::Strict => row.class != Class::Never && !self.is_after_one_way,
            Remedy::Relaxed => row.class != Class::Never && self.barrier.is_none(),
            Remedy::Batch => false,
        }
    }

    fn reply(&mut self, message: &Message<'_>) -> Option<bool> {
        // The first reply from the server after a barrier shows that all earlier requests were executed.
        if self.barrier.is_some_and(|barrier| message.sequence > barrier) {
            self.barrier = None;
        }
        // The proxy cannot predict an error, nor that an atom is still missing, because any client may create it.
        if self.remedy == Remedy::Batch {
            return None;
        }
        let is_unknown = message.kind == Kind::Error || message.name == "InternAtom" && atom(message) == Some(0);
        self.is_pending |= is_unknown;
        is_unknown.then_some(false)
    }

    fn waited(&mut self, wait: Option<&Wait>) {
        let Some(wait) = wait else { return };
        let left = self.by_name.entry(wait.name).or_default();
        left.waits += 1;
        left.left += u64::from(std::mem::take(&mut self.is_pending));
    }
}

#[cfg(test)]
mod tests;
