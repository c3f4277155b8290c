//! The live view in a terminal, and the table of `--once`.
//!
//! The screen draws a [`Sample`]; keys change what is shown ([`View`]) or ask the server for a change, each of which can
//! be undone.

use super::sample::{Client, Sample, Sampler};
use crate::quantity::Reservation;
use crate::table::{Column, Table};
use anyhow::{Context, Result, bail};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Sparkline, Table as Grid, TableState};
use std::collections::{HashMap, VecDeque};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use xqos_abi::trace::Level;

/// Samples of a client's history.
const HISTORY: usize = 240;
/// A key is answered within this time.
const KEY_EVERY: Duration = Duration::from_millis(100);

/// By what the clients are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Share,
    Total,
    Requests,
    Response,
    Wait,
    Name,
}

impl Order {
    const ALL: [(Order, &'static str); 6] = [
        (Order::Share, "share"),
        (Order::Total, "server time"),
        (Order::Requests, "requests"),
        (Order::Response, "p99"),
        (Order::Wait, "longest wait"),
        (Order::Name, "name"),
    ];

    fn name(self) -> &'static str {
        Order::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, name)| name)
    }

    fn next(self) -> Order {
        let at = Order::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0);
        Order::ALL[(at + 1) % Order::ALL.len()].0
    }

    fn sort(self, clients: &mut [Client]) {
        let p99 = |client: &Client| client.response.as_ref().map_or(0.0, |response| response.p99_ms);
        let number = |client: &Client| match self {
            Order::Share => client.share,
            Order::Total => client.server_time_ms,
            Order::Requests => client.requests_per_s,
            Order::Response => p99(client),
            Order::Wait => client.longest_wait_ms,
            Order::Name => 0.0,
        };
        match self {
            Order::Name => clients.sort_by(|a, b| a.name.cmp(&b.name)),
            _ => clients.sort_by(|a, b| number(b).total_cmp(&number(a))),
        }
    }
}

/// What is typed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    Filter,
    Reserve,
}

/// A change that can be taken back: the client, and the reservation that it had before.
struct Change {
    client: u32,
    connected_ns: u64,
    before: Option<(u32, u32, bool)>,
    what: String,
}

struct View {
    order: Order,
    filter: String,
    paused: bool,
    help: bool,
    /// The client of the detail view, by its resource base.
    detail: Option<u32>,
    selected: Option<u32>,
    prompt: Option<(Prompt, String)>,
    said: String,
    changes: Vec<Change>,
    history: HashMap<u32, VecDeque<(f64, f64)>>,
    table: TableState,
}

/// Shows it until the user has had enough.
pub fn run(display: Option<&str>, every: Duration) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        bail!("top needs a terminal: use --once, --json or --openmetrics where the output goes elsewhere");
    }
    let mut sampler = Sampler::open(display)?;
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let result = show(&mut sampler, &mut terminal, every);
    ratatui::restore();
    result
}

fn show(sampler: &mut Sampler, terminal: &mut ratatui::DefaultTerminal, every: Duration) -> Result<()> {
    let mut view = View {
        order: Order::Share,
        filter: String::new(),
        paused: false,
        help: false,
        detail: None,
        selected: None,
        prompt: None,
        said: String::new(),
        changes: Vec::new(),
        history: HashMap::new(),
        table: TableState::default(),
    };
    // Something at once, then what happened in each interval.
    sampler.wait(Duration::from_millis(200).min(every), || false)?;
    let mut sample = sampler.sample()?;
    view.remember(&sample);
    let mut taken = Instant::now();
    loop {
        view.order.sort(&mut sample.clients);
        terminal.draw(|frame| view.draw(frame, &sample, sampler))?;
        let mut is_new = false;
        while !is_new {
            sampler.read();
            if event::poll(KEY_EVERY)? {
                let is_over = match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => view.key(key, &sample, sampler),
                    _ => false,
                };
                if is_over {
                    return Ok(());
                }
                break;
            }
            is_new = taken.elapsed() >= every && !view.paused;
        }
        if is_new {
            sample = sampler.sample()?;
            taken = Instant::now();
            view.remember(&sample);
        }
    }
}

