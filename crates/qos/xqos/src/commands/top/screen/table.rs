// SPDX-License-Identifier: MIT
//! The tables of clients and of the longest requests on the screen, and the text of `--once`.
//!
//! Unless requests are cut, neither a policy nor a reservation protects other clients from the longest ones.

use super::View;
use super::rows::Row;
use crate::commands::top::settings::field;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row as Line, Table as Grid};
use xqos_abi::entry_flag;
use xqos_agent::field::{Field, FieldView, table};
use xqos_agent::sample::{CLIENT, ClientSample, LONGEST, Longest, Sample, departed};
use xqos_text::width::{Align, columns};

/// Minimum height of a table with a second line of titles.
const WITH_SPANS: u16 = 12;
/// Minimum width of a terminal in which a column gets room for its longest text before further columns are added.
const WIDE: u16 = 120;
const MAX_WIDTH: u16 = 48;
const NO_MATCH: &str = "nothing matches the filter; Esc shows all again";

/// Returns false for fields that a group does not have, although their values in a sum are not empty.
pub fn is_summed(title: &str) -> bool {
    !["PID", "WEIGHT"].contains(&title)
}

/// The text of a row in a column.
pub fn text_of(field: &Field<ClientSample>, row: &Row) -> String {
    match field.title {
        "PROGRAM" if row.is_group() => format!("{} ({})", row.label(), row.members),
        "PROGRAM" => row.label(),
        title if row.is_group() && !is_summed(title) => String::new(),
        _ => field.text(&row.client),
    }
}

impl View {
    pub fn draw_table(&mut self, frame: &mut Frame, area: Rect, rows: &[Row]) {
        let fields: Vec<&Field<ClientSample>> = self.settings.shown().filter_map(field).collect();
        let cells = rows.iter().map(|row| fields.iter().map(|field| text_of(field, row)).collect()).collect();
        let style = |row: &Row| match (row.is_group(), row.client.has(entry_flag::GRABS_SERVER)) {
            (true, _) => Style::new().add_modifier(Modifier::BOLD),
            (false, true) => Style::new().add_modifier(Modifier::UNDERLINED),
            (false, false) => Style::new(),
        };
        let styles = rows.iter().map(style).collect();
        // The second line of titles names the time span of each figure.
        let has_spans = area.height >= WITH_SPANS;
        let grid = Cells { fields, cells, styles }.grid(area.width, has_spans, self.settings.sort);
        self.table.select((!rows.is_empty()).then_some(self.at));
        let grid = grid.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(grid, area, &mut self.table);
        if rows.is_empty() && !self.filter.is_empty() {
            let [_, body] = Layout::vertical([Constraint::Length(3), Constraint::Min(0)]).areas(area);
            frame.render_widget(Paragraph::new(NO_MATCH), body);
        }
    }

    pub fn draw_longest(&self, frame: &mut Frame, area: Rect, requests: &[Longest]) {
        let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(1)]).areas(area);
        let title = "The longest single requests since the server started, one for each client and kind";
        frame.render_widget(Paragraph::new(title), head);
        let is_shown = |request: &&Longest| self.is_matching(&request.program, Some(&request.name), Some(request.pid));
        let rows: Vec<&Longest> = requests.iter().filter(is_shown).collect();
        if rows.is_empty() {
            // The server records only requests of 0.1 ms or more.
            let none = "no request was long enough to delay other clients";
            frame.render_widget(Paragraph::new(if requests.is_empty() { none } else { NO_MATCH }), body);
            return;
        }
        let fields: Vec<&Field<Longest>> = LONGEST.iter().collect();
        let cells = rows.iter().map(|row| fields.iter().map(|field| field.text(row)).collect()).collect();
        let styles = vec![Style::new(); rows.len()];
        frame.render_widget(Cells { fields, cells, styles }.grid(body.width, false, ""), body);
    }
}

/// The texts of a table, with a style for each row.
struct Cells<T: 'static> {
    fields: Vec<&'static Field<T>>,
    cells: Vec<Vec<String>>,
    styles: Vec<Style>,
}

