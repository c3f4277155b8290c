// SPDX-License-Identifier: MIT
//! Whole screens of several sizes, and the effect of keys on them.

use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use xqos_abi::ServerInfo;
use xqos_agent::sample::Server;
use xqos_core::PolicyKind;
use xqos_trace::histogram::Histogram;

fn client(pid: i32, name: &str) -> Client {
    let (name, longest_wait_ns) = (name.to_owned(), 90_000_000);
    let entry =
        xqos_abi::ClientEntry { client: pid as u32, pid, name, longest_wait_ns, connected_ns: 1, ..Default::default() };
    let mut responses = Histogram::default();
    responses.add(2_000_000);
    Client { responses: Some(responses), ..Client::of(&entry) }
}

fn info() -> ServerInfo {
    ServerInfo { armed: true, policy: PolicyKind::Fair, ..ServerInfo::default() }
}

fn sample() -> Sample {
    let server = Server { info: info(), clients: 2, share: 1.0, running: 0.5, ..Server::default() };
    let clients = vec![client(4_123_456, "firefox"), client(77, "mpv")];
    Sample { version: 1, now_ms: 0.0, interval_ms: Some(1000.0), server, clients, departed: Vec::new() }
}

fn screen(view: &mut View, sample: &Sample, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, sample, ":0", &[])).unwrap();
    let text = terminal.backend().to_string();
    text.lines().map(|line| line.trim_matches('"').trim_end().to_owned()).collect()
}

fn press(view: &mut View, sample: &Sample, keys: &str) -> Vec<Action> {
    let code = |letter| match letter {
        '\n' => KeyCode::Enter,
        '\x08' => KeyCode::Backspace,
        letter => KeyCode::Char(letter),
    };
    keys.chars().map(|letter| view.key(KeyEvent::new(code(letter), KeyModifiers::NONE), sample)).collect()
}

#[test]
fn typed_text_replaces_what_a_prompt_proposes() {
    let (mut view, sample) = (View::default(), sample());
    let Some(Action::Reserve(_, text)) = press(&mut view, &sample, "r5ms/20ms\n").pop() else {
        panic!("no reservation")
    };
    assert_eq!(text, "5ms/20ms");
    // An editing key keeps the proposed text, and Enter accepts it.
    let Some(Action::Reserve(_, text)) = press(&mut view, &sample, "r\x08\x08s hard\n").pop() else { panic!() };
    assert_eq!(text, "3ms/10s hard");
    press(&mut view, &sample, "/mpv\n");
    press(&mut view, &sample, "/fire\n");
    assert_eq!(view.filter, "fire");
    press(&mut view, &sample, "/\n");
    assert_eq!(view.filter, "fire");
}

#[test]
fn a_prompt_names_its_client_and_keeps_it_when_the_order_changes() {
    let (mut view, mut sample) = (View::default(), sample());
    press(&mut view, &sample, "r");
    for (width, words) in
        [(40, "reserve for firefox (41234…: [3ms/10ms]"), (80, "(4123456) budget/period [hard]: [3ms/10ms]")]
    {
        let screen = screen(&mut view, &sample, width, 24);
        assert!(
            screen[23].contains(words) && screen[23].contains(if width == 80 { "Enter, Esc" } else { "" }),
            "{}",
            screen[23]
        );
    }
    sample.clients.reverse();
    let Some(Action::Reserve(target, _)) = press(&mut view, &sample, "\n").pop() else { panic!("no reservation") };
    assert_eq!((target.connection.0, view.selected), (4_123_456, Some(4_123_456)));
}

#[test]
fn keys_do_nothing_under_the_help() {
    let (mut view, sample) = (View::default(), sample());
    let actions = press(&mut view, &sample, "?xuRsrpl/ \n");
    assert!(actions.iter().all(|action| *action == Action::Nothing), "{actions:?}");
    assert!(view.help.is_some() && view.prompt.is_none() && !view.paused);
    assert_eq!((view.page, view.order), (Page::Clients, 0));
    assert_eq!(press(&mut view, &sample, "qq"), [Action::Nothing, Action::Quit]);
}

#[test]
fn the_help_is_complete_or_scrolls_to_its_end() {
    let (mut view, sample) = (View::default(), sample());
    for (width, height) in [(130, 80), (80, 24), (40, 8), (30, 6)] {
        press(&mut view, &sample, "?");
        let mut seen = String::new();
        for _ in 0..200 {
            seen += &screen(&mut view, &sample, width, height).join("\n");
            press(&mut view, &sample, "j");
        }
        for word in ["choose", "3ms/10ms;", "hard", "ever", "connected,", "together", "closes"] {
            assert!(seen.contains(word), "'{word}' is missing at {width}x{height} in\n{seen}");
        }
        // Up takes effect immediately, however often Down was pressed at the end.
        let end = screen(&mut view, &sample, width, height);
        press(&mut view, &sample, "k");
        assert_eq!(end == screen(&mut view, &sample, width, height), height == 80);
        press(&mut view, &sample, "?");
    }
}

#[test]
fn the_head_shows_complete_figures_at_any_size() {
    let (mut view, sample) = (View::default(), sample());
    for (width, height, figures) in [
        (
            40,
            8,
            &[
                "xqos top :0  policy fair  2 clients",
                "last 1.00 s: 100.0 % for clients",
                "reserved 0.00 of 0.00, 0.00 used",
            ][..],
        ),
        (80, 24, &["without a processor for 50 % of slice time", "longest recent blocking 0"]),
        (130, 40, &["0.0 % other work, without a processor for 50 % of slice time"]),
    ] {
        let screen = screen(&mut view, &sample, width, height);
        for figure in figures {
            assert!(screen.iter().any(|line| line.contains(figure)), "'{figure}' is missing in\n{}", screen.join("\n"));
        }
    }
    let info = ServerInfo { armed: false, reason: "a reason of many words".to_owned(), ..info() };
    let server = Server { info, ..sample.server.clone() };
    let screen = screen(&mut view, &Sample { server, ..sample }, 40, 8);
    assert_eq!(screen[0], "xqos top :0  xqos stepped aside: a reas…");
}

#[test]
fn the_title_of_each_figure_names_its_time_span() {
    let (mut view, sample) = (View::default(), sample());
    let screen = screen(&mut view, &sample, 80, 24);
    let titles = screen.iter().position(|line| line.contains("MAXWAIT")).unwrap();
    let under = |title: &str| {
        let end = screen[titles].find(title).unwrap() + title.len();
        &screen[titles + 1][end - 4..end]
    };
    assert_eq!(["SHARE", "TIME", "REQ/S", "P99", "MAXWAIT"].map(under), ["last", "ever", "last", "last", "ever"]);
    assert!(screen.iter().any(|line| line.starts_with("last 1.00 s: ")), "{screen:?}");
}
