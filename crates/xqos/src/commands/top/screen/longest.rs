// SPDX-License-Identifier: MIT
//! The longest single requests since the server began. A request is never cut, so these are the waits from which no
//! policy and no reservation protects.

use super::View;
use super::table::grid;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::widgets::Paragraph;
use xqos_agent::sample::{LONGEST, Longest};

impl View {
    pub fn draw_longest(&self, frame: &mut Frame, area: Rect, requests: &[Longest]) {
        let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(1)]).areas(area);
        let title = "The longest single requests since the server began, one for each client and kind";
        frame.render_widget(Paragraph::new(title), head);
        let is_shown = |request: &&Longest| self.lets_through(&request.program, Some(&request.name), Some(request.pid));
        let rows: Vec<&Longest> = requests.iter().filter(is_shown).collect();
        if rows.is_empty() {
            // The server keeps those of 0.1 ms and more.
            frame.render_widget(Paragraph::new("none that was long enough to delay anybody"), body);
            return;
        }
        frame.render_widget(grid(LONGEST, &rows, body.width, false, |_| Style::new()), body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(view: &View, requests: &[Longest]) -> String {
        // What a terminal of 80x24 leaves between head and foot.
        let mut terminal = Terminal::new(TestBackend::new(80, 20)).unwrap();
        terminal.draw(|frame| view.draw_longest(frame, frame.area(), requests)).unwrap();
        terminal.backend().to_string()
    }

    fn requests(count: usize) -> Vec<Longest> {
        let request = |at: usize| Longest {
            name: "RENDER CompositeGlyphs32".to_owned(),
            ns: 12_000_000,
            ago_ms: 300_000.0,
            pid: 4_100_000 + at as i32,
            client: 0x20_0000,
            program: format!("firefox-{at}"),
        };
        (0..count).map(request).collect()
    }

    #[test]
    fn all_that_the_server_keeps_fit_a_small_terminal() {
        let screen = drawn(&View::default(), &requests(16));
        for at in 0..16 {
            let line = screen.lines().find(|line| line.contains(&format!("firefox-{at} "))).expect(&screen);
            for word in ["12.0 ms", "RENDER CompositeGlyphs32", &format!("{}", 4_100_000 + at), "5 min"] {
                assert!(line.contains(word), "'{word}' is missing in\n{screen}");
            }
        }
    }

    #[test]
    fn the_filter_holds_for_them_too() {
        let filter = |text: &str| View { filter: text.to_owned(), ..View::default() };
        let screen = drawn(&filter("fox-3"), &requests(16));
        assert!(screen.contains("firefox-3 ") && !screen.contains("firefox-4 "), "{screen}");
        assert!(drawn(&filter("mpv"), &requests(16)).contains("none that was long"));
    }
}
