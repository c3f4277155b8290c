// SPDX-License-Identifier: MIT
//! `xqos rules adopt`: drops a client's manual settings, so that rules apply to it again.

use crate::commands::weight::command_for;
use crate::selector::Selector;
use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use xqos_abi::{ClientEntry, SettingKind as OfServer, Subject, entry_flag};
use xqos_agent::client::{described, reservation_of, words};
use xqos_agent::holder::Holder;
use xqos_agent::rules::apply::bit;
use xqos_agent::rules::selection_lock;
use xqos_agent::session::Session;
use xqos_cli::output::{line, note};
use xqos_rules::setting::SettingKind;

/// A setting in rules and in the server, and its default value if it has its own command.
type Manual = (SettingKind, OfServer, &'static str);

/// Settings of a client that can be set manually.
const SETTINGS: [Manual; 6] = [
    (SettingKind::Reserve, OfServer::Reservation, ""),
    (SettingKind::Weight, OfServer::Weight, "1"),
    (SettingKind::Priority, OfServer::Priority, "0"),
    (SettingKind::Slice, OfServer::Slice, "none"),
    (SettingKind::Group, OfServer::Group, ""),
    (SettingKind::Pace, OfServer::Paced, ""),
];

/// Drops manual settings of a client, so that rules apply to it again
///
/// A setting made manually, or by the program itself, overrides all rules until the client exits. This command drops
/// such settings. The rules that run on the display then apply; without `xqos rules run`, the client gets the defaults.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos rules adopt --pid 4711
  xqos rules adopt --class xterm --only weight")]
pub struct Adopt {
    #[command(flatten)]
    selector: Selector,
    /// Only this setting
    #[arg(long, value_name = "SETTING", value_parser = PossibleValuesParser::new(SETTINGS.map(|(kind, ..)| kind.name())))]
    only: Option<String>,
}

impl Adopt {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (session, _) = Session::open_armed(display)?;
        let is_meant = |kind: SettingKind| self.only.as_deref().is_none_or(|only| only == kind.name());
        for entry in self.selector.resolve(&session)? {
            // A reservation that a rule has made needs no reset.
            let is_by_rules = ["rule ", "auto"].iter().any(|by| entry.reservation_origin.as_str().starts_with(by));
            let meant = SETTINGS.into_iter().filter(|&(kind, ..)| is_meant(kind));
            let given: Vec<_> = meant.filter(|&(kind, ..)| kind != SettingKind::Reserve || !is_by_rules).collect();
            for setting in &given {
                reset(&session, &entry, setting)?;
            }
            let settings = given.iter().fold(0, |all, &(kind, ..)| all | bit(kind));
            let holder = selection_lock::return_settings(session.control.connection()?, entry.client, settings)?;
            line(&confirmation(&entry, &given))?;
            if holder.is_none() {
                note("no rules are applied on this display now: start `xqos rules run`");
            }
        }
        Ok(())
    }
}

/// Resets a setting to its default, without a lease, so that the server records no owner for it.
fn reset(session: &Session, entry: &ClientEntry, &(kind, of_server, _): &Manual) -> Result<()> {
    let is_set = match kind {
        SettingKind::Reserve => reservation_of(entry).is_some(),
        SettingKind::Pace => entry.flags & (entry_flag::PACED | entry_flag::NEVER_PACED) != 0,
        _ => true,
    };
    if !is_set {
        return Ok(());
    }
    let done = session.control.clear(Subject::Client(entry.client), of_server);
    Ok(done.map_err(|error| session.explained(error, entry))?)
}

/// Describes the change, and how to restore the manual settings.
fn confirmation(entry: &ClientEntry, given: &[Manual]) -> String {
    let (mut was, mut undo) = (Vec::new(), Vec::new());
    for &(kind, of_server, usual) in given {
        if let Some((reservation, kind)) = reservation_of(entry).filter(|_| kind == SettingKind::Reserve) {
            was.push(format!("{reservation}{} reserved", words(kind)));
            undo.push(Holder::of_client(entry.clone()).reserve_again((reservation, kind)));
        }
        if let Some((name, value, command)) = command_for(entry, of_server).filter(|(_, value, _)| value != usual) {
            was.push(format!("{name} {value}"));
            undo.push(command);
        }
    }
    let done = format!("{} follows the rules again", described(entry));
    match was.is_empty() {
        true => done,
        false => format!("{done}, was: {}; undo: {}", was.join(", "), undo.join(" && ")),
    }
}
