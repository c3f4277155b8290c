// SPDX-License-Identifier: MIT
//! Which waits would be left behind a proxy that stands beside the program, and answers what [`crate::answerable`] says.
//!
//! | proxy | answers | when |
//! |---|---|---|
//! | [`Proxy::Lbx`] | what that of 1996 answered; atoms are known | always |
//! | [`Proxy::Strict`] | what the table says | the request before it had a reply, or is silent ([`is_silent`]) |
//! | [`Proxy::Relaxed`] | what the table says | also after one-way requests, but for barriers; the first reply of the server behind one ends it |
//!
//! The proxy knows all answers that it can know when the program asks for the first time, from the program's last start; it
//! does not know properties of windows that are neither the program's own nor a root. Replies come in order, so that one
//! request of a batch that has to go to the server leaves its wait, and a reply that is still under way leaves the next.

pub mod figures;
mod known;

use super::names::NameId;
use super::round_trip::Wait;
use crate::answerable::{Barrier, Class, Lbx, Row, barrier, is_silent, row};
use crate::observe::{Kind, Message};
use known::Known;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Who stands beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proxy {
    Lbx,
    Strict,
    Relaxed,
}

impl Proxy {
    pub const ALL: [Proxy; 3] = [Proxy::Lbx, Proxy::Strict, Proxy::Relaxed];

    pub fn name(self) -> &'static str {
        match self {
            Proxy::Lbx => "lbx",
            Proxy::Strict => "strict",
            Proxy::Relaxed => "relaxed",
        }
    }
}

impl FromStr for Proxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Proxy, String> {
        let found = Proxy::ALL.into_iter().find(|proxy| proxy.name() == text);
        found.ok_or_else(|| format!("'{text}' is no proxy: write lbx, strict or relaxed"))
    }
}

/// Waits of one name: how many there are, and how many would be left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub waits: u64,
    pub left: u64,
}

/// One client, behind one kind of proxy.
#[derive(Debug)]
pub struct Proxied {
    pub proxy: Proxy,
    pub by_name: BTreeMap<NameId, Left>,
    known: Known,
    /// A request whose reply only the server can give was sent, and nobody has waited for one since.
    is_pending: bool,
    /// The last request that was not silent had no reply.
    is_after_one_way: bool,
    /// The number of the last barrier that no reply of the server has passed.
    barrier: Option<u64>,
}

impl Proxied {
    pub fn new(proxy: Proxy) -> Proxied {
        Proxied {
            proxy,
            by_name: BTreeMap::new(),
            known: Known::default(),
            is_pending: false,
            is_after_one_way: false,
            barrier: None,
        }
    }

    /// Takes a message, and the wait that it completes or proves. Of a request with a reply, and of a reply that could not
    /// be foreseen, whether the proxy answers.
    pub fn message(&mut self, message: &Message<'_>, wait: Option<&Wait>) -> Option<bool> {
        // A request proves that a wait was over before it; a reply completes one of its own.
        let is_request = matches!(message.kind, Kind::Request | Kind::Setup);
        if is_request {
            self.waited(wait);
        }
        self.known.learn(message);
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
            let is_known = self.is_allowed(&row) && self.known.can_answer(&row, message);
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
            Barrier::ForeignWindow => self.known.names_foreign_window(message),
            // A font that was there at the last start.
            Barrier::Always => message.name != "OpenFont",
        }
    }

    /// By the order alone.
    fn is_allowed(&self, row: &Row) -> bool {
        match self.proxy {
            Proxy::Lbx => row.lbx == Lbx::Answered,
            Proxy::Strict => row.class != Class::Never && !self.is_after_one_way,
            Proxy::Relaxed => row.class != Class::Never && self.barrier.is_none(),
        }
    }

    fn reply(&mut self, message: &Message<'_>) -> Option<bool> {
        // What is asked first behind a barrier goes to the server, which has done by then what it was told before.
        if self.barrier.is_some_and(|barrier| message.sequence > barrier) {
            self.barrier = None;
        }
        // An atom that does not exist may be made by anyone, and an error was not foreseen.
        let is_unknown = message.kind == Kind::Error || message.name == "InternAtom" && known::atom(message) == Some(0);
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