impl View {
    fn remember(&mut self, sample: &Sample) {
        for client in &sample.clients {
            let history = self.history.entry(client.entry.client).or_default();
            history.push_back((client.share, client.response.as_ref().map_or(0.0, |response| response.p99_ms)));
            if history.len() > HISTORY {
                history.pop_front();
            }
        }
        self.history.retain(|base, _| sample.clients.iter().any(|client| client.entry.client == *base));
    }

    fn shown<'a>(&self, sample: &'a Sample) -> Vec<&'a Client> {
        let wanted = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let is_shown = |client: &&Client| {
            wanted.is_empty()
                || has(&client.name)
                || client.title.as_deref().is_some_and(has)
                || client.pid.is_some_and(|pid| pid.to_string() == wanted)
        };
        sample.clients.iter().filter(is_shown).collect()
    }

    // Keys.

    /// True where the user has had enough.
    fn key(&mut self, key: KeyEvent, sample: &Sample, sampler: &mut Sampler) -> bool {
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
            KeyCode::Esc if self.help || self.detail.is_some() => (self.help, self.detail) = (false, None),
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
            KeyCode::Enter => self.detail = self.chosen(sample).map(|client| client.entry.client),
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

    fn chosen<'a>(&self, sample: &'a Sample) -> Option<&'a Client> {
        let shown = self.shown(sample);
        let base = self.detail.or(self.selected);
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
        if self.detail.is_some() {
            self.detail = self.selected;
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

    // Reservations.

    fn reserve(&mut self, text: &str, sample: &Sample, sampler: &mut Sampler) {
        let Some(client) = self.chosen(sample) else { return };
        let (amount, hard) = match text.trim().strip_suffix("hard") {
            Some(amount) => (amount.trim(), true),
            None => (text.trim(), false),
        };
        let result = amount
            .parse::<Reservation>()
            .map_err(anyhow::Error::msg)
            .and_then(|wanted| sampler.session.reserve(&client.entry, wanted, hard).map(|()| wanted));
        match result {
            Ok(wanted) => self.changed(client, format!("{wanted} reserved for {}", client.name)),
            Err(error) => self.said = format!("{error:#}"),
        }
    }

    fn release(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(client) = self.chosen(sample) else { return };
        if client.reservation.is_none() {
            self.said = format!("{} has no reservation", client.name);
            return;
        }
        match sampler.session.control.release(client.entry.client) {
            Ok(()) => self.changed(client, format!("{}'s reservation released", client.name)),
            Err(error) => self.said = format!("{:#}", sampler.session.explained(error, &client.entry)),
        }
    }

    fn changed(&mut self, client: &Client, what: String) {
        let entry = &client.entry;
        let before = client.reservation.as_ref().map(|reserved| (entry.budget_us, entry.period_us, reserved.hard));
        let (base, connected_ns) = (entry.client, entry.connected_ns);
        self.said = format!("{what}; u takes it back");
        self.changes.push(Change { client: base, connected_ns, before, what });
    }

    fn undo(&mut self, sample: &Sample, sampler: &mut Sampler) {
        let Some(change) = self.changes.pop() else {
            self.said = "nothing to take back".to_owned();
            return;
        };
        let same =
            |client: &&Client| (client.entry.client, client.entry.connected_ns) == (change.client, change.connected_ns);
        let Some(client) = sample.clients.iter().find(same) else {
            self.said = format!("the client has ended: {}", change.what);
            return;
        };
        let control = &sampler.session.control;
        let result = match change.before {
            Some((budget_us, period_us, hard)) => control.reserve(change.client, budget_us, period_us, hard),
            None => control.release(change.client),
        };
        self.said = match result {
            Ok(()) => format!("taken back: {}", change.what),
            Err(error) => format!("{:#}", sampler.session.explained(error, &client.entry)),
        };
    }

    // Drawing.

    fn draw(&mut self, frame: &mut Frame, sample: &Sample, sampler: &Sampler) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(3), Constraint::Length(1)]).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head(sample, sampler)), head);
        match self.detail.and_then(|base| sample.clients.iter().find(|client| client.entry.client == base)) {
            Some(client) => self.draw_detail(frame, body, client, sampler),
            None => self.draw_table(frame, body, sample),
        }
        frame.render_widget(Paragraph::new(self.foot()).style(Style::new().add_modifier(Modifier::REVERSED)), foot);
        if self.help {
            draw_help(frame);
        }
    }

    fn head(&self, sample: &Sample, sampler: &Sampler) -> Vec<Line<'static>> {
        let server = &sample.server;
        let bold = |text: String| Span::styled(text, Style::new().add_modifier(Modifier::BOLD));
        let mut first = vec![
            bold(format!("xqos top {}", sampler.session.display)),
            Span::raw(format!("  policy {}, {} clients", server.policy, server.clients)),
        ];
        if !self.filter.is_empty() {
            first.push(bold(format!("  only: {}", self.filter)));
        }
        if self.paused {
            first.push(bold("  PAUSED".to_owned()));
        }
        if let Some(reason) = &server.aside {
            first.push(bold(format!("  xqos stepped aside: {reason}")));
        }
        let second = format!(
            "server: {:.1} % for clients, {:.1} % other work{}; longest blocking {}",
            server.share * 100.0,
            server.outside_share * 100.0,
            if server.running < 0.95 {
                format!(", {:.0} % of slices without a processor", (1.0 - server.running) * 100.0)
            } else {
                String::new()
            },
            time(server.blocking_ms)
        );
        let lost = if server.lost > 0 { format!("; {} trace records lost", server.lost) } else { String::new() };
        let third = format!(
            "reserved: {:.2} of {:.2} admitted, {:.2} used{lost}",
            server.utilization_admitted, server.utilization_limit, server.utilization_used
        );
        vec![Line::from(first), Line::from(second), Line::from(third)]
    }

    fn foot(&self) -> String {
        match &self.prompt {
            Some((Prompt::Filter, text)) => format!(" show only: {text}_"),
            Some((Prompt::Reserve, text)) => format!(" reserve budget/period [hard]: {text}_   Enter, Esc"),
            None if !self.said.is_empty() => format!(" {}", self.said),
            None => {
                let order = self.order.name();
                format!(" q quit  s by {order}  / filter  p pause  Enter more  r x reserve  u undo  ? help")
            }
        }
    }

    fn draw_table(&mut self, frame: &mut Frame, area: Rect, sample: &Sample) {
        let shown = self.shown(sample);
        let columns = columns_for(area.width);
        let widths: Vec<Constraint> = columns.iter().map(|column| column.width).collect();
        let head = Row::new(columns.iter().map(|column| column.aligned(column.title.to_owned())))
            .style(Style::new().add_modifier(Modifier::BOLD));
        let rows = shown.iter().map(|client| {
            let style = if client.holds_grab { Style::new().add_modifier(Modifier::UNDERLINED) } else { Style::new() };
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

    fn draw_detail(&self, frame: &mut Frame, area: Rect, client: &Client, sampler: &Sampler) {
        let [facts, share, response, kinds] =
            Layout::vertical([Constraint::Length(6), Constraint::Length(5), Constraint::Length(5), Constraint::Min(2)])
                .areas(area);
        frame.render_widget(Paragraph::new(details(client)), facts);
        let history = self.history.get(&client.entry.client);
        let width = usize::from(area.width);
        let recent = |pick: fn(&(f64, f64)) -> f64, scale: f64| -> Vec<u64> {
            let all: Vec<u64> =
                history.into_iter().flatten().map(|point| (pick(point) * scale).round() as u64).collect();
            all[all.len().saturating_sub(width)..].to_vec()
        };
        let shares = recent(|point| point.0, 1000.0);
        let title =
            format!("share of the server, up to {:.1} %", shares.iter().max().map_or(0, |most| *most) as f64 / 10.0);
        frame.render_widget(Sparkline::default().data(&shares).block(Block::bordered().title(title)), share);
        let p99 = recent(|point| point.1, 1000.0);
        let title =
            format!("p99 of its response times, up to {}", time(p99.iter().max().map_or(0, |most| *most) as f64 / 1e3));
        frame.render_widget(Sparkline::default().data(&p99).block(Block::bordered().title(title)), response);
        let mut lines = vec![Line::from(Span::styled(
            "Most expensive kinds of requests",
            Style::new().add_modifier(Modifier::BOLD),
        ))];
        let list = sampler.kinds(client.entry.client);
        if list.is_empty() {
            lines.push(Line::from("not timed: R times each request, which costs the server some ten nanoseconds each"));
        }
        for (name, kind) in list.iter().take(usize::from(kinds.height.saturating_sub(1))) {
            let mean = time(kind.ns as f64 / kind.count.max(1) as f64 / 1e6);
            let (total, longest) = (time(kind.ns as f64 / 1e6), time(kind.longest_ns as f64 / 1e6));
            lines.push(Line::from(format!("{total:>9}  {name}: {} times, {mean} each, at most {longest}", kind.count)));
        }
        frame.render_widget(Paragraph::new(lines), kinds);
    }
}

fn details(client: &Client) -> Vec<Line<'static>> {
    let pid = client.pid.map_or_else(|| "another machine".to_owned(), |pid| format!("pid {pid}"));
    let title = client.title.clone().map_or_else(String::new, |title| format!("  \"{title}\""));
    let response = client.response.as_ref().map_or_else(
        || "nothing in this interval".to_owned(),
        |response| {
            let [p50, p99, worst] = [response.p50_ms, response.p99_ms, response.worst_ms].map(time);
            format!("{} bursts, p50 {p50}, p99 {p99}, worst {worst}", response.count)
        },
    );
    let longest = client
        .longest_request
        .as_ref()
        .map_or_else(|| "-".to_owned(), |request| format!("{} {}", time(request.ms), request.name));
    let reserved = client.reservation.as_ref().map_or_else(
        || "none".to_owned(),
        |reserved| {
            let kind = if reserved.hard { " hard" } else { "" };
            let held = if reserved.held_back { ", held back" } else { "" };
            format!(
                "{} / {}{kind}, {:.0} % used, {} left{held}; {} depletions, {} misses",
                time(reserved.budget_ms),
                time(reserved.period_ms),
                reserved.used * 100.0,
                time(reserved.left_ms),
                client.depletions,
                client.misses
            )
        },
    );
    let waiting = client.waiting_ms.map_or_else(String::new, |ms| format!(", waiting for {}", time(ms)));
    vec![
        Line::from(Span::styled(
            format!("{} ({pid}, client {}){title}", client.name, client.client),
            Style::new().add_modifier(Modifier::BOLD),
        )),
        Line::from(format!(
            "share {:.1} %, {} in all; {} requests, {:.0} /s{waiting}",
            client.share * 100.0,
            time(client.server_time_ms),
            client.requests,
            client.requests_per_s
        )),
        Line::from(format!("response: {response}; longest wait {}", time(client.longest_wait_ms))),
        Line::from(format!("longest request: {longest}")),
        Line::from(format!(
            "server grabs: {}, {}{}; SYNC priority {}",
            client.grabs,
            time(client.grabbed_ms),
            if client.holds_grab { ", held now" } else { "" },
            client.sync_priority
        )),
        Line::from(format!("reservation: {reserved}")),
    ]
}

fn draw_help(frame: &mut Frame) {
    const HELP: &str = "\
Up, Down    choose a client          Enter   all about it; Esc goes back
s           sort by the next column  /       show only some; Esc shows all
p, Space    pause                    q       quit
r           reserve: budget/period, such as 3ms/10ms, or 3ms/10ms hard
x           release the reservation  u       take the last change back
R           time each request, to see which kinds are expensive

SHARE       of the server's time in the last interval
TIME        server time since it connected
P50 P99     response: from having work to having none left
WAIT        the longest time from arrival to dispatch
LONGEST     its longest single request, and the name of it
GRAB        for how long it held the server grab; underlined: holds it now
RESERVED    budget/period, and how much of it is used";
    let area = frame.area();
    let (width, height) = (area.width.min(76), area.height.min(17));
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title("Help, any key of these; ? closes")), place);
}

