// SPDX-License-Identifier: MIT
//! `xqos list`: who uses the server.
//!
//! The table and the JSON are made from a [`Sample`](crate::sample::Sample) since each client connected.

use crate::attach::{Attached, Target};
use crate::client::printable;
use crate::connections;
use crate::sample::{Client, GroupReserved, Reserved, Sampler, departed, json_help};
use crate::session;
use anyhow::Result;
use clap::Args;
use xqos_cli::output;
use xqos_cli::quantity::{Micros, Reservation};
use xqos_cli::table::{Column, Table};
use xqos_cli::time::of_ms;
use xqos_client::{Error, number_of};

/// Shows who uses the X server: server time, requests, waits and reservations of each client
///
/// Clients that used the most server time come first. Clients that are gone are summed up by
/// program below them, with their share of the time since the server began.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Write JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Show the connection of this command too
    #[arg(long)]
    all: bool,
    /// Watch a server that has nothing loaded, from the kernel's trace of its
    /// system calls, for a second; root only. Connections that are
    /// closed meanwhile are summed up by program, as far as it can be looked up
    #[arg(long, value_name = "PID|:N", num_args = 0..=1, default_missing_value = "", conflicts_with = "all")]
    attach: Option<String>,
    /// How long to watch with --attach
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = super::top::interval, requires = "attach")]
    time: Micros,
}

const EXAMPLES: &str = concat!(
    "\
Examples:
  xqos list
  xqos list --json | jq '.clients[] | select(.share > 0.1) | .program'
  sudo xqos list --attach :0

Where the server takes no further client, or does not answer, the connections of
each program follow, from the kernel's table of sockets. A client that holds the
server grab, or has grabbed the pointer or the keyboard, is named.

Columns:
  SERVER TIME      for which the server worked for the client
  SHARE            that time over the time since the client connected, as far as
                   the server had a processor
  REQUESTS         served since then
  RESERVED         budget / period; a 'hard' one is held back when its budget
                   is used up, and 'held' while it is; a 'soft=paper' one has
                   the next budget then, and a later deadline; a 'group' one is
                   used by all clients of its group together
  CHARGED          server time that it is the cause of, where that is another:
                   what a window manager does is charged to the client that
                   makes it work; the list is in this order
  LEFT             budget left in this period; below 0 after a long request
  DEPLETED         how often the budget was used up
  MISSED           deadlines with budget left and work waiting
  ROLE             compositor or window manager: it works for others, and is
                   served first (`xqos policy --desktop`)
  BY               who made its settings: itself, hand, or a rule; 'auto 0.93'
                   is measurement, with its confidence (0 to 1) when it was set
  GROUP            with whose clients it shares (`xqos policy --groups`)
  LONGEST WAIT     from a request's arrival to its turn
  LONGEST REQUEST  processor time of the longest one seen, and its name; what
                   it took by the clock is in a trace (`xqos trace`)
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
        if let Some(word) = &self.attach {
            return self.watch(word, display);
        }
        let mut sample = match Sampler::list(display, self.all) {
            Ok(sample) => sample,
            Err(error) => return Err(told_by_kernel(display, error)?),
        };
        sample.clients.sort_by_key(|client| std::cmp::Reverse(client.entry.charged_ns));
        if self.json {
            return output::json(&sample);
        }
        let departed = departed::text(&sample.departed, output::width());
        output::print(&(table(&sample.clients).render(output::width()) + &departed))?;
        let (clients, limit) = (sample.server.connected, sample.server.clients_limit);
        if let Some(why) = session::full(clients, limit) {
            output::print(&by_program(display).map(|table| format!("\n{table}")).unwrap_or_default())?;
            output::note(&why);
        }
        sample
            .clients
            .iter()
            .flat_map(|client| session::held_grabs(&client.entry))
            .for_each(|held| output::note(&held));
        if let Some(reason) = &sample.server.aside {
            output::note(&format!("xqos has stepped aside ({reason}): these figures no longer change"));
        }
        Ok(())
    }
}

impl Arguments {
    fn watch(&self, word: &str, display: Option<&str>) -> Result<()> {
        let mut attached = Attached::new(Target::find(word, display)?)?;
        let Some(sample) = attached.watch(self.time.duration())? else { return Ok(()) };
        drop(attached);
        if self.json { output::json(&sample) } else { output::print(&sample.text(output::width())) }
    }
}

/// What the kernel knows of the connections of a server that takes nobody, or does not answer.
fn told_by_kernel(display: Option<&str>, error: anyhow::Error) -> Result<anyhow::Error> {
    let is_silent = match error.downcast_ref() {
        Some(Error::Unreachable { why, .. }) => why.to_string().contains("Maximum number of clients"),
        Some(Error::Late) => true,
        _ => false,
    };
    if let Some(table) = by_program(display).filter(|_| is_silent) {
        output::print(&table)?;
    }
    Ok(error)
}

