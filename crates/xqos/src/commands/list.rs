//! `xqos list`: who uses the server.
//!
//! [`Client`] is what is known about a client, in the units that people and scripts read; the table and the JSON are
//! both made from it.

use crate::processor::Processor;
use crate::requests::{Names, names_of, opcodes};
use crate::session::{Session, printable, role_of};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use xqos_abi::{ClientEntry, entry_flag};
use xqos_cli::output;
use xqos_cli::quantity::{Micros, Reservation};
use xqos_cli::sys;
use xqos_cli::table::{Column, Table};

/// Shows who uses the X server: server time, requests, waits and reservations of each client
///
/// Clients that used the most server time come first.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Write JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Show the connection of this command too
    #[arg(long)]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos list
  xqos list --json | jq '.clients[] | select(.share > 0.1) | .program'

Columns:
  SERVER TIME      for which the server worked for the client
  SHARE            that time over the time since the client connected
  REQUESTS         served since then
  RESERVED         budget / period; a 'hard' one is held back when its budget
                   is used up, and 'held' while it is
  LEFT             budget left in this period; below 0 after a long request
  DEPLETED         how often the budget was used up
  MISSED           deadlines with budget left and work waiting
  ROLE             compositor or window manager: it works for others, and is
                   served first (`xqos policy --desktop`)
  LONGEST WAIT     from a request's arrival to its turn
  LONGEST REQUEST  the longest one seen, and its name
  CPU              what the kernel gives the program's main thread, where it
                   is not as usual: budget / period, a priority, or nice
  WEIGHT           for policy fair (`xqos weight`)
  PRIORITY         for policy fixed (`xqos priority`)
  SYNC             priority set through the SYNC extension

JSON: an object with clients, an array. Each has client, pid, uid, program,
role (null, compositor, window manager, or window manager and compositor),
local, you, ready, holds_server_grab, connected_ms (time since), server_time_ms,
share, reserved_time_ms (paid from the reservation), requests, slices,
waited_ms, longest_wait_ms, longest_request (null, or ms, major, minor, name),
grabbed_ms, cpu (null: as usual; or budget_ms and period_ms, priority, or nice),
weight, fixed_priority, sync_priority, depletions, misses, and
reservation (null, or budget_ms, period_ms, hard, held_back, budget_left_ms,
deadline_in_ms). pid, uid and program are null for a client of another machine.";

#[derive(Debug, Serialize)]
struct Listing {
    clients: Vec<Client>,
}

#[derive(Debug, Serialize)]
struct Client {
    client: String,
    pid: Option<i32>,
    uid: Option<u32>,
    program: Option<String>,
    role: Option<&'static str>,
    local: bool,
    you: bool,
    ready: bool,
    holds_server_grab: bool,
    connected_ms: f64,
    server_time_ms: f64,
    share: f64,
    reserved_time_ms: f64,
    requests: u64,
    slices: u64,
    waited_ms: f64,
    longest_wait_ms: f64,
    longest_request: Option<LongestRequest>,
    grabbed_ms: f64,
    cpu: Option<Processor>,
    weight: f64,
    fixed_priority: i32,
    sync_priority: i32,
    depletions: u32,
    misses: u32,
    reservation: Option<Reserved>,
}

#[derive(Debug, Serialize)]
struct LongestRequest {
    ms: f64,
    major: u8,
    minor: u16,
    name: String,
}

#[derive(Debug, Serialize)]
struct Reserved {
    budget_ms: f64,
    period_ms: f64,
    hard: bool,
    held_back: bool,
    budget_left_ms: f64,
    deadline_in_ms: f64,
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let session = Session::open(display)?;
        let mut list = session.control.clients()?;
        list.clients.retain(|entry| self.all || entry.flags & entry_flag::YOU == 0);
        list.clients.sort_by_key(|entry| std::cmp::Reverse(entry.server_time_ns));
        let names = names_for(&session, &list.clients)?;
        let clients: Vec<Client> = list.clients.iter().map(|entry| client(entry, list.now_ns, &names)).collect();
        if self.json {
            return output::json(&Listing { clients });
        }
        output::print(&table(&clients).render(width()))?;
        let info = session.control.server_info()?;
        if !info.armed {
            output::note(&format!("xqos has stepped aside ({}): these figures no longer change", info.reason));
        }
        Ok(())
    }
}

/// Asks for the server's extensions only where a name is needed.
fn names_for(session: &Session, clients: &[ClientEntry]) -> Result<Names> {
    match clients.iter().any(|entry| opcodes(entry.longest_request).0 >= 128) {
        true => names_of(session.control.connection()),
        false => Ok(Names::default()),
    }
}

