// SPDX-License-Identifier: MIT
//! The live view in a terminal, and the table of `--once`.
//!
//! The screen draws a [`Sample`]; keys change what is shown ([`View`]) or ask the server for a change, each of which can
//! be undone.

mod changes;
mod detail;
mod format;
mod help;
mod keys;
mod longest;
mod order;
mod table;

use crate::client::described;
use crate::sample::{Client, Departed, Sample, Sampler};
use anyhow::{Context, Result, bail};
use changes::Change;
use order::Order;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, TableState};
use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
pub use table::text;
use xqos_text::time::narrow_of_ms;

/// Samples of a client's history.
const HISTORY: usize = 240;
/// A key is answered within this time.
const KEY_EVERY: Duration = Duration::from_millis(100);

/// What is typed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    Filter,
    Reserve,
}

/// What is shown below the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Page {
    #[default]
    Clients,
    /// All about one, by its resource base.
    Client(u32),
    /// The longest requests since the server began.
    Longest,
}

/// What is kept of a client in a sample, for its history.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    share: f64,
    p99_ms: f64,
    /// Of its reservation; 0: it has none.
    budget_ms: f64,
    period_ms: f64,
}

impl Point {
    fn of(client: &Client) -> Point {
        let reserved = client.reservation.as_ref();
        Point {
            share: client.share,
            p99_ms: client.response.as_ref().map_or(0.0, |response| response.p99_ms),
            budget_ms: reserved.map_or(0.0, |reserved| reserved.budget_ms),
            period_ms: reserved.map_or(0.0, |reserved| reserved.period_ms),
        }
    }
}

#[derive(Default)]
struct View {
    page: Page,
    order: Order,
    filter: String,
    paused: bool,
    help: bool,
    selected: Option<u32>,
    prompt: Option<(Prompt, String)>,
    said: String,
    changes: Vec<Change>,
    history: HashMap<u32, VecDeque<Point>>,
    table: TableState,
}

/// Shows it until the user has had enough.
pub fn run(display: Option<&str>, every: Duration) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        bail!("top needs a terminal: use --once, --json or --openmetrics where the output goes elsewhere");
    }
    let mut sampler = Sampler::open(display)?;
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let result = show(&mut sampler, &mut terminal, every);
    ratatui::restore();
    result
}

fn show(sampler: &mut Sampler, terminal: &mut ratatui::DefaultTerminal, every: Duration) -> Result<()> {
    let mut view = View::default();
    // Something at once, then what happened in each interval.
    sampler.wait(Duration::from_millis(200).min(every), || false)?;
    let mut sample = sampler.sample()?;
    view.remember(&sample);
    let mut taken = Instant::now();
    loop {
        view.order.sort(&mut sample.clients);
        terminal.draw(|frame| view.draw(frame, &sample, sampler))?;
        let mut is_new = false;
        while !is_new {
            sampler.read();
            if event::poll(KEY_EVERY)? {
                let is_over = match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => view.key(key, &sample, sampler),
                    _ => false,
                };
                if is_over {
                    return Ok(());
                }
                break;
            }
            is_new = taken.elapsed() >= every && !view.paused;
        }
        if is_new {
            sample = sampler.sample()?;
            taken = Instant::now();
            view.remember(&sample);
        }
    }
}

impl View {
    fn remember(&mut self, sample: &Sample) {
        for client in &sample.clients {
            let history = self.history.entry(client.entry.client).or_default();
            history.push_back(Point::of(client));
            if history.len() > HISTORY {
                history.pop_front();
            }
        }
        let is_there = |base: u32| sample.clients.iter().any(|client| client.entry.client == base);
        self.history.retain(|&base, _| is_there(base));
        if matches!(self.page, Page::Client(base) if !is_there(base)) {
            (self.page, self.said) = (Page::Clients, "the client has ended".to_owned());
        }
    }