/// The connections of each program, by the kernel's table of sockets.
fn by_program(display: Option<&str>) -> Option<String> {
    let number = number_of(Some(&session::display_name(display).ok()?))?;
    Some(connections::table(number)?.render(output::width()))
}

fn table(clients: &[Client]) -> Table {
    let mut table = Table::new(vec![
        Column::number("PID", 0),
        Column::words("PROGRAM", 0).elastic(),
        Column::number("SERVER TIME", 0),
        Column::number("SHARE", 0),
        Column::number("CHARGED", 2),
        Column::number("REQUESTS", 4),
        Column::words("RESERVED", 1),
        Column::number("LEFT", 5),
        Column::number("DEPLETED", 6),
        Column::number("MISSED", 5),
        Column::words("ROLE", 3),
        Column::words("BY", 3),
        Column::words("GROUP", 8),
        Column::number("LONGEST WAIT", 1),
        Column::words("LONGEST REQUEST", 2).elastic(),
        Column::words("CPU", 4),
        Column::number("WEIGHT", 7),
        Column::number("PRIORITY", 9),
        Column::number("SYNC", 8),
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
        client.is_charged_otherwise().then(|| of_ms(client.charged_ms)).unwrap_or_default(),
        client.requests.to_string(),
        reserved.map(reservation).or_else(|| of_group(client)).unwrap_or_default(),
        reserved.map(|reserved| of_ms(reserved.budget_left_ms)).unwrap_or_default(),
        of_reservation(client.depletions.to_string()),
        of_reservation(client.misses.to_string()),
        client.role.unwrap_or_default().to_owned(),
        printable(client.by.shown()),
        client.group.as_ref().map(|group| printable(&group.name)).unwrap_or_default(),
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

fn of_group(client: &Client) -> Option<String> {
    let GroupReserved { budget_ms, period_ms, kind } = client.group.as_ref()?.reservation.as_ref()?;
    Some(format!("{}{} group", typed(*budget_ms, *period_ms), kind.words()))
}

fn typed(budget_ms: f64, period_ms: f64) -> String {
    let micros = |ms: f64| Micros((ms * 1e3).round() as u32);
    let Reservation { budget, period } = Reservation { budget: micros(budget_ms), period: micros(period_ms) };
    format!("{}/{} ms", budget.ms(), period.ms())
}

fn reservation(reserved: &Reserved) -> String {
    let kind = if reserved.held_back { " held" } else { reserved.kind.words() };
    format!("{}{kind}", typed(reserved.budget_ms, reserved.period_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Names;
    use crate::sample::client::{Beside, entry};
    use xqos_abi::{ClientEntry, entry_flag};

    fn shown(entry: &ClientEntry) -> Client {
        Client::new(entry, &Beside::new(10_000_000_000, &Names::default()))
    }

    #[test]
    fn the_table_fits_80_columns_with_what_matters() {
        let remote = ClientEntry { client: 0x60_0000, uid: u32::MAX, ..ClientEntry::default() };
        let clients = [shown(&entry()), shown(&remote)];
        let text = table(&clients).render(Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for word in ["1234", "2.50 s", "50.0%", "3/10 ms hard", "17.4 ms", "11.2 ms Get", "0x600000", "Not shown"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
        let text = table(&clients).render(None);
        for word in ["a-program-with-a-long-name", "123456", "-250 us", "17.4 ms", "1.5", "SYNC", "MISSED"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
    }

    #[test]
    fn in_eighty_columns_waits_are_shown_and_no_empty_column() {
        let idle = |pid| ClientEntry { pid, flags: entry_flag::LOCAL, budget_us: 0, period_us: 0, ..entry() };
        let clients = [shown(&idle(4_123_456)), shown(&idle(4_123_457))];
        let text = table(&clients).render(Some(80));
        let titles = text.lines().next().unwrap_or_default();
        assert!(titles.contains("LONGEST WAIT") && titles.contains("LONGEST REQUEST"), "{text}");
        assert!(["RESERVED", "ROLE", "MISSED"].iter().all(|title| !text.contains(title)), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let narrow = table(&[shown(&entry())]).render(Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn who_works_for_others_is_named() {
        let manager = ClientEntry { flags: entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER, ..entry() };
        assert!(table(&[shown(&manager)]).render(None).contains("window manager and compositor"));
    }

    #[test]
    fn the_reservation_of_a_group_is_seen_at_its_clients() {
        let (group_budget_us, group_period_us) = (3000, 10_000);
        let flags = entry_flag::GROUP_HARD;
        let member = ClientEntry { flags, group: 1, group_budget_us, group_period_us, ..entry() };
        assert!(table(&[shown(&member)]).render(None).contains("3/10 ms hard group"));
    }

    #[test]
    fn a_held_back_client_is_seen_to_be_held() {
        let held = ClientEntry { flags: entry().flags | entry_flag::HELD_BACK, ..entry() };
        assert!(table(&[shown(&held)]).render(None).contains("3/10 ms held"));
    }
}
