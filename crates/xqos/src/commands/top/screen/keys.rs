// SPDX-License-Identifier: MIT
//! Handles keys: they change the view, or request changes from the server. Reservations that were made or released can
//! be undone.

use super::{ORDERS, Page, Prompt, View};
use crate::kind;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use xqos_abi::trace::Level;
use xqos_agent::client::{Connection, connection, reservation_of};
use xqos_agent::sample::{Client, Sample, Sampler};
use xqos_agent::session::Account;
use xqos_cli::quantity::Reservation;
use xqos_core::ReservationKind;

/// The result of a key press, if the view cannot handle it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Quit,
    Reserve(Target, String),
    Release,
    Undo,
    Requests,
}

/// The client that a prompt is for; it stays valid when the order of the clients changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub connection: Connection,
    /// The name of its program and its pid.
    pub name: String,
}

/// A change that can be undone: the client, and its previous reservation.
pub struct Change {
    connection: Connection,
    before: Option<(u32, u32, ReservationKind)>,
    what: String,
}

impl View {
    pub fn key(&mut self, key: KeyEvent, sample: &Sample) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.prompt.is_some() {
            return self.type_key(key);
        }
        if let Some(line) = self.help {
            self.help = match key.code {
                KeyCode::Esc | KeyCode::Char('?' | 'h' | 'q') => None,
                KeyCode::Down | KeyCode::Char('j') => Some(line + 1),
                KeyCode::Up | KeyCode::Char('k') => Some(line.saturating_sub(1)),
                _ => Some(line),
            };
            return Action::Nothing;
        }
        self.message.clear();
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('x') => return Action::Release,
            KeyCode::Char('u') => return Action::Undo,
            KeyCode::Char('R') => return Action::Requests,
            KeyCode::Esc if self.page != Page::Clients => self.page = Page::Clients,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.help = Some(0),
            KeyCode::Char('s') => self.order = (self.order + 1) % ORDERS.len(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.prompt = Some(Prompt::new(None, self.filter.clone())),
            KeyCode::Char('r') => self.ask_reservation(sample),
            KeyCode::Char('l') if self.page == Page::Longest => self.page = Page::Clients,
            KeyCode::Char('l') => self.page = Page::Longest,
            KeyCode::Enter if self.page == Page::Clients => self.open(sample),
            KeyCode::Down | KeyCode::Char('j') => self.step(sample, 1),
            KeyCode::Up | KeyCode::Char('k') => self.step(sample, -1),
            _ => {}
        }
        Action::Nothing
    }

    pub fn perform(&mut self, action: Action, sample: &Sample, sampler: &mut Sampler) {
        match action {
            Action::Nothing | Action::Quit => {}
            Action::Reserve(target, text) => self.reserve(&target, &text, sample, sampler),
            Action::Release => self.release(sample, sampler),
            Action::Undo => self.undo(sample, sampler),
            Action::Requests => self.toggle_requests(sampler),
        }
    }

    fn ask_reservation(&mut self, sample: &Sample) {
        let Some(client) = self.chosen(sample) else { return };
        let name = match client.entry.pid {
            0 => client.name(),
            pid => format!("{} ({pid})", client.name()),
        };
        let target = Target { connection: connection(&client.entry), name };
        self.selected = Some(client.entry.client);
        self.prompt = Some(Prompt::new(Some(target), "3ms/10ms".to_owned()));
    }

    fn type_key(&mut self, key: KeyEvent) -> Action {
        let Some(mut prompt) = self.prompt.take() else { return Action::Nothing };
        match key.code {
            KeyCode::Esc => return Action::Nothing,
            KeyCode::Enter => match prompt.target {
                None => {
                    self.filter = prompt.text;
                    return Action::Nothing;
                }
                Some(target) => return Action::Reserve(target, prompt.text),
            },
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => prompt.text.clear(),
            KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => {}
            KeyCode::Char(letter) if !prompt.is_typed => prompt.text = letter.to_string(),
            KeyCode::Char(letter) if prompt.text.len() < 64 => prompt.text.push(letter),
            KeyCode::Backspace => {
                prompt.text.pop();
            }
            _ => {}
        }
        prompt.is_typed = true;
        self.prompt = Some(prompt);
        Action::Nothing
    }

    fn open(&mut self, sample: &Sample) {
        if let Some(client) = self.chosen(sample) {
            self.page = Page::Client(client.entry.client);
        }
    }

    /// The client that keys act on, if any.
    pub fn chosen<'a>(&self, sample: &'a Sample) -> Option<&'a Client> {
        let base = match self.page {
            Page::Clients => self.selected,
            Page::Client(base) => Some(base),
            Page::Longest => return None,
        };
        let shown = self.shown(sample);
        shown.iter().copied().find(|client| Some(client.entry.client) == base).or_else(|| shown.first().copied())
    }

    fn step(&mut self, sample: &Sample, by: i32) {
        let shown = self.shown(sample);
        if shown.is_empty() {
            return;
        }
        let at = shown.iter().position(|client| Some(client.entry.client) == self.selected).unwrap_or(0);
        let to = (at as i32 + by).clamp(0, shown.len() as i32 - 1) as usize;
        self.selected = Some(shown[to].entry.client);
        if matches!(self.page, Page::Client(_)) {
            self.page = Page::Client(shown[to].entry.client);
        }
    }

    fn toggle_requests(&mut self, sampler: &mut Sampler) {
        let to = if sampler.feed.level == Level::Requests { Level::Slices } else { Level::Requests };
        sampler.trace(to);
        self.message = match (sampler.feed.is_open(), to) {
            (false, _) => "this server provides no trace because it runs on another machine".to_owned(),
            (_, Level::Requests) => "each request is timed until you press R again".to_owned(),
            (_, Level::Slices) => "requests are no longer timed".to_owned(),
        };
    }

    fn reserve(&mut self, target: &Target, text: &str, sample: &Sample, sampler: &mut Sampler) {
        let is_it = |client: &&Client| connection(&client.entry) == target.connection;
        let Some(client) = sample.clients.iter().find(is_it) else {
            self.message = format!("{} has disconnected", target.name);
            return;
        };
        let (amount, kind) = kind::split(text);
        let result = amount.parse::<Reservation>().and_then(|wanted| {
            let done = sampler.session.reserve(&Account::of_client(&client.entry), wanted, kind);
            done.map(|()| wanted).map_err(|error| error.in_one_line())
        });
        match result {
            Ok(wanted) => self.changed(client, format!("{wanted} reserved for {}", client.name())),
            Err(error) => self.message = error,
        }
    }

    fn release(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(client) = self.chosen(sample) else { return };
        if reservation_of(&client.entry).is_none() {
            self.message = format!("{} has no reservation", client.name());
            return;
        }
        match sampler.session.control.release(client.entry.client) {
            Ok(()) => self.changed(client, format!("{}'s reservation released", client.name())),
            Err(error) => self.message = sampler.session.explained(error, &client.entry).in_one_line(),
        }
    }

    fn changed(&mut self, client: &Client, what: String) {
        let entry = &client.entry;
        let before = reservation_of(entry).map(|_| (entry.budget_us, entry.period_us, entry.kind()));
        self.message = format!("{what}; press u to undo");
        self.changes.push(Change { connection: connection(entry), before, what });
    }

    fn undo(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(change) = self.changes.pop() else {
            self.message = "nothing to undo".to_owned();
            return;
        };
        let same = |client: &&Client| connection(&client.entry) == change.connection;
        let Some(client) = sample.clients.iter().find(same) else {
            self.message = format!("cannot undo, the client has disconnected: {}", change.what);
            return;
        };
        let control = &sampler.session.control;
        let result = match change.before {
            Some((budget_us, period_us, kind)) => control.reserve(client.entry.client, budget_us, period_us, kind),
            None => control.release(client.entry.client),
        };
        self.message = match result {
            Ok(()) => format!("undone: {}", change.what),
            Err(error) => sampler.session.explained(error, &client.entry).in_one_line(),
        };
    }
}