impl<T: 'static> Cells<T> {
    /// Lays out as many columns as fit, without empty ones. The title of the column `sorted` is highlighted.
    fn grid(&self, width: u16, has_spans: bool, sorted: &str) -> Grid<'static> {
        let visible = self.visible(width);
        let aligned = |text: String, align| {
            if align == Align::Right { Text::from(text).right_aligned() } else { Text::from(text) }
        };
        let title = |column: &VisibleColumn| {
            let title = self.fields[column.at].title.to_owned();
            let style = if title == sorted { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            let text = if has_spans { format!("{title}\n{}", column.span) } else { title };
            Cell::from(aligned(text, column.align)).style(style)
        };
        let head = Line::new(visible.iter().map(title)).height(if has_spans { 2 } else { 1 });
        let line = |cells: &Vec<String>| Line::new(visible.iter().map(|it| aligned(cells[it.at].clone(), it.align)));
        let lines = self.cells.iter().zip(&self.styles).map(|(cells, &style)| line(cells).style(style));
        Grid::new(lines, visible.iter().map(|column| Constraint::Length(column.width)))
            .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
            .column_spacing(1)
    }

    /// The columns that fit, in order. A column that is too wide is left out, but narrower ones after it are shown. The
    /// remaining width goes to columns with longer texts.
    fn visible(&self, width: u16) -> Vec<VisibleColumn> {
        let mut left = width;
        let mut visible = Vec::new();
        for (at, field) in self.fields.iter().enumerate() {
            let FieldView::Column { width: least, align, is_elastic, span } = field.place else { continue };
            let longest = self.cells.iter().map(|row| columns(&row[at])).max();
            let wanted = longest.map_or(least, |longest| (longest as u16).clamp(least, MAX_WIDTH.max(least)));
            let wanted = if is_elastic { wanted } else { least };
            let taken = if width >= WIDE && wanted <= left { wanted } else { least };
            if longest == Some(0) || taken > left {
                continue;
            }
            left = left.saturating_sub(taken + 1);
            visible.push(VisibleColumn { at, width: taken, wanted, align, span });
        }
        for column in &mut visible {
            let more = (column.wanted - column.width).min(left);
            column.width += more;
            left -= more;
        }
        visible
    }
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

struct VisibleColumn {
    /// Index of the field.
    at: usize,
    width: u16,
    /// The width of its longest text.
    wanted: u16,
    align: Align,
    span: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::settings::ViewSettings;
    use crate::fixture::{client, entry};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use xqos_abi::ClientEntry;
    use xqos_trace::histogram::Histogram;

    fn visible(of: &ClientSample, width: u16) -> Vec<(&'static str, u16)> {
        let fields: Vec<&Field<ClientSample>> = ViewSettings::default().shown().filter_map(field).collect();
        let cells = vec![fields.iter().map(|field| field.text(of)).collect()];
        let cells = Cells { fields, cells, styles: vec![Style::new()] };
        cells.visible(width).iter().map(|column| (cells.fields[column.at].title, column.width)).collect()
    }

    #[test]
    fn eighty_columns_show_program_share_and_wait() {
        let reserved = ClientSample { responses: Some(Histogram::default()), ..client(&entry()) };
        let titles =
            |of: &ClientSample, width| visible(of, width).into_iter().map(|(title, _)| title).collect::<Vec<_>>();
        let first = ["PID", "PROGRAM", "SHARE", "TIME", "REQ/S", "P99", "MAXWAIT", "RESERVED", "USED"];
        assert_eq!(titles(&reserved, 80), first);
        let mut busy = reserved;
        busy.entry.charged_ns *= 2;
        assert_eq!(titles(&busy, 400)[..4], ["PID", "PROGRAM", "SHARE", "CHARGED"]);
    }

    #[test]
    fn a_wide_terminal_shows_whole_names_of_requests_and_their_blocking_time() {
        let cut = ClientSample {
            longest_request: "RENDER CompositeGlyphs32".to_owned(),
            ..client(&ClientEntry { longest_part_us: 300, ..entry() })
        };
        let columns = visible(&cut, 150);
        let width = |title: &str| columns.iter().find(|column| column.0 == title).map(|column| column.1);
        assert_eq!(width("LONGEST REQUEST"), Some("11.2 ms RENDER CompositeGlyphs32".len() as u16));
        assert_eq!((width("BLOCKING"), width("PROGRAM")), (Some(8), Some(cut.name().len() as u16)));
        assert!(columns.iter().map(|column| column.1 + 1).sum::<u16>() <= 151, "{columns:?}");
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
        assert!(drawn(&filter("mpv"), &requests(16)).contains("nothing matches the filter"));
        assert!(drawn(&filter("mpv"), &[]).contains("no request was long enough"));
    }
}
