// SPDX-License-Identifier: MIT
//! The table of clients on the screen, and the text of `--once`.

use super::View;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Row, Table as Grid};
use xqos_abi::entry_flag;
use xqos_agent::field::{Field, Place, shown, table};
use xqos_agent::sample::{CLIENT, LONGEST, Longest, Sample, departed};
use xqos_cli::width::Align;

/// A lower table has no room for a second line of titles.
const WITH_SPANS: u16 = 12;

impl View {
    pub fn draw_table(&mut self, frame: &mut Frame, area: Rect, sample: &Sample) {
        let shown = self.shown(sample);
        // Figures of different spans do not contradict each other where each says its own.
        let grid = grid(CLIENT, &shown, area.width, area.height >= WITH_SPANS, |client| {
            let holds = client.has(entry_flag::GRABS_SERVER);
            if holds { Style::new().add_modifier(Modifier::UNDERLINED) } else { Style::new() }
        });
        let at = shown.iter().position(|client| Some(client.entry.client) == self.selected);
        self.table.select(at.or(Some(0)).filter(|_| !shown.is_empty()));
        let grid = grid.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(grid, area, &mut self.table);
    }
}

/// As many columns as fit, of those that say something.
pub fn grid<T>(
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
    let title = |column: &Shown<T>| match has_spans {
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

/// The table of `--once`.
pub fn text(sample: &Sample) -> String {
    let (server, width) = (&sample.server, xqos_sys::terminal_columns());
    let mut text = format!(
        "policy {}, {} clients, {:.1} % of the time for them since the server began\n\n{}{}",
        server.info.policy.name(),
        server.clients,
        server.share * 100.0,
        table(CLIENT, &sample.clients.iter().collect::<Vec<_>>()).render(width),
        departed::text(&sample.departed, width)
    );
    let longest: Vec<&Longest> = server.longest_requests.iter().take(8).collect();
    if !longest.is_empty() {
        text += "\nThe longest requests since the server began\n";
        text += &table(LONGEST, &longest).render(width);
    }
    text
}

/// A field with its column.
struct Shown<T: 'static> {
    field: &'static Field<T>,
    width: Constraint,
    align: Align,
    span: &'static str,
}

fn columns_for<T>(fields: &'static [Field<T>], rows: &[&T], width: u16) -> Vec<Shown<T>> {
    let mut left = width;
    let mut columns = Vec::new();
    for field in shown(fields, rows) {
        let Place::Column { width: least, align, is_elastic, span } = field.place else { continue };
        if least > left {
            continue;
        }
        left = left.saturating_sub(least + 1);
        let width = if is_elastic { Constraint::Min(least) } else { Constraint::Length(least) };
        columns.push(Shown { field, width, align, span });
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{client, entry};
    use xqos_agent::sample::Client;
    use xqos_trace::histogram::Histogram;

    #[test]
    fn eighty_columns_show_who_and_how_much_and_how_long() {
        let reserved = Client { responses: Some(Histogram::default()), ..client(&entry()) };
        let titles = |of: &Client, width| {
            columns_for(CLIENT, &[of], width).iter().map(|column| column.field.title).collect::<Vec<_>>()
        };
        let first = ["PID", "PROGRAM", "SHARE", "TIME", "REQ/S", "P99", "WAIT", "RESERVED", "USED"];
        assert_eq!(titles(&reserved, 80), first);
        let mut busy = reserved;
        busy.entry.charged_ns *= 2;
        assert_eq!(titles(&busy, 400)[..4], ["PID", "PROGRAM", "SHARE", "CHARGED"]);
    }
}
