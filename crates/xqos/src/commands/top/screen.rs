// SPDX-License-Identifier: MIT
//! The live view in a terminal, and the table of `--once`.
//!
//! The screen draws a [`Sample`]. Keys change the [`View`] or request a change from the server; changes on the server
//! can be undone.

mod detail;
mod head;
mod help;
mod keys;
mod table;

use anyhow::{Context, Result, bail};
use keys::{Action, Change, Target};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Paragraph, TableState};
use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
pub use table::text;
use xqos_agent::client::reservation_of;
use xqos_agent::sample::{CLIENT, Client, Sample, Sampler};
use xqos_cli::quantity::{Micros, Reservation};
use xqos_trace::model::Kind;

/// Number of samples kept for each client's history.
const HISTORY: usize = 240;
/// Longest time until a key press takes effect.
const KEY_EVERY: Duration = Duration::from_millis(100);

/// The sort orders that `s` cycles through: the key of a field, and its name.
const ORDERS: [(&str, &str); 6] = [
    ("charged_share", "share"),
    ("charged_ms", "server time"),
    ("requests_per_s", "requests"),
    ("response.p99_ms", "p99"),
    ("longest_wait_ms", "longest wait"),
    ("program", "name"),
];

/// An open prompt: for the filter, or for a client's reservation.
#[derive(Clone, Debug)]
struct Prompt {
    target: Option<Target>,
    text: String,
    /// While false, the first letter replaces the proposed text.
    is_typed: bool,
}

impl Prompt {
    fn new(target: Option<Target>, text: String) -> Prompt {
        Prompt { target, is_typed: text.is_empty(), text }
    }
}

/// The page below the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Page {
    #[default]
    Clients,
    /// The details of one client, by its resource base.
    Client(u32),
    /// The longest requests since the server started.
    Longest,
}

/// The figures of one sample that a client's history keeps.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    share: f64,
    p99_ms: f64,
    /// The budget of the client's reservation; 0 if it has none.
    budget_ms: f64,
    period_ms: f64,
}

impl Point {
    fn of(client: &Client) -> Point {
        let reserved = reservation_of(&client.entry).map(|(reserved, _)| reserved);
        let ms = |of: fn(Reservation) -> Micros| reserved.map_or(0.0, |reserved| f64::from(of(reserved).0) / 1e3);
        Point {
            share: client.share,
            p99_ms: client.responses.as_ref().map_or(0.0, |times| times.quantile_ns(0.99) as f64 / 1e6),
            budget_ms: ms(|reserved| reserved.budget),
            period_ms: ms(|reserved| reserved.period),
        }
    }
}

#[derive(Default)]
struct View {
    page: Page,
    /// Index into [`ORDERS`].
    order: usize,
    filter: String,
    paused: bool,
    /// The first visible line of the help, if it is open.
    help: Option<u16>,
    selected: Option<u32>,
    prompt: Option<Prompt>,
    message: String,
    changes: Vec<Change>,
    history: HashMap<u32, VecDeque<Point>>,
    table: TableState,
}

/// Runs the live view until the user quits.
pub fn run(display: Option<&str>, every: Duration) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        bail!("top needs a terminal: use --once or --json if the output goes elsewhere");
    }
    let mut sampler = Sampler::open(display)?;
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    let result = show(&mut sampler, &mut terminal, every);
    ratatui::restore();
    result
}

fn show(sampler: &mut Sampler, terminal: &mut ratatui::DefaultTerminal, every: Duration) -> Result<()> {
    let mut view = View::default();
    // Take the first sample soon, then one for each interval.
    sampler.wait(Duration::from_millis(200).min(every));
    let mut sample = sampler.sample()?;
    view.remember(&sample);
    let mut taken = Instant::now();
    loop {
        view.sort(&mut sample.clients);
        let kinds = match view.page {
            Page::Client(client) => sampler.kinds(client),
            _ => Vec::new(),
        };
        let display = sampler.session.display.clone();
        terminal.draw(|frame| view.draw(frame, &sample, &display, &kinds))?;
        let mut is_new = false;
        while !is_new {
            sampler.read();
            if event::poll(KEY_EVERY)? {
                let action = match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => view.key(key, &sample),
                    _ => Action::Nothing,
                };
                if action == Action::Quit {
                    return Ok(());
                }
                view.perform(action, &sample, sampler);
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
    /// Sorts numbers in descending order, and names alphabetically.
    fn sort(&self, clients: &mut [Client]) {
        let (key, _) = ORDERS[self.order];
        let Some(field) = CLIENT.iter().find(|field| field.key == key) else { return };
        let number = |client: &Client| field.number_of(client).unwrap_or(0.0);
        clients.sort_by(|a, b| number(b).total_cmp(&number(a)));
        if key == "program" {
            clients.sort_by_cached_key(|client| field.text(client));
        }
    }

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
            (self.page, self.message) = (Page::Clients, "the client has disconnected".to_owned());
        }
    }

    fn shown<'a>(&self, sample: &'a Sample) -> Vec<&'a Client> {
        let is_shown = |client: &&Client| {
            let pid = Some(client.entry.pid).filter(|&pid| pid != 0);
            self.is_matching(&client.name(), client.title.as_deref(), pid)
        };
        sample.clients.iter().filter(is_shown).collect()
    }

    /// Returns true if the filter is a part of the program, title or request name, or is the pid.
    fn is_matching(&self, program: &str, title: Option<&str>, pid: Option<i32>) -> bool {
        let wanted = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        wanted.is_empty() || has(program) || title.is_some_and(has) || pid.is_some_and(|pid| pid.to_string() == wanted)
    }

    fn draw(&mut self, frame: &mut Frame, sample: &Sample, display: &str, kinds: &[(String, Kind)]) {
        let area = frame.area();
        let lines = self.head(sample, display, area);
        let heights = [Constraint::Length(lines.len() as u16), Constraint::Min(3), Constraint::Length(1)];
        let [head, body, foot] = Layout::vertical(heights).areas(area);
        frame.render_widget(Paragraph::new(lines), head);
        let of_page = |client: &&Client| self.page == Page::Client(client.entry.client);
        match sample.clients.iter().find(of_page) {
            Some(client) => self.draw_detail(frame, body, client, kinds),
            None if self.page == Page::Longest => self.draw_longest(frame, body, &sample.server.longest_requests),
            None => self.draw_table(frame, body, sample),
        }
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(self.foot(usize::from(area.width))).style(reversed), foot);
        if let Some(line) = self.help {
            self.help = Some(help::draw(frame, line));
        }
    }
}

#[cfg(test)]
mod tests;
