// SPDX-License-Identifier: MIT
//! The page on which the user chooses and orders the columns.

use super::{Page, View};
use crate::commands::top::settings::{Choice, field};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{List, Paragraph};
use xqos_agent::field::explained;
use xqos_text::width::cut;

const TITLE: &str = "Space: show or hide; Left, Right: move; s: sort; I: reverse; Esc: back";

impl View {
    pub fn draw_columns(&mut self, frame: &mut Frame, area: Rect) {
        let width = usize::from(area.width);
        let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(1)]).areas(area);
        frame.render_widget(Paragraph::new(cut(TITLE, width)), head);
        let line = |choice: &Choice| {
            let mark = if choice.is_shown { "[x]" } else { "[ ]" };
            let sort = match (choice.title == self.settings.sort, self.settings.is_reversed) {
                (false, _) => ' ',
                (true, false) => '▼',
                (true, true) => '▲',
            };
            let help = field(choice.title).map_or("", |field| field.help);
            let about = explained(choice.title, help, usize::MAX).swap_remove(0);
            cut(&format!("{mark} {sort} {about}"), width)
        };
        let list = List::new(self.settings.columns.iter().map(line).collect::<Vec<_>>());
        let list = list.highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        self.columns.select(Some(self.columns.selected().unwrap_or(0)));
        frame.render_stateful_widget(list, body, &mut self.columns);
    }

    /// Returns false for keys that have no special meaning on this page.
    pub fn column_key(&mut self, code: KeyCode) -> bool {
        let at = self.columns.selected().unwrap_or(0);
        let last = self.settings.columns.len() - 1;
        let to = match code {
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Home => 0,
            KeyCode::End => last,
            KeyCode::Left | KeyCode::Char('-') => self.move_column(at, at.saturating_sub(1)),
            KeyCode::Right | KeyCode::Char('+') => self.move_column(at, (at + 1).min(last)),
            KeyCode::Char(' ' | 'd') => self.toggle_column(at),
            KeyCode::Char('s') => {
                self.settings.sort = self.settings.columns[at].title;
                at
            }
            KeyCode::Enter | KeyCode::Char('f' | 'q') | KeyCode::F(2 | 6) => {
                self.page = Page::Table;
                at
            }
            _ => return false,
        };
        self.columns.select(Some(to));
        true
    }

    fn move_column(&mut self, from: usize, to: usize) -> usize {
        self.settings.columns.swap(from, to);
        to
    }

    fn toggle_column(&mut self, at: usize) -> usize {
        let shown = self.settings.shown().count();
        let choice = &mut self.settings.columns[at];
        if choice.is_shown && shown == 1 {
            self.message = "one column must stay".to_owned();
        } else {
            choice.is_shown = !choice.is_shown;
        }
        at
    }
}
