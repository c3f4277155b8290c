//! All about one client.

use super::View;
use super::format::time;
use crate::commands::top::sample::{Client, Sampler};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline};

impl View {
    pub fn draw_detail(&self, frame: &mut Frame, area: Rect, client: &Client, sampler: &Sampler) {
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
