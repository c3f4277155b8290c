// SPDX-License-Identifier: MIT
//! The table of clients: its columns, on the screen and in the text of `--once`.

use super::View;
use super::format::count;
use crate::client::printable;
use crate::sample::{Client, Sample, departed};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Row, Table as Grid};
use xqos_cli::table::{Column, Table};
use xqos_cli::time::{ago_of_ms, narrow_of_ms};

/// A lower table has no room for a second line of titles.
const WITH_SPANS: u16 = 12;

impl View {
    pub fn draw_table(&mut self, frame: &mut Frame, area: Rect, sample: &Sample) {
        let shown = self.shown(sample);
        let columns = columns_for(area.width, shown.iter().any(|client| client.is_charged_otherwise()));
        let widths: Vec<Constraint> = columns.iter().map(|column| column.width).collect();
        // Figures of different spans do not contradict each other where each says its own.
        let has_spans = area.height >= WITH_SPANS;
        let title = |column: &ScreenColumn| match has_spans {
            true => column.aligned(format!("{}\n{}", column.title, column.span())),
            false => column.aligned(column.title.to_owned()),
        };
        let head = Row::new(columns.iter().map(|column| title(column)))
            .height(if has_spans { 2 } else { 1 })
            .style(Style::new().add_modifier(Modifier::BOLD));
        let rows = shown.iter().map(|client| {
            let style =
                if client.holds_server_grab { Style::new().add_modifier(Modifier::UNDERLINED) } else { Style::new() };
            Row::new(columns.iter().map(|column| column.aligned((column.text)(client)))).style(style)
        });
        let at = shown.iter().position(|client| Some(client.entry.client) == self.selected);
        self.table.select(at.or(Some(0)).filter(|_| !shown.is_empty()));
        let grid = Grid::new(rows, widths)
            .header(head)
            .column_spacing(1)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(grid, area, &mut self.table);
    }
}

/// The table of `--once`.
pub fn text(sample: &Sample) -> String {
    let mut table = Table::new(
        COLUMNS
            .iter()
            .filter(|(_, column)| !["P50", "P99"].contains(&column.title))
            .enumerate()
            .map(|(rank, (_, column))| Column {
                title: column.title,
                right: column.right,
                rank: if rank < 5 { 0 } else { rank as u8 },
                elastic: ["PROGRAM", "TITLE"].contains(&column.title),
            })
            .collect(),
    );
    for client in &sample.clients {
        let columns = COLUMNS.iter().filter(|(_, column)| !["P50", "P99"].contains(&column.title));
        table.row(columns.map(|(_, column)| (column.text)(client)).collect());
    }
    let server = &sample.server;
    let mut text = format!(
        "policy {}, {} clients, {:.1} % of the time for them since the server began\n\n{}",
        server.policy,
        server.clients,
        server.share * 100.0,
        table.render(xqos_sys::terminal_columns())
    );
    text += &departed::text(&sample.departed, xqos_sys::terminal_columns());
    if !server.longest_requests.is_empty() {
        text += "\nThe longest requests since the server began\n";
        for request in server.longest_requests.iter().take(8) {
            let (length, ago) = (narrow_of_ms(request.ms), ago_of_ms(request.ago_ms));
            text += &format!("{length:>9}  {} ({}) {}, {ago} ago\n", request.program, request.pid, request.name);
        }
    }
    text
}

struct ScreenColumn {
    title: &'static str,
    width: Constraint,
    right: bool,
    text: fn(&Client) -> String,
}

impl ScreenColumn {
    fn aligned(&self, text: String) -> Text<'static> {
        let text = Text::from(text);
        if self.right { text.right_aligned() } else { text }
    }

    /// Of when its figures are: of the last interval, or of the time since the client connected.
    fn span(&self) -> &'static str {
        match self.title {
            "SHARE" | "CHARGED" | "REQ/S" | "P50" | "P99" => "last",
            "TIME" | "WAIT" | "LONGEST" | "GRAB" => "ever",
            _ => "",
        }
    }
}

