// SPDX-License-Identifier: MIT
//! The live view in a terminal, and the table of `--once`.
//!
//! The screen draws a [`Sample`]. Keys change the [`View`] or request a change from the server; changes on the server
//! can be undone.

mod changes;
mod columns;
mod detail;
mod head;
mod help;
mod keys;
mod rows;
mod table;
mod waits;

use super::settings::{SettingsFile, ViewSettings};
use anyhow::{Context, Result, bail};
use changes::{Change, KeyAction, PromptClient};
pub use help::keys_help;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{ListState, Paragraph, TableState};
use rows::{Arrangement, Row, RowKey};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
pub use table::text;
use xqos_agent::client::reservation_of;
use xqos_agent::rules::process::Users;
use xqos_agent::sample::{ClientSample, Sample, Sampler};
use xqos_cli::program::one_line;
use xqos_sys::{self as sys, Signals};
use xqos_text::quantity::{Micros, Reservation};
use xqos_trace::model::RequestTotals;

/// Number of samples kept for each client's history.
const HISTORY: usize = 240;
/// Longest time until a key press takes effect.
const KEY_EVERY: Duration = Duration::from_millis(100);

/// Minimum number of lines of the table when the waits are shown below it.
const LEAST_ROWS: u16 = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Purpose {
    Filter,
    Reserve(PromptClient),
    /// To be confirmed: the release of this client's reservation.
    Release(PromptClient),
    /// To be confirmed: the default settings.
    Defaults,
}

#[derive(Clone, Debug)]
struct Prompt {
    purpose: Purpose,
    text: String,
    /// While false, the first letter replaces the proposed text.
    is_typed: bool,
}

impl Prompt {
    fn new(purpose: Purpose, text: String) -> Prompt {
        Prompt { purpose, is_typed: text.is_empty(), text }
    }
}

/// The page below the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Page {
    #[default]
    Table,
    Details,
    /// The longest requests since the server started.
    Longest,
    Columns,
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
    fn of(client: &ClientSample) -> Point {
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
    settings: ViewSettings,
    /// Groups that the user has folded or unfolded.
    toggled: HashSet<RowKey>,
    users: Users,
    filter: String,
    paused: bool,
    /// The server did not answer in time, so that the sample is an earlier one.
    is_silent: bool,
    /// The first visible line of the help, if it is open.
    help: Option<u16>,
    selected: Option<RowKey>,
    /// Last position of the selected row; if its client disconnects, the row at this position is selected.
    at: usize,
    prompt: Option<Prompt>,
    message: String,
    changes: Vec<Change>,
    history: HashMap<u32, VecDeque<Point>>,
    table: TableState,
    columns: ListState,
}

/// Runs the live view until the user quits, a signal ends it, or the terminal is gone.
pub fn run(display: Option<&str>, every: Duration, mut file: SettingsFile) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        bail!("top needs a terminal: use --once or --json if the output goes elsewhere");
    }
    let mut sampler = Sampler::open(display)?;
    let signals = Signals::watch()?;
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    let (settings, message) = file.read();
    let view = View { settings, message, users: Users::read(), ..View::default() };
    let result = show(view, &mut sampler, &mut terminal, &signals, every, &mut file);
    ratatui::restore();
    result
}