    fn shown<'a>(&self, sample: &'a Sample) -> Vec<&'a Client> {
        let is_shown = |client: &&Client| self.lets_through(&client.name, client.title.as_deref(), client.pid);
        sample.clients.iter().filter(is_shown).collect()
    }

    /// Whether the filter does: a program, a title or a request that contains it, or the very pid.
    fn lets_through(&self, program: &str, title: Option<&str>, pid: Option<i32>) -> bool {
        let wanted = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        wanted.is_empty() || has(program) || title.is_some_and(has) || pid.is_some_and(|pid| pid.to_string() == wanted)
    }

    // Keys.

    fn draw(&mut self, frame: &mut Frame, sample: &Sample, sampler: &Sampler) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(3), Constraint::Length(1)]).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head(sample, sampler)), head);
        let of_page = |client: &&Client| self.page == Page::Client(client.entry.client);
        match sample.clients.iter().find(of_page) {
            Some(client) => self.draw_detail(frame, body, client, &sampler.kinds(client.entry.client)),
            None if self.page == Page::Longest => self.draw_longest(frame, body, &sample.server.longest_requests),
            None => self.draw_table(frame, body, sample),
        }
        frame.render_widget(Paragraph::new(self.foot()).style(Style::new().add_modifier(Modifier::REVERSED)), foot);
        if self.help {
            help::draw(frame);
        }
    }

    fn head(&self, sample: &Sample, sampler: &Sampler) -> Vec<Line<'static>> {
        let server = &sample.server;
        let bold = |text: String| Span::styled(text, Style::new().add_modifier(Modifier::BOLD));
        let mut first = vec![
            bold(format!("xqos top {}", sampler.session.display)),
            Span::raw(format!("  policy {}, {} clients", server.policy, server.clients)),
        ];
        let left: Vec<String> =
            sample.departed.iter().filter(|left| left.share >= 0.0005).take(3).map(left_text).collect();
        if !left.is_empty() {
            first.push(Span::raw(format!("; left: {}", left.join(", "))));
        }
        if !self.filter.is_empty() {
            first.push(bold(format!("  only: {}", self.filter)));
        }
        if self.paused {
            first.push(bold("  PAUSED".to_owned()));
        }
        if let Some(holder) = sample.clients.iter().find(|client| client.holds_server_grab) {
            first.push(bold(format!("  server grab: {}", described(&holder.entry))));
        }
        if let Some(reason) = &server.aside {
            first.push(bold(format!("  xqos stepped aside: {reason}")));
        }
        let second = format!(
            "server: {:.1} % for clients, {:.1} % other work{}; longest blocking {}",
            server.share * 100.0,
            server.outside_share * 100.0,
            if server.running < 0.95 {
                format!(", {:.0} % of slices without a processor", (1.0 - server.running) * 100.0)
            } else {
                String::new()
            },
            narrow_of_ms(server.blocking_ms)
        );
        let lost = if server.lost > 0 { format!("; {} trace records lost", server.lost) } else { String::new() };
        let cpu = server.cpu.as_ref().map_or_else(String::new, |cpu| format!("; processor: {cpu}"));
        let third = format!(
            "reserved: {:.2} of {:.2} admitted, {:.2} used{cpu}{lost}",
            server.utilization_admitted, server.utilization_limit, server.utilization_used
        );
        vec![Line::from(first), Line::from(second), Line::from(third)]
    }

    fn foot(&self) -> String {
        match &self.prompt {
            Some((Prompt::Filter, text)) => format!(" show only: {text}_"),
            Some((Prompt::Reserve, text)) => format!(" reserve budget/period [hard|soft=paper]: {text}_   Enter, Esc"),
            None if !self.said.is_empty() => format!(" {}", self.said),
            None if self.page == Page::Longest => " ? help  q quit  l back  / filter  p pause".to_owned(),
            None => {
                let order = self.order.name();
                format!(" ? help  q quit  s by {order}  Enter more  l longest  r reserve  u undo  / filter  p pause")
            }
        }
    }
}

/// Of the clients of a program that left: their share, in few words.
fn left_text(left: &Departed) -> String {
    format!("{} x{} {:.1} %", left.name(), left.clients, left.share * 100.0)
}
