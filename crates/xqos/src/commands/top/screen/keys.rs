// SPDX-License-Identifier: MIT
//! What the keys do to the view.

use super::{Page, Prompt, View};
use crate::sample::{Client, Sample, Sampler};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use xqos_abi::trace::Level;

impl View {
    /// True where the user has had enough.
    pub fn key(&mut self, key: KeyEvent, sample: &Sample, sampler: &mut Sampler) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.prompt.is_some() {
            self.type_key(key.code, sample, sampler);
            return false;
        }
        self.said.clear();
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Esc if self.page != Page::Clients => self.page = Page::Clients,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.prompt = Some((Prompt::Filter, self.filter.clone())),
            KeyCode::Char('r') if self.chosen(sample).is_some() => {
                self.prompt = Some((Prompt::Reserve, "3ms/10ms".to_owned()));
            }
            KeyCode::Char('x') => self.release(sample, sampler),
            KeyCode::Char('u') => self.undo(sample, sampler),
            KeyCode::Char('R') => self.toggle_requests(sampler),
            KeyCode::Char('l') if self.page == Page::Longest => self.page = Page::Clients,
            KeyCode::Char('l') => self.page = Page::Longest,
            KeyCode::Enter if self.page == Page::Clients => self.open(sample),
            KeyCode::Down | KeyCode::Char('j') => self.step(sample, 1),
            KeyCode::Up | KeyCode::Char('k') => self.step(sample, -1),
            _ => {}
        }
        false
    }

    fn type_key(&mut self, code: KeyCode, sample: &Sample, sampler: &mut Sampler) {
        let Some((prompt, text)) = &mut self.prompt else { return };
        match code {
            KeyCode::Char(letter) if text.len() < 64 => text.push(letter),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Esc => self.prompt = None,
            KeyCode::Enter => {
                let (prompt, text) = (*prompt, text.clone());
                self.prompt = None;
                match prompt {
                    Prompt::Filter => self.filter = text,
                    Prompt::Reserve => self.reserve(&text, sample, sampler),
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, sample: &Sample) {
        if let Some(client) = self.chosen(sample) {
            self.page = Page::Client(client.entry.client);
        }
    }

    /// The client that keys are for: none where none is pointed at.
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
        let to = if sampler.level() == Level::Requests { Level::Slices } else { Level::Requests };
        sampler.trace(to);
        self.said = match (sampler.has_trace(), to) {
            (false, _) => "this server gives no trace: it is on another machine".to_owned(),
            (_, Level::Requests) => "each request is timed now, until R again".to_owned(),
            (_, Level::Slices) => "requests are not timed any more".to_owned(),
        };
    }
}
