// SPDX-License-Identifier: MIT
//! Removes the rows of other messages. Totals still count the whole capture.

use super::{Figures, PhaseFigures, Report, WaitFigures};
use crate::observe::Kind;
use crate::x11::message_name::Filter;

impl Report {
    pub fn keep(&mut self, filter: &Filter) {
        for connection in &mut self.connections {
            keep_figures(&mut connection.figures, filter);
            let phases = connection.startup.window.iter_mut().chain([&mut connection.startup.quiet]);
            phases.for_each(|PhaseFigures { waits, .. }| keep_waits(waits, filter));
        }
        keep_figures(&mut self.session.figures, filter);
    }
}

fn keep_figures(figures: &mut Figures, filter: &Filter) {
    let Figures { requests, replies, events, errors, waits, patterns, unused, repeated, proxy, .. } = figures;
    let is_request = |name: &str| filter.takes(Kind::Request, name);
    requests.retain(|name, _| is_request(name));
    replies.retain(|name, _| filter.takes(Kind::Reply, name));
    events.retain(|name, _| filter.takes(Kind::Event, name));
    errors.retain(|name, _| filter.takes(Kind::Error, name));
    keep_waits(waits, filter);
    // A pattern lists the requests that were waited for together.
    let is_part = |letter: char| letter.is_alphanumeric() || "_-:".contains(letter);
    patterns.retain(|row| row.pattern.split(|letter| !is_part(letter)).any(is_request));
    unused.retain(|name, _| is_request(name));
    repeated.retain(|name, _| is_request(name));
    if let Some(proxy) = proxy {
        proxy.names.retain(|row| is_request(&row.name));
    }
}

fn keep_waits(waits: &mut Vec<WaitFigures>, filter: &Filter) {
    waits.retain(|row| filter.takes(Kind::Request, &row.name));
}
