// SPDX-License-Identifier: MIT
//! Handles keys: they change the view, or request changes from the server.

use super::changes::KeyAction;
use super::rows::RowKey;
use super::{Page, Prompt, Purpose, View};
use crate::commands::top::settings::Grouping;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use xqos_agent::sample::Sample;

/// The number of rows that Page Up and Page Down move the selection.
const PAGE: isize = 10;

impl View {
    pub fn key(&mut self, key: KeyEvent, sample: &Sample) -> KeyAction {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return KeyAction::Quit;
        }
        self.settle(&self.rows(sample));
        if self.prompt.is_some() {
            return self.type_key(key);
        }
        if let Some(line) = self.help {
            self.help = match key.code {
                KeyCode::Esc | KeyCode::F(1) | KeyCode::Char('?' | 'h' | 'q') => None,
                KeyCode::Down | KeyCode::Char('j') => Some(line + 1),
                KeyCode::Up | KeyCode::Char('k') => Some(line.saturating_sub(1)),
                _ => Some(line),
            };
            return KeyAction::Nothing;
        }
        self.message.clear();
        if self.page == Page::Columns && self.column_key(key.code) || self.arrange(key.code) {
            return KeyAction::Nothing;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::F(10) => return KeyAction::Quit,
            KeyCode::Char('u') => return KeyAction::Undo,
            KeyCode::Char('R') => return KeyAction::Requests,
            KeyCode::Char('x') => self.ask_release(sample),
            KeyCode::Char('r') => self.ask_reservation(sample),
            KeyCode::Char('D') => self.ask(Purpose::Defaults, "use the default settings"),
            KeyCode::Char('/') | KeyCode::F(4) => self.ask(Purpose::Filter, &self.filter.clone()),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = Some(0),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('+') | KeyCode::Right => self.fold(sample, false),
            KeyCode::Char('-') | KeyCode::Left => self.fold(sample, true),
            code => self.turn_to(code, sample),
        }
        KeyAction::Nothing
    }

    fn ask(&mut self, purpose: Purpose, text: &str) {
        self.prompt = Some(Prompt::new(purpose, text.to_owned()));
    }

    /// Changes the page or the selected row.
    fn turn_to(&mut self, code: KeyCode, sample: &Sample) {
        match code {
            KeyCode::Esc if self.page != Page::Table => self.page = Page::Table,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('f') | KeyCode::F(2 | 6) => self.page = Page::Columns,
            KeyCode::Char('l') if self.page == Page::Longest => self.page = Page::Table,
            KeyCode::Char('l') => self.page = Page::Longest,
            KeyCode::Enter if self.page == Page::Table && self.selected.is_some() => self.page = Page::Details,
            KeyCode::Down | KeyCode::Char('j') => self.step(sample, 1),
            KeyCode::Up | KeyCode::Char('k') => self.step(sample, -1),
            KeyCode::PageDown => self.step(sample, PAGE),
            KeyCode::PageUp => self.step(sample, -PAGE),
            KeyCode::Home => self.step(sample, isize::MIN),
            KeyCode::End => self.step(sample, isize::MAX),
            _ => {}
        }
    }

    /// Changes the order, the grouping or the waits. Returns false for other keys.
    fn arrange(&mut self, code: KeyCode) -> bool {
        let settings = &mut self.settings;
        let before = settings.grouping;
        match code {
            KeyCode::Char('s' | '>') => settings.sort_by_next(1),
            KeyCode::Char('S' | '<') => settings.sort_by_next(-1),
            KeyCode::Char('I') => settings.is_reversed = !settings.is_reversed,
            KeyCode::Char('P') => settings.sort = "SHARE",
            KeyCode::Char('T') => settings.sort = "TIME",
            KeyCode::Char('w') => settings.has_waits = !settings.has_waits,
            KeyCode::Char('g') => settings.grouping = before.next(),
            KeyCode::Char('t') | KeyCode::F(5) if before == Grouping::Tree => settings.grouping = Grouping::Client,
            KeyCode::Char('t') | KeyCode::F(5) => settings.grouping = Grouping::Tree,
            _ => return false,
        }
        if settings.grouping != before {
            self.toggled.clear();
        }
        true
    }

    /// Folds or unfolds the selected group. For a row in an unfolded group, folding selects the group.
    fn fold(&mut self, sample: &Sample, is_to_fold: bool) {
        let rows = self.rows(sample);
        let Some(row) = rows.get(self.at) else { return };
        if row.is_group() && row.is_folded != is_to_fold {
            if !self.toggled.remove(&row.key) {
                self.toggled.insert(row.key.clone());
            }
        } else if is_to_fold {
            let outer = rows[..self.at].iter().rposition(|other| other.depth < row.depth);
            self.select(outer.map(|at| rows[at].key.clone()));
        }
    }

    /// Selects a row, if there is one.
    fn select(&mut self, key: Option<RowKey>) {
        self.selected = key.or(self.selected.take());
    }

    fn step(&mut self, sample: &Sample, by: isize) {
        let rows = self.rows(sample);
        let to = self.at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.select(rows.get(to).map(|row| row.key.clone()));
    }

    fn type_key(&mut self, key: KeyEvent) -> KeyAction {
        let Some(mut prompt) = self.prompt.take() else { return KeyAction::Nothing };
        if let Purpose::Release(_) | Purpose::Defaults = prompt.purpose {
            let is_confirmed = matches!(key.code, KeyCode::Char('y' | 'Y'));
            return if is_confirmed { self.answered(prompt) } else { KeyAction::Nothing };
        }
        match key.code {
            KeyCode::Esc => return KeyAction::Nothing,
            KeyCode::Enter => return self.answered(prompt),
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
        KeyAction::Nothing
    }

    fn answered(&mut self, prompt: Prompt) -> KeyAction {
        match prompt.purpose {
            Purpose::Reserve(target) => return KeyAction::Reserve(target, prompt.text),
            Purpose::Release(target) => return KeyAction::Release(target),
            Purpose::Filter => self.filter = prompt.text,
            Purpose::Defaults => (self.settings, self.toggled) = Default::default(),
        }
        KeyAction::Nothing
    }
}
