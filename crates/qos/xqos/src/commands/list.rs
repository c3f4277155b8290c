// SPDX-License-Identifier: MIT
//! `xqos list`: shows the clients of the server.
//!
//! The table and the JSON are made from a [`Sample`](xqos_agent::sample::Sample) of the time since each client
//! connected.

use anyhow::Result;
use clap::Args;
use xqos_agent::attach::{Attached, AttachedServer};
use xqos_agent::field::table;
use xqos_agent::sample::{CLIENT, Sampler, departed, fields_help};
use xqos_agent::{Error, displays, session};
use xqos_cli::output;
use xqos_client::{Error as Answer, number_of};
use xqos_text::quantity::Micros;

/// Lists the clients of the X server with their server time, requests, waits and reservations
///
/// The client that used the most server time comes first. Disconnected clients are summed up by program below,
/// with their share of the time since the server started.
#[derive(Args, Debug)]
#[command(after_help = help())]
pub struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Include this command's own connection
    #[arg(long)]
    all: bool,
    /// Watch a server without xqos for a second, through the kernel's trace of its system calls; root only. Connections
    /// that close meanwhile are summed up by program, if the program is known
    #[arg(long, value_name = "PID|:N", num_args = 0..=1, default_missing_value = "", conflicts_with = "all")]
    attach: Option<String>,
    /// With --attach: how long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = super::top::interval, requires = "attach")]
    time: Micros,
}

const EXAMPLES: &str = "\
Examples:
  xqos list
  xqos list --json | jq '.clients[] | select(.share > 0.1) | .program'
  sudo xqos list --attach :0

If the server accepts no more clients, or does not answer, the connections of
each program are listed from the kernel's socket table. A client that holds the
server grab, or has grabbed the pointer or the keyboard, is named.

Empty columns are left out. (last): counts only time in which the server had a
processor, since the client connected; (ever): all time since it connected.";

fn help() -> String {
    format!("{EXAMPLES}\n\n{}", fields_help())
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        if let Some(word) = &self.attach {
            return self.watch(word, display);
        }
        let mut sample = match Sampler::list(display, self.all) {
            Ok(sample) => sample,
            Err(error) => return Err(list_from_kernel(display, error)?),
        };
        sample.clients.sort_by_key(|client| std::cmp::Reverse(client.entry.charged_ns));
        if self.json {
            return output::json(&sample);
        }
        let departed = departed::text(&sample.departed, output::width());
        output::print(
            &(table(CLIENT, &sample.clients.iter().collect::<Vec<_>>()).render(output::width()) + &departed),
        )?;
        let (clients, limit) = (sample.server.info.clients, sample.server.info.clients_limit);
        if let Some(why) = session::full(clients, limit) {
            output::print(&by_program(display).map(|table| format!("\n{table}")).unwrap_or_default())?;
            output::note(&why);
        }
        sample
            .clients
            .iter()
            .flat_map(|client| session::held_grabs(&client.entry))
            .for_each(|held| output::note(&held));
        if let Some(reason) = sample.server.aside() {
            output::note(&format!("xqos has stepped aside ({reason}): these figures no longer change"));
        }
        Ok(())
    }

    fn watch(&self, word: &str, display: Option<&str>) -> Result<()> {
        let mut attached = Attached::new(AttachedServer::find(word, display)?)?;
        let Some(sample) = attached.watch(self.time.duration())? else { return Ok(()) };
        drop(attached);
        if self.json { output::json(&sample) } else { output::print(&sample.text(output::width())) }
    }
}

/// Prints the kernel's connection table if the server accepts no clients or does not answer; returns the error.
fn list_from_kernel(display: Option<&str>, error: Error) -> Result<anyhow::Error> {
    let is_silent = match &error {
        Error::Server(Answer::Unreachable { why, .. }) => why.to_string().contains("Maximum number of clients"),
        Error::Server(Answer::Late) => true,
        _ => false,
    };
    if let Some(table) = by_program(display).filter(|_| is_silent) {
        output::print(&table)?;
    }
    Ok(error.into())
}

/// The number of connections of each program, from the kernel's socket table.
fn by_program(display: Option<&str>) -> Option<String> {
    let number = number_of(Some(&session::display_name(display).ok()?))?;
    Some(displays::connections(number)?.render(output::width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{client, entry};
    use xqos_abi::{ClientEntry, entry_flag};

    fn shown(entries: &[ClientEntry], width: Option<usize>) -> String {
        let clients: Vec<_> = entries.iter().map(client).collect();
        table(CLIENT, &clients.iter().collect::<Vec<_>>()).render(width)
    }

    #[test]
    fn the_table_fits_80_columns_and_keeps_the_important_ones() {
        let remote = ClientEntry { client: 0x60_0000, uid: u32::MAX, ..ClientEntry::default() };
        let clients = [entry(), remote];
        let text = shown(&clients, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for word in ["1234", "2.50 s", "50.0%", "3/10 ms hard", "17.4 ms", "11.2 ms Get", "0x600000", "Not shown"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
        let text = shown(&clients, None);
        for word in ["a-program-with-a-long-name", "123456", "-250 us", "17.4 ms", "1.5", "LEFT", "MISSED"] {
            assert!(text.contains(word), "{word} in:\n{text}");
        }
    }

    #[test]
    fn waits_fit_80_columns_and_empty_columns_are_left_out() {
        let idle = |pid| ClientEntry { pid, flags: entry_flag::LOCAL, budget_us: 0, period_us: 0, ..entry() };
        let text = shown(&[idle(4_123_456), idle(4_123_457)], Some(80));
        let titles = text.lines().next().unwrap_or_default();
        assert!(titles.contains("MAXWAIT") && titles.contains("LONGEST"), "{text}");
        assert!(["RESERVED", "ROLE", "SYNC"].iter().all(|title| !text.contains(title)), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let narrow = shown(&[entry()], Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn the_window_manager_and_compositor_is_named() {
        let manager = ClientEntry { flags: entry_flag::COMPOSITOR | entry_flag::WINDOW_MANAGER, ..entry() };
        assert!(shown(&[manager], None).contains("window manager and compositor"));
    }

    #[test]
    fn clients_show_the_reservation_of_their_group() {
        let (group_budget_us, group_period_us) = (3000, 10_000);
        let flags = entry_flag::GROUP_HARD;
        let member = ClientEntry { flags, group: 1, group_budget_us, group_period_us, ..entry() };
        assert!(shown(&[member], None).contains("3/10 ms hard group"));
    }

    #[test]
    fn a_held_back_client_is_marked() {
        let held = ClientEntry { flags: entry().flags | entry_flag::HELD_BACK, ..entry() };
        assert!(shown(&[held], None).contains("3/10 ms held"));
    }
}
