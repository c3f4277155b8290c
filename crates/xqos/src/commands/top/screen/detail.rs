// SPDX-License-Identifier: MIT
//! All about one client, also what the table has no room for.

use super::{Point, View};
use crate::client::printable;
use crate::sample::{Client, GroupReserved, Reserved};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline};
use xqos_cli::time::narrow_of_ms;
use xqos_cli::width::wrapped;
use xqos_trace::model::Kind;

/// A figure of a sample.
type Pick = fn(&Point) -> f64;

impl View {
    /// `kinds` are its most expensive kinds of requests, none where they are not timed.
    pub fn draw_detail(&self, frame: &mut Frame, area: Rect, client: &Client, kinds: &[(String, Kind)]) {
        let lines: Vec<Line> = facts(client).iter().flat_map(|line| broken(line, area.width)).collect();
        let is_auto =
            client.by.is_auto() || self.recent(client, area.width, |point| point.budget_ms).iter().any(|&q| q > 0);
        // The facts come first; histories follow as far as there is room for them and for the kinds of requests.
        let mut room = area.height.saturating_sub(lines.len() as u16 + 2);
        let mut history = |is_wanted: bool| {
            let height = if is_wanted && room >= 4 { 4 } else { 0 };
            room -= height;
            height
        };
        let [reserved, share, response] = [is_auto, true, true].map(&mut history);
        let heights = [lines.len() as u16, reserved, share, response].map(Constraint::Length);
        let [facts, reserved, share, response, rest] =
            Layout::vertical(heights.into_iter().chain([Constraint::Fill(1)])).areas(area);
        frame.render_widget(Paragraph::new(lines), facts);
        if is_auto {
            self.draw_reserved(frame, reserved, client);
        }
        let shares = self.recent(client, area.width, |point| point.share * 1000.0);
        let most = shares.iter().max().map_or(0, |most| *most) as f64 / 10.0;
        draw_history(frame, share, &shares, format!("share of the server, up to {most:.1} %"));
        let p99 = self.recent(client, area.width, |point| point.p99_ms * 1000.0);
        let most = narrow_of_ms(p99.iter().max().map_or(0, |most| *most) as f64 / 1e3);
        draw_history(frame, response, &p99, format!("p99 of its response times, up to {most}"));
        frame.render_widget(Paragraph::new(expensive(kinds, rest.height)), rest);
    }

    /// How what is reserved went, Q beside T.
    fn draw_reserved(&self, frame: &mut Frame, area: Rect, client: &Client) {
        let halves: [Rect; 2] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        let picks: [(&str, Pick); 2] =
            [("Q", |point| point.budget_ms * 1000.0), ("T", |point| point.period_ms * 1000.0)];
        for ((name, pick), half) in picks.into_iter().zip(halves) {
            let values = self.recent(client, half.width, pick);
            let shown = |us: Option<&u64>| narrow_of_ms(us.map_or(0.0, |us| *us as f64 / 1e3));
            let (now, most) = (shown(values.last()), shown(values.iter().max()));
            draw_history(frame, half, &values, format!("{name} reserved: {now}, up to {most}"));
        }
    }

