// SPDX-License-Identifier: MIT
//! Whole screens of several sizes, and the effect of keys on them.

use super::super::settings::Grouping;
use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use xqos_abi::ServerInfo;
use xqos_agent::sample::ServerSample;
use xqos_core::PolicyKind;
use xqos_trace::histogram::Histogram;

fn client(pid: i32, name: &str) -> ClientSample {
    let (name, longest_wait_ns) = (name.to_owned(), 90_000_000);
    let entry =
        xqos_abi::ClientEntry { client: pid as u32, pid, name, longest_wait_ns, connected_ns: 1, ..Default::default() };
    let mut responses = Histogram::default();
    responses.add(2_000_000);
    ClientSample { responses: Some(responses), ..ClientSample::of(&entry) }
}

fn info() -> ServerInfo {
    ServerInfo { armed: true, policy: PolicyKind::Fair, ..ServerInfo::default() }
}

fn sample() -> Sample {
    let server = ServerSample { info: info(), clients: 2, share: 1.0, running: 0.5, ..ServerSample::default() };
    let clients = vec![client(4_123_456, "firefox"), client(77, "mpv")];
    Sample { version: 1, now_ms: 0.0, interval_ms: Some(1000.0), server, clients, departed: Vec::new() }
}

fn screen(view: &mut View, sample: &Sample, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, sample, ":0", &[])).unwrap();
    let text = terminal.backend().to_string();
    text.lines().map(|line| line.trim_matches('"').trim_end().to_owned()).collect()
}

fn key_of(pid: u32) -> RowKey {
    RowKey::Client((pid, 1))
}

fn press(view: &mut View, sample: &Sample, keys: &str) -> Vec<KeyAction> {
    let code = |letter| match letter {
        '\n' => KeyCode::Enter,
        '\x08' => KeyCode::Backspace,
        letter => KeyCode::Char(letter),
    };
    keys.chars().map(|letter| view.key(KeyEvent::new(code(letter), KeyModifiers::NONE), sample)).collect()
}

#[test]
fn typed_text_replaces_the_proposed_text() {
    let (mut view, sample) = (View::default(), sample());
    let Some(KeyAction::Reserve(_, text)) = press(&mut view, &sample, "r5ms/20ms\n").pop() else {
        panic!("no reservation")
    };
    assert_eq!(text, "5ms/20ms");
    // An editing key keeps the proposed text, and Enter accepts it.
    let Some(KeyAction::Reserve(_, text)) = press(&mut view, &sample, "r\x08\x08s hard\n").pop() else { panic!() };
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
    let Some(KeyAction::Reserve(target, _)) = press(&mut view, &sample, "\n").pop() else { panic!("no reservation") };
    assert_eq!((target.connection.0, view.selected), (4_123_456, Some(key_of(4_123_456))));
}

