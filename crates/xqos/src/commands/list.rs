//! `xqos list`: who uses the server.
//!
//! The table and the JSON are made from a [`Sample`](crate::sample::Sample) since each client connected.

use crate::sample::{Client, Reserved, Sampler, json_help};
use anyhow::Result;
use clap::Args;
use xqos_cli::output;
use xqos_cli::quantity::{Micros, Reservation};
use xqos_cli::sys;
use xqos_cli::table::{Column, Table};
use xqos_text::time::of_ms;

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

const EXAMPLES: &str = concat!(
    "\
Examples:
  xqos list
  xqos list --json | jq '.clients[] | select(.share > 0.1) | .program'

Columns:
  SERVER TIME      for which the server worked for the client
  SHARE            that time over the time since the client connected, as far as
                   the server had a processor
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

",
    json_help!()
);

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let mut sample = Sampler::list(display, self.all)?;
        sample.clients.sort_by_key(|client| std::cmp::Reverse(client.entry.server_time_ns));
        if self.json {
            return output::json(&sample);
        }
        output::print(&table(&sample.clients).render(width()))?;
        if let Some(reason) = &sample.server.aside {
            output::note(&format!("xqos has stepped aside ({reason}): these figures no longer change"));
        }
        Ok(())
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
        client.name.clone(),
        of_ms(client.server_time_ms),
        format!("{:.1}%", 100.0 * client.share),
        client.requests.to_string(),
        reserved.map(reservation).unwrap_or_default(),
        reserved.map(|reserved| of_ms(reserved.budget_left_ms)).unwrap_or_default(),
        of_reservation(client.depletions.to_string()),
        of_reservation(client.misses.to_string()),
        client.role.unwrap_or_default().to_owned(),
        of_ms(client.longest_wait_ms),
        client
            .longest_request
            .as_ref()
            .map(|request| format!("{} {}", of_ms(request.ms), request.name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Names;
    use crate::sample::client::Beside;
    use xqos_abi::{ClientEntry, entry_flag};

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
        Client::new(entry, &Beside::new(10_000_000_000, &Names::default()))
    }

    #[test]
    fn the_table_fits_80_columns_with_what_matters() {
        let remote = ClientEntry { client: 0x60_0000, uid: u32::MAX, ..ClientEntry::default() };
        let clients = [shown(&entry()), shown(&remote)];
        let text = table(&clients).render(Some(80));
        assert!(text.lines().take(3).all(|line| line.chars().count() <= 80), "{text}");
        for word in ["1234", "2.50 s", "50.0%", "3/10 ms hard", "11.2 ms GetImage", "0x600000", "Not shown"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
        let text = table(&clients).render(None);
        for word in ["a-program-with-a-long-name", "123456", "-250 us", "17.4 ms", "1.5", "SYNC", "MISSED"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
    }

    #[test]
    fn who_works_for_others_is_named() {
        let manager = ClientEntry { flags: entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER, ..entry() };
        assert!(table(&[shown(&manager)]).render(None).contains("window manager and compositor"));
    }

    #[test]
    fn a_held_back_client_is_seen_to_be_held() {
        let held = ClientEntry { flags: entry().flags | entry_flag::HELD_BACK, ..entry() };
        assert!(table(&[shown(&held)]).render(None).contains("3/10 ms held"));
    }
}