fn client(entry: &ClientEntry, now_ns: u64, names: &Names) -> Client {
    let has = |flag: u32| entry.flags & flag != 0;
    let ms = |ns: u64| ns as f64 / 1e6;
    let connected_ns = now_ns.saturating_sub(entry.connected_ns);
    let (major, minor) = opcodes(entry.longest_request);
    Client {
        client: format!("{:#x}", entry.client),
        pid: (entry.pid != 0).then_some(entry.pid),
        uid: (entry.uid != u32::MAX).then_some(entry.uid),
        program: (!entry.name.is_empty()).then(|| entry.name.clone()),
        role: role_of(entry),
        local: has(entry_flag::LOCAL),
        you: has(entry_flag::YOU),
        ready: has(entry_flag::READY),
        holds_server_grab: has(entry_flag::GRABS_SERVER),
        connected_ms: ms(connected_ns),
        server_time_ms: ms(entry.server_time_ns),
        share: entry.server_time_ns as f64 / connected_ns.max(1) as f64,
        reserved_time_ms: ms(entry.reserved_time_ns),
        requests: entry.requests,
        slices: entry.slices,
        waited_ms: ms(entry.waited_ns),
        longest_wait_ms: ms(entry.longest_wait_ns),
        longest_request: (major != 0).then(|| LongestRequest {
            ms: ms(entry.longest_request_ns),
            major,
            minor,
            name: names.name(major, minor),
        }),
        grabbed_ms: ms(entry.grabbed_ns),
        cpu: Some(entry.pid).filter(|&pid| pid > 0).and_then(Processor::of),
        weight: f64::from(entry.weight) / 100.0,
        fixed_priority: entry.fixed_priority,
        sync_priority: entry.sync_priority,
        depletions: entry.depletions,
        misses: entry.misses,
        reservation: has(entry_flag::RESERVED).then(|| Reserved {
            budget_ms: f64::from(entry.budget_us) / 1e3,
            period_ms: f64::from(entry.period_us) / 1e3,
            hard: has(entry_flag::HARD),
            held_back: has(entry_flag::HELD_BACK),
            budget_left_ms: entry.budget_left_ns as f64 / 1e6,
            deadline_in_ms: (i128::from(entry.deadline_ns) - i128::from(now_ns)) as f64 / 1e6,
        }),
    }
}

/// As wide as the terminal, or as COLUMNS; any width for a file or a pipe.
fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|&columns| columns > 0).or_else(sys::terminal_columns)
}

fn table(clients: &[Client]) -> Table {
    let number = |title, rank| Column { title, right: true, rank, elastic: false };
    let words = |title, rank, elastic| Column { title, right: false, rank, elastic };
    let mut table = Table::new(vec![
        number("PID", 0),
        words("PROGRAM", 0, true),
        number("SERVER TIME", 0),
        number("SHARE", 0),
        number("REQUESTS", 3),
        words("RESERVED", 0, false),
        number("LEFT", 5),
        number("DEPLETED", 6),
        number("MISSED", 4),
        words("ROLE", 2, false),
        number("LONGEST WAIT", 2),
        words("LONGEST REQUEST", 1, false),
        words("CPU", 4, false),
        number("WEIGHT", 7),
        number("PRIORITY", 9),
        number("SYNC", 8),
    ]);
    for client in clients {
        table.row(cells(client));
    }
    table
}

fn cells(client: &Client) -> Vec<String> {
    let reserved = client.reservation.as_ref();
    let of_reservation = |text: String| if reserved.is_some() || text != "0" { text } else { String::new() };
    vec![
        client.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        client.program.as_deref().map_or_else(|| client.client.clone(), printable),
        time(client.server_time_ms),
        format!("{:.1}%", 100.0 * client.share),
        client.requests.to_string(),
        reserved.map(reservation).unwrap_or_default(),
        reserved.map(|reserved| time(reserved.budget_left_ms)).unwrap_or_default(),
        of_reservation(client.depletions.to_string()),
        of_reservation(client.misses.to_string()),
        client.role.unwrap_or_default().to_owned(),
        time(client.longest_wait_ms),
        client
            .longest_request
            .as_ref()
            .map(|request| format!("{} {}", time(request.ms), request.name))
            .unwrap_or_default(),
        client.cpu.as_ref().map(ToString::to_string).unwrap_or_default(),
        client.weight.to_string(),
        client.fixed_priority.to_string(),
        client.sync_priority.to_string(),
    ]
}

fn reservation(reserved: &Reserved) -> String {
    let micros = |ms: f64| Micros((ms * 1e3).round() as u32);
    let Reservation { budget, period } =
        Reservation { budget: micros(reserved.budget_ms), period: micros(reserved.period_ms) };
    let kind = match (reserved.held_back, reserved.hard) {
        (true, _) => " held",
        (false, true) => " hard",
        (false, false) => "",
    };
    format!("{}/{} ms{kind}", budget.ms(), period.ms())
}

