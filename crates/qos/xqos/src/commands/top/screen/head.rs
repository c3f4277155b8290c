// SPDX-License-Identifier: MIT
//! The lines above and below the page. A part that does not fit moves to the next line, if there is one. Otherwise it
//! is shortened or left out. Less important parts come later, so they are left out first.

use super::{Page, Purpose, View};
use crate::commands::top::settings::Grouping;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use xqos_abi::entry_flag;
use xqos_agent::client::described;
use xqos_agent::sample::{Departed, Sample, ServerSample, departed};
use xqos_text::time::of_ms;
use xqos_text::width::{columns, cut};

/// Minimum screen height at which a part of the head can have several lines.
const HIGH: u16 = 20;
/// A part of the head is shortened only if it keeps at least this many columns.
const LEAST: usize = 12;

impl View {
    pub fn head(&self, sample: &Sample, display: &str, area: Rect) -> Vec<Line<'static>> {
        let server = &sample.server;
        let width = usize::from(area.width);
        let most = if area.height < HIGH { 1 } else { 3 };
        let mut lines = flowed(self.title(sample, display), "  ", width, most);
        lines.extend(flowed(plain(of_interval(sample)), ", ", width, most));
        lines.extend(flowed(plain(of_reservations(server)), ", ", width, most));
        lines
    }

    /// The title line: warnings first, then what is always shown.
    fn title(&self, sample: &Sample, display: &str) -> Vec<Span<'static>> {
        let server = &sample.server;
        let holder = sample.clients.iter().find(|client| client.has(entry_flag::GRABS_SERVER));
        let bold = [
            Some(format!("xqos top {display}")),
            self.paused.then(|| "PAUSED".to_owned()),
            self.is_silent.then(|| "the server does not answer".to_owned()),
            (!self.filter.is_empty()).then(|| format!("filter: {}", self.filter)),
            self.grouping(),
            holder.map(|holder| format!("server grab: {}", described(&holder.entry))),
            server.aside().map(|reason| format!("xqos stepped aside: {reason}")),
        ];
        let style = Style::new().add_modifier(Modifier::BOLD);
        let mut parts: Vec<_> = bold.into_iter().flatten().map(|text| Span::styled(text, style)).collect();
        parts.extend(plain(vec![
            format!("policy {}", server.info.policy.name()),
            format!("{} client{}", server.clients, if server.clients == 1 { "" } else { "s" }),
        ]));
        parts
    }

    fn grouping(&self) -> Option<String> {
        match self.settings.grouping {
            Grouping::Client => None,
            Grouping::Tree => Some("tree".to_owned()),
            grouping => Some(format!("by {}", grouping.name())),
        }
    }

    pub fn foot(&self, width: usize) -> String {
        if let Some(prompt) = &self.prompt {
            // The proposed text is in brackets until a key changes it.
            let text = if prompt.is_typed { format!("{}_", prompt.text) } else { format!("[{}]", prompt.text) };
            return match &prompt.purpose {
                Purpose::Filter => input("filter", "", &text, width),
                Purpose::Reserve(target) => {
                    input(&format!("reserve for {}", target.name), " budget/period [hard]", &text, width)
                }
                Purpose::Release(_) | Purpose::Defaults => question(&prompt.text, width),
            };
        }
        if !self.message.is_empty() {
            return cut(&format!(" {}", self.message), width);
        }
        let order = format!("s by {}{}", self.settings.sort, if self.settings.is_reversed { " reversed" } else { "" });
        let hints: &[&str] = match self.page {
            Page::Longest => &["? help", "q quit", "l back", "/ filter", "p pause"],
            Page::Columns => &["? help", "Esc back", &order, "I reverse", "D defaults"],
            _ => &[
                "? help",
                "q quit",
                &order,
                "Enter details",
                "r reserve",
                "/ filter",
                "t tree",
                "f columns",
                "l longest",
                "w waits",
                "g group",
                "x release",
                "u undo",
                "p pause",
            ],
        };
        let mut text = String::new();
        for hint in hints {
            let gap = if text.is_empty() { " " } else { "  " };
            if columns(&text) + gap.len() + columns(hint) <= width {
                text += &format!("{gap}{hint}");
            }
        }
        text
    }
}

/// A prompt in one line. The typed text has priority, then the name, then the expected format.
fn input(label: &str, wanted: &str, text: &str, width: usize) -> String {
    let room = width.saturating_sub(columns(text) + 3);
    let label = cut(label, room);
    let wanted = if columns(&label) + columns(wanted) <= room { wanted } else { "" };
    let ways = "   Enter, Esc";
    let ways = if columns(&label) + columns(wanted) + ways.len() <= room { ways } else { "" };
    format!(" {label}{wanted}: {text}{ways}")
}

/// A yes-or-no question, answered with one key.
fn question(text: &str, width: usize) -> String {
    const KEYS: &str = "?  y: yes, other keys: no";
    format!(" {}{KEYS}", cut(text, width.saturating_sub(KEYS.len() + 1)))
}

fn of_interval(sample: &Sample) -> Vec<String> {
    let server = &sample.server;
    let last = sample.interval_ms.map_or_else(String::new, |ms| format!("last {}: ", of_ms(ms)));
    let shares = [server.share * 100.0, server.outside_share * 100.0];
    let mut parts = vec![format!("{last}{:.1} % for clients", shares[0]), format!("{:.1} % other work", shares[1])];
    let text = |left: &Departed| format!("{} x{} {:.1} %", departed::name(left), left.clients, left.share * 100.0);
    let left: Vec<_> = sample.departed.iter().filter(|left| left.share >= 0.0005).take(3).map(text).collect();
    if !left.is_empty() {
        parts.push(format!("gone: {}", left.join(", ")));
    }
    if server.running < 0.95 {
        parts.push(format!("without a processor for {:.0} % of slice time", (1.0 - server.running) * 100.0));
    }
    parts
}

fn of_reservations(server: &ServerSample) -> Vec<String> {
    let [admitted, limit] = [server.info.admitted_utilization_ppm, server.limit_ppm].map(|ppm| f64::from(ppm) / 1e6);
    let mut parts =
        vec![format!("reserved {admitted:.2} of {limit:.2}"), format!("{:.2} used", server.utilization_used)];
    parts.push(format!("longest recent blocking {}", of_ms(f64::from(server.info.blocking_observed_us) / 1e3)));
    if server.lost > 0 {
        parts.push(format!("{} trace records lost", server.lost));
    }
    parts.extend(server.cpu.as_ref().map(|cpu| format!("processor: {cpu}")));
    parts
}

fn plain(parts: Vec<String>) -> Vec<Span<'static>> {
    parts.into_iter().map(Span::raw).collect()
}

/// Lays out parts in at most `most` lines of `width` columns; each part stays in one line.
fn flowed(parts: Vec<Span<'static>>, between: &'static str, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    for part in parts {
        let count = lines.len();
        let Some(line) = lines.last_mut() else { continue };
        let gap = if line.spans.is_empty() { "" } else { between };
        let room = width.saturating_sub(line.width() + gap.len());
        if part.width() > room && count < most && !line.spans.is_empty() {
            lines.push(Line::from(Span::styled(cut(&part.content, width), part.style)));
        } else if part.width() <= room || room >= LEAST {
            line.spans.extend([Span::raw(gap), Span::styled(cut(&part.content, room), part.style)]);
        }
    }
    lines
}
