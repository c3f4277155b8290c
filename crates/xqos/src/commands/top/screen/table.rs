// SPDX-License-Identifier: MIT
//! The tables of clients and of the longest requests on the screen, and the text of `--once`.
//!
//! A request is never interrupted, so neither a policy nor a reservation protects against the longest requests.

use super::View;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Paragraph, Row, Table as Grid};
use xqos_abi::entry_flag;
use xqos_agent::field::{Field, Place, shown, table};
use xqos_agent::sample::{CLIENT, LONGEST, Longest, Sample, departed};
use xqos_cli::width::Align;

/// Minimum height of a table with a second line of titles.
const WITH_SPANS: u16 = 12;

impl View {
    pub fn draw_table(&mut self, frame: &mut Frame, area: Rect, sample: &Sample) {
        let shown = self.shown(sample);
        // The second line of titles names the time span of each figure.
        let grid = grid(CLIENT, &shown, area.width, area.height >= WITH_SPANS, |client| {
            let holds = client.has(entry_flag::GRABS_SERVER);
            if holds { Style::new().add_modifier(Modifier::UNDERLINED) } else { Style::new() }
        });
        let at = shown.iter().position(|client| Some(client.entry.client) == self.selected);
        self.table.select(at.or(Some(0)).filter(|_| !shown.is_empty()));
        let grid = grid.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(grid, area, &mut self.table);
    }

    pub fn draw_longest(&self, frame: &mut Frame, area: Rect, requests: &[Longest]) {
        let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(1)]).areas(area);
        let title = "The longest single requests since the server started, one for each client and kind";
        frame.render_widget(Paragraph::new(title), head);
        let is_shown = |request: &&Longest| self.is_matching(&request.program, Some(&request.name), Some(request.pid));
        let rows: Vec<&Longest> = requests.iter().filter(is_shown).collect();
        if rows.is_empty() {
            // The server records only requests of 0.1 ms or more.
            frame.render_widget(Paragraph::new("no request was long enough to delay other clients"), body);
            return;
        }
        frame.render_widget(grid(LONGEST, &rows, body.width, false, |_| Style::new()), body);
    }
}

/// Lays out as many columns as fit, without empty ones.
fn grid<T>(
    fields: &'static [Field<T>],
    rows: &[&T],
    width: u16,
    has_spans: bool,
    style: impl Fn(&T) -> Style,
) -> Grid<'static> {
    let columns = columns_for(fields, rows, width);
    let aligned = |text: String, align| {
        if align == Align::Right { Text::from(text).right_aligned() } else { Text::from(text) }
    };
    let title = |column: &VisibleColumn<T>| match has_spans {
        true => aligned(format!("{}\n{}", column.field.title, column.span), column.align),
        false => aligned(column.field.title.to_owned(), column.align),
    };
    let head = Row::new(columns.iter().map(title)).height(if has_spans { 2 } else { 1 });
    let cells = |row: &T| Row::new(columns.iter().map(|column| aligned(column.field.text(row), column.align)));
    let rows = rows.iter().map(|row| cells(row).style(style(row)));
    Grid::new(rows, columns.iter().map(|column| column.width))
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .column_spacing(1)
}

/// The text of `--once`.
pub fn text(sample: &Sample) -> String {
    let (server, width) = (&sample.server, xqos_sys::terminal_columns());
    let mut text = format!(
        "policy {}, {} clients, which used {:.1} % of the time since the server started\n\n{}{}",
        server.info.policy.name(),
        server.clients,
        server.share * 100.0,
        table(CLIENT, &sample.clients.iter().collect::<Vec<_>>()).render(width),
        departed::text(&sample.departed, width)
    );
    let longest: Vec<&Longest> = server.longest_requests.iter().take(8).collect();
    if !longest.is_empty() {
        text += "\nThe longest requests since the server started\n";
        text += &table(LONGEST, &longest).render(width);
    }
    text
}

/// A field with the layout of its column.
struct VisibleColumn<T: 'static> {
    field: &'static Field<T>,
    width: Constraint,
    align: Align,
    span: &'static str,
}

fn columns_for<T>(fields: &'static [Field<T>], rows: &[&T], width: u16) -> Vec<VisibleColumn<T>> {
    let mut left = width;
    let mut columns = Vec::new();
    for field in shown(fields, rows) {
        let Place::Column { width: least, align, is_elastic, span } = field.place else { continue };
        if least > left {
            continue;
        }
        left = left.saturating_sub(least + 1);
        let width = if is_elastic { Constraint::Min(least) } else { Constraint::Length(least) };
        columns.push(VisibleColumn { field, width, align, span });
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{client, entry};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use xqos_agent::sample::Client;
    use xqos_trace::histogram::Histogram;

    #[test]
    fn eighty_columns_show_program_share_and_wait() {
        let reserved = Client { responses: Some(Histogram::default()), ..client(&entry()) };
        let titles = |of: &Client, width| {
            columns_for(CLIENT, &[of], width).iter().map(|column| column.field.title).collect::<Vec<_>>()
        };
        let first = ["PID", "PROGRAM", "SHARE", "TIME", "REQ/S", "P99", "MAXWAIT", "RESERVED", "USED"];
        assert_eq!(titles(&reserved, 80), first);
        let mut busy = reserved;
        busy.entry.charged_ns *= 2;
        assert_eq!(titles(&busy, 400)[..4], ["PID", "PROGRAM", "SHARE", "CHARGED"]);
    }

    fn drawn(view: &View, requests: &[Longest]) -> String {
        // The space between head and foot in a terminal of 80x24.
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
    fn all_requests_that_the_server_keeps_fit_a_small_terminal() {
        let screen = drawn(&View::default(), &requests(16));
        for at in 0..16 {
            let line = screen.lines().find(|line| line.contains(&format!("firefox-{at} "))).expect(&screen);
            for word in ["12.0 ms", "RENDER CompositeGlyphs32", &format!("{}", 4_100_000 + at), "5 min"] {
                assert!(line.contains(word), "'{word}' is missing in\n{screen}");
            }
        }
    }

    #[test]
    fn the_filter_applies_to_the_longest_requests() {
        let filter = |text: &str| View { filter: text.to_owned(), ..View::default() };
        let screen = drawn(&filter("fox-3"), &requests(16));
        assert!(screen.contains("firefox-3 ") && !screen.contains("firefox-4 "), "{screen}");
        assert!(drawn(&filter("mpv"), &requests(16)).contains("no request was long enough"));
    }
}
