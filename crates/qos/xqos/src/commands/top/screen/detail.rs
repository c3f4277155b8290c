// SPDX-License-Identifier: MIT
//! The page with all details of one client, including figures for which the table has no room.

use super::rows::Row;
use super::table::{is_summed, text_of};
use super::{Point, View, waits};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline};
use xqos_agent::client::described;
use xqos_agent::field::explained;
use xqos_agent::sample::{CLIENT, ClientSample};
use xqos_text::time::of_ms;
use xqos_text::width::{Align, columns, padded};
use xqos_trace::model::RequestTotals;

type Pick = fn(&Point) -> f64;

impl View {
    /// `kinds` are the client's most expensive kinds of requests; empty if requests are not timed.
    pub fn draw_detail(&self, frame: &mut Frame, area: Rect, row: &Row, kinds: &[(String, RequestTotals)]) {
        let client: &ClientSample = &row.client;
        let lines = facts(row, usize::from(area.width));
        let is_single = !row.is_group();
        let is_auto = is_single
            && (client.is_auto() || self.recent(client, area.width, |point| point.budget_ms).iter().any(|&q| q > 0));
        // The facts come first. Charts follow if there is room for them and for the kinds of requests.
        let mut room = area.height.saturating_sub(lines.len() as u16 + 2);
        let mut chart = |(is_wanted, height)| {
            let height = if is_wanted && room >= height { height } else { 0 };
            room -= height;
            height
        };
        let [reserved, waiting, share, response] =
            [(is_auto, 4), (true, waits::HEIGHT), (is_single, 4), (is_single, 4)].map(&mut chart);
        let heights = [lines.len() as u16, reserved, waiting, share, response].map(Constraint::Length);
        let [facts, reserved, waiting, share, response, rest] =
            Layout::vertical(heights.into_iter().chain([Constraint::Fill(1)])).areas(area);
        frame.render_widget(Paragraph::new(lines), facts);
        waits::draw(frame, waiting, row);
        if !is_single {
            return;
        }
        if is_auto {
            self.draw_reserved(frame, reserved, client);
        }
        let shares = self.recent(client, area.width, |point| point.share * 1000.0);
        let most = shares.iter().max().map_or(0, |most| *most) as f64 / 10.0;
        draw_history(frame, share, &shares, format!("share of the server, up to {most:.1} %"));
        let p99 = self.recent(client, area.width, |point| point.p99_ms * 1000.0);
        let most = of_ms(p99.iter().max().map_or(0, |most| *most) as f64 / 1e3);
        draw_history(frame, response, &p99, format!("p99 of the response times, up to {most}"));
        frame.render_widget(Paragraph::new(expensive(kinds, rest.height)), rest);
    }

    /// Draws the history of the reservation: budget on the left, period on the right.
    fn draw_reserved(&self, frame: &mut Frame, area: Rect, client: &ClientSample) {
        let halves: [Rect; 2] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        let picks: [(&str, Pick); 2] =
            [("budget", |point| point.budget_ms * 1000.0), ("period", |point| point.period_ms * 1000.0)];
        for ((name, pick), half) in picks.into_iter().zip(halves) {
            let values = self.recent(client, half.width, pick);
            let shown = |us: Option<&u64>| of_ms(us.map_or(0.0, |us| *us as f64 / 1e3));
            let (now, most) = (shown(values.last()), shown(values.iter().max()));
            draw_history(frame, half, &values, format!("{name}: {now}, up to {most}"));
        }
    }

    /// The latest samples of the client's history, one per column.
    fn recent(&self, client: &ClientSample, width: u16, pick: Pick) -> Vec<u64> {
        let history = self.history.get(&client.entry.client);
        let all: Vec<u64> = history.into_iter().flatten().map(|point| pick(point).round() as u64).collect();
        all[all.len().saturating_sub(width.into())..].to_vec()
    }
}

fn draw_history(frame: &mut Frame, area: Rect, values: &[u64], title: String) {
    frame.render_widget(Sparkline::default().data(values).block(Block::bordered().title(title)), area);
}

fn bold(text: String) -> Line<'static> {
    Line::from(Span::styled(text, Style::new().add_modifier(Modifier::BOLD)))
}

/// All fields with a value; two share a line if both are short enough.
fn facts(row: &Row, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![match row.members {
        0 => described(&row.client.entry),
        members => format!("{}, clients: {members}", row.name()),
    }];
    let half = width / 2;
    let mut has_room = false;
    let is_listed = |title: &str| !title.is_empty() && title != "PROGRAM" && (!row.is_group() || is_summed(title));
    for field in CLIENT.iter().filter(|field| is_listed(field.title)) {
        let text = text_of(field, row);
        if ["", "0", "-"].contains(&text.as_str()) {
            continue;
        }
        let fact = explained(field.title, &text, width);
        let is_short = fact.len() == 1 && columns(&fact[0]) < half;
        match lines.last_mut() {
            Some(line) if has_room && is_short => *line = padded(line, half, Align::Left) + &fact[0],
            _ => lines.extend(fact),
        }
        has_room = is_short && !has_room;
    }
    let mut lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
    lines[0] = bold(lines[0].to_string());
    lines
}