struct ScreenColumn {
    title: &'static str,
    width: Constraint,
    right: bool,
    text: fn(&Client) -> String,
}

impl ScreenColumn {
    fn aligned(&self, text: String) -> ratatui::text::Text<'static> {
        let line = Line::from(text);
        ratatui::text::Text::from(if self.right { line.right_aligned() } else { line })
    }
}

/// In the order of their importance; what does not fit is left out.
const COLUMNS: [(u16, ScreenColumn); 13] = [
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
        8,
        ScreenColumn {
            title: "TIME",
            width: Constraint::Length(8),
            right: true,
            text: |client| time(client.server_time_ms),
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
            text: |client| client.response.as_ref().map_or_else(|| "-".to_owned(), |response| time(response.p99_ms)),
        },
    ),
    (
        8,
        ScreenColumn {
            title: "WAIT",
            width: Constraint::Length(8),
            right: true,
            text: |client| time(client.longest_wait_ms),
        },
    ),
    (
        14,
        ScreenColumn {
            title: "RESERVED",
            width: Constraint::Length(14),
            right: false,
            text: |client| {
                client.reservation.as_ref().map_or_else(String::new, |reserved| {
                    format!("{}/{} {:.0}%", reserved.budget_ms, reserved.period_ms, reserved.used * 100.0)
                })
            },
        },
    ),
    (
        22,
        ScreenColumn {
            title: "LONGEST",
            width: Constraint::Length(22),
            right: false,
            text: |client| {
                client
                    .longest_request
                    .as_ref()
                    .map_or_else(String::new, |request| format!("{} {}", time(request.ms), request.name))
            },
        },
    ),
    (
        8,
        ScreenColumn {
            title: "P50",
            width: Constraint::Length(8),
            right: true,
            text: |client| client.response.as_ref().map_or_else(|| "-".to_owned(), |response| time(response.p50_ms)),
        },
    ),
    (
        8,
        ScreenColumn {
            title: "GRAB",
            width: Constraint::Length(8),
            right: true,
            text: |client| {
                if client.grabs == 0 { String::new() } else { time(client.grabbed_ms) }
            },
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

fn columns_for(width: u16) -> Vec<&'static ScreenColumn> {
    let mut left = width;
    let mut columns = Vec::new();
    for (least, column) in &COLUMNS {
        if *least > left {
            break;
        }
        left = left.saturating_sub(least + 1);
        columns.push(column);
    }
    columns
}

/// A time in seven characters at most.
fn time(ms: f64) -> String {
    match ms.abs() {
        0.0 => "0".to_owned(),
        below if below < 0.01 => format!("{:.1}us", ms * 1000.0),
        below if below < 10.0 => format!("{ms:.2}ms"),
        below if below < 1000.0 => format!("{ms:.0}ms"),
        below if below < 1e5 => format!("{:.2}s", ms / 1e3),
        _ => format!("{:.0}s", ms / 1e3),
    }
}

/// A count in six characters at most.
fn count(number: f64) -> String {
    match number {
        below if below < 10.0 => format!("{number:.1}"),
        below if below < 1e4 => format!("{number:.0}"),
        below if below < 1e7 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.0}M", number / 1e6),
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
                elastic: column.title == "TITLE",
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
        table.render(crate::sys::terminal_columns())
    );
    if !server.longest_requests.is_empty() {
        text += "\nThe longest requests since the server began\n";
        for request in server.longest_requests.iter().take(8) {
            text += &format!("{:>9}  {} ({}) {}\n", time(request.ms), request.program, request.pid, request.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_columns_show_who_and_how_much_and_how_long() {
        let titles: Vec<&str> = columns_for(80).iter().map(|column| column.title).collect();
        assert_eq!(titles, ["PID", "PROGRAM", "SHARE", "TIME", "REQ/S", "P99", "WAIT", "RESERVED"]);
        assert_eq!(columns_for(250).len(), COLUMNS.len());
    }

    #[test]
    fn times_and_counts_fit_their_columns() {
        for ms in [0.0, 0.0004, 0.009, 0.5, 9.994, 12.0, 999.0, 1000.0, 99_999.0, 1e6, 9e8] {
            assert!(time(ms).len() <= 8, "{}", time(ms));
        }
        for number in [0.0, 9.94, 500.0, 9_999.0, 1e6, 5e7] {
            assert!(count(number).len() <= 6, "{}", count(number));
        }
    }
}