/// In the order of their importance; what does not fit is left out.
const COLUMNS: [(u16, ScreenColumn); 16] = [
    (
        7,
        ScreenColumn {
            title: "PID",
            width: Constraint::Length(7),
            right: true,
            text: |client| client.pid.map_or_else(|| "remote".to_owned(), |pid| pid.to_string()),
        },
    ),
    (
        14,
        ScreenColumn { title: "PROGRAM", width: Constraint::Min(14), right: false, text: |client| client.name.clone() },
    ),
    (
        6,
        ScreenColumn {
            title: "SHARE",
            width: Constraint::Length(6),
            right: true,
            text: |client| format!("{:.1}%", client.share * 100.0),
        },
    ),
    (
        7,
        ScreenColumn {
            title: "CHARGED",
            width: Constraint::Length(7),
            right: true,
            text: |client| match client.is_charged_otherwise() {
                true => format!("{:.1}%", client.charged_share * 100.0),
                false => String::new(),
            },
        },
    ),
    (
        8,
        ScreenColumn {
            title: "TIME",
            width: Constraint::Length(8),
            right: true,
            text: |client| narrow_of_ms(client.server_time_ms),
        },
    ),
    (
        7,
        ScreenColumn {
            title: "REQ/S",
            width: Constraint::Length(7),
            right: true,
            text: |client| count(client.requests_per_s),
        },
    ),
    (
        8,
        ScreenColumn {
            title: "P99",
            width: Constraint::Length(8),
            right: true,
            text: |client| {
                client.response.as_ref().map_or_else(|| "-".to_owned(), |response| narrow_of_ms(response.p99_ms))
            },
        },
    ),
    (
        8,
        ScreenColumn {
            title: "WAIT",
            width: Constraint::Length(8),
            right: true,
            text: |client| narrow_of_ms(client.longest_wait_ms),
        },
    ),
    (
        14,
        ScreenColumn {
            title: "RESERVED",
            width: Constraint::Length(14),
            right: false,
            text: |client| {
                let own = client.reservation.as_ref().map(|reserved| match client.by.is_auto() {
                    true => format!("{:.1}/{:.1} auto", reserved.budget_ms, reserved.period_ms),
                    false => format!("{}/{} {:.0}%", reserved.budget_ms, reserved.period_ms, reserved.used * 100.0),
                });
                let of_group = client.group.as_ref().and_then(|group| group.reservation.as_ref());
                let of_group = of_group.map(|shared| format!("{}/{} group", shared.budget_ms, shared.period_ms));
                own.or(of_group).unwrap_or_default()
            },
        },
    ),
    (
        22,
        ScreenColumn {
            title: "LONGEST",
            width: Constraint::Min(22),
            right: false,
            text: |client| {
                client
                    .longest_request
                    .as_ref()
                    .map_or_else(String::new, |request| format!("{} {}", narrow_of_ms(request.ms), request.name))
            },
        },
    ),
    (
        8,
        ScreenColumn {
            title: "P50",
            width: Constraint::Length(8),
            right: true,
            text: |client| {
                client.response.as_ref().map_or_else(|| "-".to_owned(), |response| narrow_of_ms(response.p50_ms))
            },
        },
    ),
    (
        8,
        ScreenColumn {
            title: "GRAB",
            width: Constraint::Length(8),
            right: true,
            text: |client| {
                if client.grabs == 0 { String::new() } else { narrow_of_ms(client.grabbed_ms) }
            },
        },
    ),
    (
        14,
        ScreenColumn {
            title: "ROLE",
            width: Constraint::Length(14),
            right: false,
            text: |client| client.role.unwrap_or_default().to_owned(),
        },
    ),
    (
        12,
        ScreenColumn {
            title: "BY",
            width: Constraint::Length(12),
            right: false,
            text: |client| printable(client.by.shown()),
        },
    ),
    (
        6,
        ScreenColumn {
            title: "SYNC",
            width: Constraint::Length(6),
            right: true,
            text: |client| client.sync_priority.to_string(),
        },
    ),
    (
        20,
        ScreenColumn {
            title: "TITLE",
            width: Constraint::Fill(1),
            right: false,
            text: |client| client.title.clone().unwrap_or_default(),
        },
    ),
];

/// Nobody needs CHARGED where it is SHARE for all.
fn columns_for(width: u16, is_charged: bool) -> Vec<&'static ScreenColumn> {
    let mut left = width;
    let mut columns = Vec::new();
    for (least, column) in COLUMNS.iter().filter(|(_, column)| is_charged || column.title != "CHARGED") {
        if *least > left {
            break;
        }
        left = left.saturating_sub(least + 1);
        columns.push(column);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_columns_show_who_and_how_much_and_how_long() {
        let titles: Vec<&str> = columns_for(80, false).iter().map(|column| column.title).collect();
        assert_eq!(titles, ["PID", "PROGRAM", "SHARE", "TIME", "REQ/S", "P99", "WAIT", "RESERVED"]);
        assert_eq!(columns_for(250, true).len(), COLUMNS.len());
    }
}