/// The kinds of requests that take the most time, in at most `height` lines.
fn expensive(kinds: &[(String, RequestTotals)], height: u16) -> Vec<Line<'static>> {
    let mut lines = vec![bold("Most expensive kinds of requests".to_owned())];
    if kinds.is_empty() {
        lines.push(Line::from("not timed: press R to time each request, which costs tens of nanoseconds each"));
    }
    for (name, kind) in kinds.iter().take(usize::from(height.saturating_sub(1))) {
        let mean = of_ms(kind.ns as f64 / kind.count.max(1) as f64 / 1e6);
        let (total, longest) = (of_ms(kind.ns as f64 / 1e6), of_ms(kind.longest_ns as f64 / 1e6));
        lines.push(Line::from(format!("{total:>9}  {name}: {} times, {mean} each, at most {longest}", kind.count)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::rows::RowKey;
    use super::*;
    use crate::fixture;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::borrow::Cow;
    use xqos_abi::{ClientEntry, Label, entry_flag};
    use xqos_agent::client::connection;
    use xqos_agent::processor::Processor;

    fn entry() -> ClientEntry {
        ClientEntry {
            pid: 4_123_456,
            name: "soffice.bin".to_owned(),
            flags: fixture::entry().flags | entry_flag::HELD_BACK | entry_flag::GRABS_SERVER,
            grabs: 17,
            grabbed_ns: 2_300_000_000,
            depletions: 54_321,
            misses: 12,
            sync_priority: -1000,
            ..fixture::entry()
        }
    }

    fn of(entry: &ClientEntry) -> ClientSample {
        ClientSample {
            title: Some("Untitled 1 - LibreOffice Writer".to_owned()),
            longest_request: "RENDER CompositeGlyphs32".to_owned(),
            cpu: Some(Processor::Reserved { budget_ms: 2.0, period_ms: 10.0 }),
            ..fixture::client(entry)
        }
    }

    fn screen(view: &View, client: &ClientSample, kinds: &[(String, RequestTotals)], height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, height)).unwrap();
        let key = RowKey::Client(connection(&client.entry));
        let row = Row { key, client: Cow::Borrowed(client), members: 0, depth: 0, is_folded: false };
        terminal.draw(|frame| view.draw_detail(frame, frame.area(), &row, kinds)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_result_of_auto_and_the_history_of_its_reservation_are_shown() {
        let measured = Some(xqos_tune::ClientAnalysis::default().report());
        let auto = ClientEntry { reservation_origin: Label::new("auto 0.93"), ..entry() };
        let client = ClientSample { measured, ..of(&auto) };
        let mut view = View::default();
        for budget_ms in [2.0, 4.0, 3.0] {
            let point = Point { budget_ms, period_ms: 40.0, ..Point::default() };
            view.history.entry(client.entry.client).or_default().push_back(point);
        }
        let text = screen(&view, &client, &[], 28);
        for words in [
            "BY               auto 0.93",
            "AUTO             silent, confidence 1.00",
            "budget: 3.00 ms, up to 4.00 ms",
            "period: 40.0 ms",
        ] {
            assert!(text.contains(words), "'{words}' is missing in\n{text}");
        }
        assert!(!screen(&View::default(), &of(&entry()), &[], 28).contains("budget: "), "{text}");
    }

    #[test]
    fn the_reservation_of_its_group_is_shown() {
        let (group_budget_us, group_period_us, group_name) = (3000, 10_000, Label::new("players"));
        let shared = ClientEntry { group: 1, group_budget_us, group_period_us, group_name, flags: 0, ..entry() };
        let text = screen(&View::default(), &of(&shared), &[], 28);
        assert!(text.contains("3/10 ms group") && text.contains("players"), "{text}");
    }

    #[test]
    fn eighty_columns_show_what_the_table_has_no_room_for() {
        let kinds =
            [("PutImage".to_owned(), RequestTotals { count: 3, ns: 5_000_000, longest_ns: 3_000_000, bytes: 9 })];
        let screen = screen(&View::default(), &of(&entry()), &kinds, 20);
        for words in [
            "SYNC             -1000",
            "GRABS            17",
            "GRAB             2.30 s",
            "HOLDS            the server grab",
            "TITLE            Untitled 1 - LibreOffice Writer",
            "LONGEST REQUEST  11.2 ms RENDER CompositeGlyphs32",
            "RESERVED         3/10 ms held",
            "soffice.bin (pid 4123456, client 0x400000)",
            "CPU              2 / 10 ms",
            "DEPLETED         54321",
            "MISSED           12",
            "PutImage: 3 times, 1.67 ms each, at most 3.00 ms",
        ] {
            assert!(screen.contains(words), "'{words}' is missing in\n{screen}");
        }
    }
}