    /// As many samples of the client's history as there are columns.
    fn recent(&self, client: &Client, width: u16, pick: Pick) -> Vec<u64> {
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

/// A fact in as many lines as it needs.
fn broken(fact: &Line<'static>, width: u16) -> Vec<Line<'static>> {
    let style = fact.spans.first().map_or_else(Style::new, |span| span.style);
    let lines = wrapped(&fact.to_string(), width.into());
    lines.into_iter().map(|line| Line::from(Span::styled(line, style))).collect()
}

/// A line each, of which none needs more than 80 columns.
fn facts(client: &Client) -> Vec<Line<'static>> {
    let pid = client.pid.map_or_else(|| "another machine".to_owned(), |pid| format!("pid {pid}"));
    let role = client.role.map_or_else(String::new, |role| format!(", {role}"));
    let held = if client.holds_server_grab { ", held now" } else { "" };
    let mut lines = vec![
        bold(format!("{} ({pid}, client {}){role}", client.name, client.client)),
        Line::from(format!("window title: {}", client.title.as_deref().unwrap_or("-"))),
        Line::from(format!(
            "share {:.1} %, {} in all; {} requests, {:.0} /s",
            client.share * 100.0,
            narrow_of_ms(client.server_time_ms),
            client.requests,
            client.requests_per_s
        )),
        Line::from(format!("response, last interval: {}", response(client))),
        Line::from(format!(
            "longest wait since it connected: {}{}",
            narrow_of_ms(client.longest_wait_ms),
            waiting(client)
        )),
        Line::from(format!("longest single request: {}", longest(client))),
        Line::from(format!(
            "server grabs: {}, for {} in all{held}; SYNC priority: {}",
            client.grabs,
            narrow_of_ms(client.grabbed_ms),
            client.sync_priority
        )),
    ];
    let devices = match (client.grabs_pointer, client.grabs_keyboard) {
        (true, true) => Some("the pointer and the keyboard"),
        (true, false) => Some("the pointer"),
        (false, true) => Some("the keyboard"),
        (false, false) => None,
    };
    lines.extend(devices.map(|devices| Line::from(format!("has grabbed {devices}"))));
    match &client.reservation {
        Some(reserved) => lines.extend(reservation(client, reserved).map(Line::from)),
        None => lines.push(Line::from(without_own(client))),
    }
    lines.extend(measured(client).map(Line::from));
    if let Some(cpu) = &client.cpu {
        lines.push(Line::from(format!("processor, by the kernel: {cpu}")));
    }
    lines
}

fn response(client: &Client) -> String {
    let Some(response) = &client.response else { return "none".to_owned() };
    let [p50, p99, worst] = [response.p50_ms, response.p99_ms, response.worst_ms].map(narrow_of_ms);
    format!("{} bursts, p50 {p50}, p99 {p99}, worst {worst}", response.count)
}

fn waiting(client: &Client) -> String {
    client.waiting_ms.map_or_else(String::new, |ms| format!("; waiting now, for {}", narrow_of_ms(ms)))
}

fn longest(client: &Client) -> String {
    let Some(request) = &client.longest_request else { return "-".to_owned() };
    format!("{}, {}", narrow_of_ms(request.ms), request.name)
}

fn reservation(client: &Client, reserved: &Reserved) -> [String; 2] {
    let kind = reserved.kind.words();
    let held = if reserved.held_back { ", held back" } else { "" };
    let (budget, period, left) =
        (narrow_of_ms(reserved.budget_ms), narrow_of_ms(reserved.period_ms), narrow_of_ms(reserved.budget_left_ms));
    [
        format!("reservation: {budget} / {period}{kind}, {:.0} % used, {left} left{held}", reserved.used * 100.0),
        format!("             depleted {} times, {} deadlines missed", client.depletions, client.misses),
    ]
}

/// The reservation of its group, if it has none of its own.
fn without_own(client: &Client) -> String {
    let of_group = client.group.as_ref().and_then(|group| Some((&group.name, group.reservation.as_ref()?)));
    let Some((name, GroupReserved { budget_ms, period_ms, kind })) = of_group else {
        return "reservation: none".to_owned();
    };
    let kind = kind.words();
    let (budget, period) = (narrow_of_ms(*budget_ms), narrow_of_ms(*period_ms));
    format!("reservation: {budget} / {period}{kind}, with its group {}", printable(name))
}

/// What auto finds, measured here; nothing while too little is known.
fn measured(client: &Client) -> Option<String> {
    let found = client.measured.as_ref()?;
    let kind = if client.by.is_auto() { "auto" } else { "auto would find" };
    let confidence = found.confidence;
    match (found.budget_ms, found.period_ms) {
        (Some(budget), Some(period)) => {
            let (budget, period) = (narrow_of_ms(budget), narrow_of_ms(period));
            Some(format!("{kind}: Q {budget}, T {period}, confidence {confidence:.2}"))
        }
        _ => match found.state {
            "periodic" => Some(format!("{kind}: periodic, too little to reserve for, confidence {confidence:.2}")),
            "aperiodic" => Some(format!("{kind}: aperiodic: none, confidence {confidence:.2}")),
            _ => None,
        },
    }
}

/// The kinds of requests that take most, in at most `height` lines.
fn expensive(kinds: &[(String, Kind)], height: u16) -> Vec<Line<'static>> {
    let mut lines = vec![bold("Most expensive kinds of requests".to_owned())];
    if kinds.is_empty() {
        lines.push(Line::from("not timed: R times each request, at some ten nanoseconds each"));
    }
    for (name, kind) in kinds.iter().take(usize::from(height.saturating_sub(1))) {
        let mean = narrow_of_ms(kind.ns as f64 / kind.count.max(1) as f64 / 1e6);
        let (total, longest) = (narrow_of_ms(kind.ns as f64 / 1e6), narrow_of_ms(kind.longest_ns as f64 / 1e6));
        lines.push(Line::from(format!("{total:>9}  {name}: {} times, {mean} each, at most {longest}", kind.count)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Processor;
    use crate::sample::client::{By, Group, LongestRequest, Response};
    use crate::sample::measured::Found;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use xqos_core::ReservationKind;

    fn client() -> Client {
        Client {
            pid: Some(4_123_456),
            name: "soffice.bin".to_owned(),
            client: "0x1a00000".to_owned(),
            title: Some("Untitled 1 - LibreOffice Writer".to_owned()),
            role: Some("window manager and compositor"),
            share: 0.987,
            server_time_ms: 99_999.0,
            requests: 123_456_789,
            requests_per_s: 250_000.0,
            response: Some(Response { count: 100_000, p50_ms: 0.55, p99_ms: 9.99, worst_ms: 999.0 }),
            waiting_ms: Some(12.0),
            longest_wait_ms: 1234.0,
            longest_request: Some(LongestRequest {
                name: "RENDER CompositeGlyphs32".to_owned(),
                ms: 14.0,
                major: 139,
                minor: 25,
            }),
            grabs: 17,
            grabbed_ms: 2300.0,
            holds_server_grab: true,
            depletions: 54_321,
            misses: 12,
            sync_priority: -1000,
            cpu: Some(Processor::Reserved { budget_ms: 2.0, period_ms: 10.0 }),
            reservation: Some(Reserved {
                budget_ms: 3.0,
                period_ms: 10.0,
                kind: ReservationKind::Hard.into(),
                deadline_in_ms: 4.0,
                budget_left_ms: -0.12,
                used: 1.0,
                held_back: true,
            }),
            ..Client::default()
        }
    }

    fn screen(view: &View, client: &Client) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 28)).unwrap();
        terminal.draw(|frame| view.draw_detail(frame, frame.area(), client, &[])).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn what_auto_found_is_told_and_how_q_and_t_went() {
        let by = By { reservation: Some("auto 0.93".to_owned()), settings: None };
        let (period_ms, budget_ms) = (Some(41.7), Some(2.2));
        let measured = Some(Found { state: "periodic", period_ms, budget_ms, confidence: 0.93 });
        let client = Client { by, measured, ..client() };
        let mut view = View::default();
        for budget_ms in [2.0, 4.0, 3.0] {
            let point = Point { budget_ms, period_ms: 40.0, ..Point::default() };
            view.history.entry(client.entry.client).or_default().push_back(point);
        }
        let text = screen(&view, &client);
        for words in
            ["auto: Q 2.20ms, T 41.7ms, confidence 0.93", "Q reserved: 3.00ms, up to 4.00ms", "T reserved: 40.0ms"]
        {
            assert!(text.contains(words), "'{words}' is missing in\n{text}");
        }
        let measured = Some(Found { state: "aperiodic", period_ms: None, budget_ms: None, confidence: 0.8 });
        let typing = Client { measured, reservation: None, by: By::default(), ..client };
        let text = screen(&View::default(), &typing);
        assert!(text.contains("auto would find: aperiodic: none") && !text.contains("Q reserved"), "{text}");
    }

    #[test]
    fn the_reservation_of_its_group_is_told() {
        let shared = GroupReserved { budget_ms: 3.0, period_ms: 10.0, kind: ReservationKind::Hard.into() };
        let group = Group { name: "players".to_owned(), weight: None, cap: None, reservation: Some(shared) };
        let text = screen(&View::default(), &Client { group: Some(group), reservation: None, ..client() });
        assert!(text.contains("reservation: 3.00ms / 10.0ms hard, with its group players"), "{text}");
    }

    #[test]
    fn eighty_columns_tell_what_the_table_has_no_room_for() {
        let mut terminal = Terminal::new(TestBackend::new(80, 20)).unwrap();
        let kinds = [("PutImage".to_owned(), Kind { count: 3, ns: 5_000_000, longest_ns: 3_000_000, bytes: 9 })];
        terminal.draw(|frame| View::default().draw_detail(frame, frame.area(), &client(), &kinds)).unwrap();
        let screen = terminal.backend().to_string();
        for words in [
            "SYNC priority: -1000",
            "server grabs: 17, for 2.30s in all, held now",
            "window title: Untitled 1 - LibreOffice Writer",
            "longest single request: 14.0ms, RENDER CompositeGlyphs32",
            "worst 999ms",
            "held back",
            "client 0x1a00000), window manager and compositor",
            "processor, by the kernel: 2 / 10 ms",
            "54321 times, 12 deadlines missed",
            "PutImage: 3 times, 1.67ms each, at most 3.00ms",
        ] {
            assert!(screen.contains(words), "'{words}' is missing in\n{screen}");
        }
    }
}