#[test]
fn keys_do_nothing_under_the_help() {
    let (mut view, sample) = (View::default(), sample());
    let actions = press(&mut view, &sample, "?xuRsrpl/ \n");
    assert!(actions.iter().all(|action| *action == KeyAction::Nothing), "{actions:?}");
    assert!(view.help.is_some() && view.prompt.is_none() && !view.paused);
    assert_eq!((view.page, &view.settings), (Page::Table, &ViewSettings::default()));
    assert_eq!(press(&mut view, &sample, "qq"), [KeyAction::Nothing, KeyAction::Quit]);
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
    let one = Sample { server: ServerSample { clients: 1, ..sample.server.clone() }, ..sample.clone() };
    assert_eq!(screen(&mut view, &one, 80, 24)[0], "xqos top :0  policy fair  1 client");
    view.is_silent = true;
    assert!(screen(&mut view, &sample, 80, 24)[0].starts_with("xqos top :0  the server does not answer  policy"));
    view.is_silent = false;
    let info = ServerInfo { armed: false, reason: "a reason of many words".to_owned(), ..info() };
    let server = ServerSample { info, ..sample.server.clone() };
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

/// Three clients of two programs, with different shares.
fn desk() -> Sample {
    let with = |share, pid, name| ClientSample { share, charged_share: share, ..client(pid, name) };
    let clients = vec![with(0.5, 1, "xterm"), with(0.3, 2, "mpv"), with(0.2, 3, "xterm")];
    Sample { clients, ..sample() }
}

fn names(view: &View, sample: &Sample) -> Vec<String> {
    view.rows(sample).iter().map(Row::label).collect()
}

#[test]
fn the_selection_stays_on_its_row_when_rows_move() {
    let (mut view, mut desk) = (View::default(), desk());
    press(&mut view, &desk, "j");
    assert_eq!(view.selected, Some(key_of(2)));
    desk.clients[1].charged_share = 0.9;
    screen(&mut view, &desk, 80, 24);
    assert_eq!((view.selected.clone(), view.at, view.table.selected()), (Some(key_of(2)), 0, Some(0)));
    press(&mut view, &desk, "I");
    screen(&mut view, &desk, 80, 24);
    assert_eq!((view.selected.clone(), view.table.selected()), (Some(key_of(2)), Some(2)));
    // After a disconnect, the selection stays in its place.
    desk.clients.remove(1);
    screen(&mut view, &desk, 80, 24);
    assert_eq!((view.selected.clone(), view.table.selected()), (Some(key_of(1)), Some(1)));
    desk.clients.clear();
    screen(&mut view, &desk, 80, 24);
    assert_eq!((press(&mut view, &desk, "jkxr\n+-"), view.table.selected()), (vec![KeyAction::Nothing; 7], None));
}

#[test]
fn a_client_that_reuses_a_resource_base_is_not_selected() {
    let (mut view, mut desk) = (View::default(), desk());
    press(&mut view, &desk, "jj");
    desk.clients[2].entry.connected_ns = 99;
    assert!(view.chosen(&desk).is_none());
}

#[test]
fn a_release_needs_a_confirmation_and_keeps_its_client() {
    let (mut view, mut desk) = (View::default(), desk());
    assert_eq!(press(&mut view, &desk, "x"), [KeyAction::Nothing]);
    assert_eq!(view.message, "xterm has no reservation");
    let entry = &mut desk.clients[0].entry;
    (entry.flags, entry.budget_us, entry.period_us) = (xqos_abi::entry_flag::RESERVED, 3_000, 10_000);
    for keys in ["x\n", "xn", "xx", "xq"] {
        assert_eq!(press(&mut view, &desk, keys), [KeyAction::Nothing, KeyAction::Nothing], "{keys:?}");
        assert!(view.prompt.is_none());
    }
    press(&mut view, &desk, "x");
    let screen = screen(&mut view, &desk, 80, 24);
    assert_eq!(screen[23], " release 3 ms / 10 ms of xterm (1)?  y: yes, other keys: no");
    desk.clients.reverse();
    let [KeyAction::Release(target)] = &press(&mut view, &desk, "y")[..] else { panic!("no release") };
    assert_eq!(target.connection, (1, 1));
}

#[test]
fn a_group_is_neither_released_nor_given_a_reservation() {
    let (mut view, desk) = (View::default(), desk());
    for keys in ["gx", "r"] {
        assert!(press(&mut view, &desk, keys).iter().all(|action| *action == KeyAction::Nothing));
        assert!(view.prompt.is_none() && view.message.contains("unfold it"), "{}", view.message);
    }
}

#[test]
fn groups_fold_and_unfold_and_a_tree_fits_any_width() {
    let (mut view, desk) = (View::default(), desk());
    press(&mut view, &desk, "g");
    assert_eq!(names(&view, &desk), ["+ xterm", "+ mpv"]);
    press(&mut view, &desk, "k+");
    assert_eq!(names(&view, &desk), ["- xterm", "  xterm", "  xterm", "+ mpv"]);
    // From a client, the first key selects its group, and the next one folds it.
    press(&mut view, &desk, "jj-");
    assert_eq!(view.selected, Some(RowKey::Group(vec!["xterm".to_owned()])));
    press(&mut view, &desk, "-");
    assert_eq!(names(&view, &desk), ["+ xterm", "+ mpv"]);
    press(&mut view, &desk, "t");
    assert_eq!(names(&view, &desk).len(), 6, "a user, two programs and three clients");
    for width in [80, 150] {
        let screen = screen(&mut view, &desk, width, 24);
        for words in ["tree", "- 0 (3)", "  - xterm (2)", "70.0%", "    xterm"] {
            assert!(screen.iter().any(|line| line.contains(words)), "'{words}' is missing in\n{}", screen.join("\n"));
        }
    }
    press(&mut view, &desk, "t");
    assert_eq!(view.settings.grouping, Grouping::Client);
}

#[test]
fn details_exist_for_groups_too() {
    let (mut view, mut desk) = (View::default(), desk());
    desk.clients[0].entry.waits[0] = 40;
    press(&mut view, &desk, "gkk\n");
    let screen = screen(&mut view, &desk, 100, 40).join("\n");
    for words in ["xterm, clients: 2", "SHARE            70.0%", "Waits of xterm", "<= 1.00 ms          0         40"] {
        assert!(screen.contains(words), "'{words}' is missing in\n{screen}");
    }
    assert!(!screen.contains("WEIGHT"), "a setting of single clients\n{screen}");
}

#[test]
fn waits_of_the_selected_row_are_below_the_table_if_there_is_room() {
    let (mut view, desk) = (View::default(), desk());
    press(&mut view, &desk, "wjj");
    for (height, is_there) in [(24, true), (16, false)] {
        let screen = screen(&mut view, &desk, 80, height).join("\n");
        assert_eq!(screen.contains("Waits of xterm"), is_there, "{screen}");
        assert!(screen.contains("mpv"), "{screen}");
    }
}

#[test]
fn columns_can_be_hidden_moved_and_sorted_by_and_the_defaults_restored() {
    let (mut view, desk) = (View::default(), desk());
    // The second column moves to the front, the third is hidden, and the fourth is the one to sort by.
    press(&mut view, &desk, "fj-jj jsI");
    assert_eq!(view.settings.shown().take(3).collect::<Vec<_>>(), ["PROGRAM", "PID", "CHARGED"]);
    let page = screen(&mut view, &desk, 80, 24);
    for words in ["[x]   PROGRAM", "[ ]   SHARE", "[x] ▲ CHARGED"] {
        assert!(page.iter().any(|line| line.contains(words)), "'{words}' is missing in\n{}", page.join("\n"));
    }
    press(&mut view, &desk, "f");
    let table = screen(&mut view, &desk, 80, 24);
    let titles = table.iter().find(|line| line.contains("MAXWAIT")).unwrap();
    assert!(titles.starts_with("PROGRAM") && !titles.contains("SHARE"), "{titles}");
    assert!(table[23].contains("s by CHARGED reversed"), "{}", table[23]);
    assert_eq!(press(&mut view, &desk, "Dn").len(), 2);
    assert_ne!(view.settings, ViewSettings::default());
    press(&mut view, &desk, "Dy");
    assert_eq!(view.settings, ViewSettings::default());
}

#[test]
fn the_last_column_cannot_be_hidden() {
    let (mut view, desk) = (View::default(), desk());
    let columns = view.settings.columns.len();
    press(&mut view, &desk, &format!("f{}", " j".repeat(columns)));
    assert_eq!(view.settings.shown().count(), 1);
    screen(&mut view, &desk, 80, 24);
    assert_eq!(view.message, "");
    press(&mut view, &desk, " ");
    assert_eq!((view.settings.shown().count(), view.message.as_str()), (1, "one column must stay"));
}