fn show(
    mut view: View,
    sampler: &mut Sampler,
    terminal: &mut ratatui::DefaultTerminal,
    signals: &Signals,
    every: Duration,
    file: &mut SettingsFile,
) -> Result<()> {
    // Take the first sample after at most 200 ms, then one in each interval.
    sampler.wait(Duration::from_millis(200).min(every));
    let mut sample = sampler.sample()?;
    view.remember(&sample);
    let mut taken = Instant::now();
    loop {
        let detailed = view.chosen(&sample).filter(|row| view.page == Page::Details && !row.is_group());
        let kinds = detailed.map_or(Vec::new(), |row| sampler.kinds(row.client.entry.client));
        let display = sampler.session.display.clone();
        terminal.draw(|frame| view.draw(frame, &sample, &display, &kinds))?;
        let mut is_new = false;
        while !is_new {
            sampler.read();
            let Some(has_event) = wait_for_event()?.filter(|_| !signals.termination_requested()) else {
                return Ok(());
            };
            if has_event {
                let action = match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => view.key(key, &sample),
                    _ => KeyAction::Nothing,
                };
                if action == KeyAction::Quit {
                    return Ok(());
                }
                view.perform(action, &sample, sampler);
                if let Err(error) = file.keep(&view.settings) {
                    view.message = one_line(&error);
                }
                break;
            }
            is_new = taken.elapsed() >= every && !view.paused;
        }
        if is_new {
            let next = sampler.sample();
            taken = Instant::now();
            view.is_silent = next.as_ref().is_err_and(xqos_agent::Error::is_late);
            if !view.is_silent {
                sample = next?;
                view.remember(&sample);
            }
        }
    }
}

/// Waits for a key or a new size. Returns false after `KEY_EVERY`, and `None` if the terminal is gone, where crossterm
/// would read end of file in a loop.
fn wait_for_event() -> Result<Option<bool>> {
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let keyboard = if stdin.is_terminal() { stdin.as_fd() } else { stdout.as_fd() };
    for timeout in [Duration::ZERO, KEY_EVERY] {
        if sys::wait_for_terminal(keyboard, timeout)? {
            return Ok(None);
        }
        if event::poll(Duration::ZERO)? {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
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
        if self.page == Page::Details && self.chosen(sample).is_none() {
            (self.page, self.message) = (Page::Table, "the client has disconnected".to_owned());
        }
    }

    fn rows<'a>(&self, sample: &'a Sample) -> Vec<Row<'a>> {
        let arrangement = Arrangement { settings: &self.settings, toggled: &self.toggled, users: &self.users };
        arrangement.rows(&self.shown(sample))
    }

    /// The row that keys act on, if any.
    fn chosen<'a>(&self, sample: &'a Sample) -> Option<Row<'a>> {
        self.rows(sample).into_iter().find(|row| Some(&row.key) == self.selected.as_ref())
    }

    /// Keeps the selection on its row. If that has disappeared, selects the row in its place.
    fn settle(&mut self, rows: &[Row]) {
        match rows.iter().position(|row| Some(&row.key) == self.selected.as_ref()) {
            Some(at) => self.at = at,
            None => {
                self.at = self.at.min(rows.len().saturating_sub(1));
                self.selected = rows.get(self.at).map(|row| row.key.clone());
            }
        }
    }

    fn shown<'a>(&self, sample: &'a Sample) -> Vec<&'a ClientSample> {
        let is_shown = |client: &&ClientSample| {
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

    fn draw(&mut self, frame: &mut Frame, sample: &Sample, display: &str, kinds: &[(String, RequestTotals)]) {
        let area = frame.area();
        let lines = self.head(sample, display, area);
        let heights = [Constraint::Length(lines.len() as u16), Constraint::Min(3), Constraint::Length(1)];
        let [head, body, foot] = Layout::vertical(heights).areas(area);
        frame.render_widget(Paragraph::new(lines), head);
        let rows = self.rows(sample);
        self.settle(&rows);
        match (self.page, rows.get(self.at)) {
            (Page::Longest, _) => self.draw_longest(frame, body, &sample.server.longest_requests),
            (Page::Columns, _) => self.draw_columns(frame, body),
            (Page::Details, Some(row)) => self.draw_detail(frame, body, row, kinds),
            (_, row) => {
                let waits = row.filter(|_| self.settings.has_waits && body.height >= waits::HEIGHT + LEAST_ROWS);
                let heights = [Constraint::Min(1), Constraint::Length(waits.map_or(0, |_| waits::HEIGHT))];
                let [above, below] = Layout::vertical(heights).areas(body);
                waits.into_iter().for_each(|row| waits::draw(frame, below, row));
                self.draw_table(frame, above, &rows);
            }
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