/// Three digits or so: seconds from one second on, milliseconds below.
fn time(ms: f64) -> String {
    match ms.abs() {
        ms_abs if ms_abs >= 100_000.0 => format!("{:.0} s", ms / 1e3),
        ms_abs if ms_abs >= 1000.0 => format!("{:.1} s", ms / 1e3),
        ms_abs if ms_abs >= 100.0 => format!("{ms:.0} ms"),
        ms_abs if ms_abs >= 10.0 => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> ClientEntry {
        ClientEntry {
            client: 0x40_0000,
            pid: 1234,
            uid: 1000,
            weight: 150,
            flags: entry_flag::RESERVED | entry_flag::HARD | entry_flag::LOCAL,
            budget_us: 3000,
            period_us: 10_000,
            depletions: 7,
            longest_request: 73,
            budget_left_ns: -250_000,
            deadline_ns: 10_004_000_000,
            server_time_ns: 2_500_000_000,
            requests: 123_456,
            longest_wait_ns: 17_400_000,
            longest_request_ns: 11_200_000,
            connected_ns: 5_000_000_000,
            name: "a-program-with-a-long-name".into(),
            ..ClientEntry::default()
        }
    }

    fn shown(entry: &ClientEntry) -> Client {
        client(entry, 10_000_000_000, &Names::default())
    }

    #[test]
    fn the_table_fits_80_columns_with_what_matters() {
        let remote = ClientEntry { client: 0x60_0000, uid: u32::MAX, ..ClientEntry::default() };
        let clients = [shown(&entry()), shown(&remote)];
        let text = table(&clients).render(Some(80));
        assert!(text.lines().take(3).all(|line| line.chars().count() <= 80), "{text}");
        for word in ["1234", "2.5 s", "50.0%", "3/10 ms hard", "11.2 ms GetImage", "0x600000", "Not shown"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
        let text = table(&clients).render(None);
        for word in ["a-program-with-a-long-name", "123456", "-0.25 ms", "17.4 ms", "1.5", "SYNC", "MISSED"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
    }

    #[test]
    fn json_has_milliseconds_and_nulls_for_what_is_unknown() {
        let json = serde_json::to_value(Listing { clients: vec![shown(&entry())] }).unwrap();
        let client = &json["clients"][0];
        assert_eq!(client["client"], "0x400000");
        assert_eq!(client["pid"], 1234);
        assert_eq!(client["server_time_ms"], 2500.0);
        assert_eq!(client["share"], 0.5);
        assert_eq!(client["weight"], 1.5);
        assert_eq!(client["longest_request"]["name"], "GetImage");
        assert_eq!(client["reservation"]["budget_left_ms"], -0.25);
        assert_eq!(client["reservation"]["deadline_in_ms"], 4.0);
        assert_eq!(client["reservation"]["hard"], true);
        let remote = ClientEntry { uid: u32::MAX, ..ClientEntry::default() };
        let json = serde_json::to_value(shown(&remote)).unwrap();
        for field in ["pid", "uid", "program", "reservation", "longest_request"] {
            assert!(json[field].is_null(), "{field}: {json}");
        }
    }

    #[test]
    fn every_field_of_the_json_is_in_the_help() {
        let json = serde_json::to_value(shown(&entry())).unwrap();
        let reserved = json["reservation"].as_object().unwrap().keys();
        let longest = json["longest_request"].as_object().unwrap().keys();
        for field in json.as_object().unwrap().keys().chain(reserved).chain(longest) {
            let documented =
                EXAMPLES.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == field);
            assert!(documented, "{field} is not in `xqos list --help`");
        }
    }

    #[test]
    fn times_keep_three_digits() {
        assert_eq!(
            [0.0, 0.254, 12.34, 345.6, 12_340.0, 123_456.0, -0.25].map(time),
            ["0.00 ms", "0.25 ms", "12.3 ms", "346 ms", "12.3 s", "123 s", "-0.25 ms"]
        );
    }

    #[test]
    fn who_works_for_others_is_named() {
        let manager = ClientEntry { flags: entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER, ..entry() };
        assert!(table(&[shown(&manager)]).render(None).contains("window manager and compositor"));
        let json = serde_json::to_value(shown(&ClientEntry { flags: entry_flag::COMPOSITOR, ..entry() })).unwrap();
        assert_eq!(json["role"], "compositor");
        assert!(serde_json::to_value(shown(&entry())).unwrap()["role"].is_null());
    }

    #[test]
    fn a_held_back_client_is_seen_to_be_held() {
        let held = ClientEntry { flags: entry().flags | entry_flag::HELD_BACK, ..entry() };
        assert!(table(&[shown(&held)]).render(None).contains("3/10 ms held"));
    }
}
