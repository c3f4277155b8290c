// SPDX-License-Identifier: MIT
//! A session with a server that runs xqos, and messages for a server that does not, or that refuses a request.

use crate::admission;
use crate::client::described;
use crate::error::{Error, Result, bail, refused};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt;
use xqos_abi::{ClientEntry, ServerInfo, Setting, Subject, entry_flag};
use xqos_client::{Control, Error as Answer, number_of};
use xqos_core::ReservationKind;
use xqos_sys as sys;
use xqos_text::quantity::{Micros, Reservation, XId};
use xqos_trace::names::Names;

/// Resource ids that a server assigns to clients.
const ID_SPACE: u32 = 1 << 29;

/// An open connection and the server's name for messages.
#[derive(Debug)]
pub struct Session {
    pub control: Control,
    pub display: String,
}

impl Session {
    /// Connects to the display named by `--display` or DISPLAY.
    pub fn open(display: Option<&str>) -> Result<Session> {
        let name = display_name(display)?;
        match Control::open(Some(&name))? {
            Some(control) => Ok(Session { control, display: name }),
            None => bail!(
                "the X server {name} runs without xqos: start one with it, as in `xqos server -- Xvfb :77`, or run \
                 `xqos doctor` to see what this one needs"
            ),
        }
    }

    /// Like [`open`](Session::open), but fails if xqos has stepped aside, because settings would have no effect.
    pub fn open_armed(display: Option<&str>) -> Result<(Session, ServerInfo)> {
        let session = Session::open(display)?;
        let info = session.control.server_info()?;
        if !info.armed {
            bail!(
                "xqos has stepped aside on the X server {} ({}): it has no effect until that server is restarted",
                session.display,
                if info.reason.is_empty() { "it gives no reason" } else { &info.reason }
            );
        }
        Ok((session, info))
    }

    /// Returns true if the server runs on this machine (not over ssh), so that /proc shows its clients.
    pub fn is_here(&self) -> bool {
        number_of(Some(&self.display)).is_some()
    }

    pub fn others(&self) -> Result<Vec<ClientEntry>> {
        let mut clients = self.control.clients()?.clients;
        clients.retain(|entry| entry.flags & entry_flag::YOU == 0);
        Ok(clients)
    }

    /// Names of this server's requests, or only those of the core protocol if only its control socket is available.
    pub fn names(&self) -> Result<Names> {
        let Ok(connection) = self.control.connection() else { return Ok(Names::default()) };
        let names = connection.list_extensions()?.reply()?.names;
        let cookies = names.iter().map(|name| connection.query_extension(&name.name)).collect::<Result<Vec<_>, _>>()?;
        let mut extensions = Vec::new();
        for (name, cookie) in names.iter().zip(cookies) {
            let reply = cookie.reply()?;
            if reply.present {
                extensions.push((String::from_utf8_lossy(&name.name).into_owned(), reply.major_opcode));
            }
        }
        Ok(Names::new(extensions))
    }

    /// Resource base of the client that owns a window or another resource.
    pub fn base_of(&self, id: XId) -> Result<u32> {
        if let Ok(connection) = self.control.connection() {
            return Ok(id.0 & !connection.setup().resource_id_mask);
        }
        // Ids are assigned in blocks of equal size. The first block belongs to the server.
        let blocks = self.control.server_info()?.clients_limit.saturating_add(1);
        Ok(id.0 & !((ID_SPACE / blocks).saturating_sub(1)))
    }

    /// Sets a reservation of a client or its group. The error says why it failed and what to do.
    pub fn reserve(&self, account: &Account<'_>, wanted: Reservation, kind: impl Into<ReservationKind>) -> Result<()> {
        let setting = Setting::reservation(wanted.budget.0, wanted.period.0, kind);
        let Err(error) = self.control.set(account.subject, setting) else { return Ok(()) };
        Err(match error {
            Answer::Admission { .. } => self.refusal(account, wanted)?,
            Answer::Value(_) => match out_of_limits(wanted, &self.control.server_info()?) {
                Some(why) => refused!("{wanted} is refused: {why}"),
                None => has_ended(&account.clients[0]),
            },
            _ => self.explained(error, &account.clients[0]),
        })
    }

    /// Explains why the admission test fails.
    pub fn refusal(&self, account: &Account<'_>, wanted: Reservation) -> Result<Error> {
        let report = self.control.check_admission(account.subject, wanted.budget.0, wanted.period.0)?;
        let why = match account.subject {
            Subject::Group(_) if report.admitted => {
                "it exceeds the limit for each user; ask for less, or release another one (`xqos list`)".to_owned()
            }
            _ => admission::explain(&report, account.clients[0].client, &self.others()?),
        };
        Ok(refused!("{wanted} is refused to {}: {why}", account.name))
    }

    /// Explains the failure of any other request about a client.
    pub fn explained(&self, error: Answer, entry: &ClientEntry) -> Error {
        match error {
            Answer::Access => self.not_allowed(entry),
            Answer::Value(value) if value == entry.client => has_ended(entry),
            _ => error.into(),
        }
    }

    /// The server gives no reason, so derive it from the users and machines of this program and the client.
    fn not_allowed(&self, entry: &ClientEntry) -> Error {
        let (who, user) = (described(entry), sys::effective_ids().0);
        let is_own = |entry: &ClientEntry| entry.flags & entry_flag::YOU != 0;
        let us = self.control.clients().ok().and_then(|all| all.clients.into_iter().find(is_own));
        if us.is_some_and(|us| us.flags & entry_flag::LOCAL == 0) {
            return refused!("{who} cannot be changed from another machine: run this on the X server's machine");
        }
        if user == 0 || entry.flags & entry_flag::LOCAL != 0 && entry.uid == user {
            return refused!(
                "{who} keeps settings made manually or by itself, or its group has another user's clients: `xqos rules adopt \
                 --client {:#x}` returns it to the rules",
                entry.client
            );
        }
        let whose = if entry.uid == u32::MAX { "runs on another machine" } else { "belongs to another user" };
        refused!("{who} {whose}: run this as its user, as the X server's user, or as root, on the server's machine")
    }
}

/// Owner of a reservation: a client, or all clients of its group.
#[derive(Debug)]
pub struct Account<'a> {
    pub subject: Subject,
    pub name: String,
    /// Contains at least one client.
    pub clients: &'a [ClientEntry],
}

impl Account<'_> {
    pub fn of_client(entry: &ClientEntry) -> Account<'_> {
        let (subject, name) = (Subject::Client(entry.client), described(entry));
        Account { subject, name, clients: std::slice::from_ref(entry) }
    }
}

fn has_ended(entry: &ClientEntry) -> Error {
    refused!("{} has disconnected meanwhile: `xqos list` shows the connected clients", described(entry))
}

/// Grabs that a client can hold: the flag, the grabbed device, and the effect.
pub const GRABS: [(u32, &str, &str); 3] = [
    (
        entry_flag::GRABS_SERVER,
        "the server grab",
        "holds the server grab: no other client is served until it releases the grab or exits",
    ),
    (entry_flag::GRABS_POINTER, "the pointer", "has grabbed the pointer: no other client gets its events"),
    (entry_flag::GRABS_KEYBOARD, "the keyboard", "has grabbed the keyboard: no other client gets its events"),
];

pub fn held_grabs(entry: &ClientEntry) -> Vec<String> {
    let held = GRABS.into_iter().filter(|(flag, ..)| entry.flags & flag != 0);
    held.map(|(.., meaning)| format!("{} {meaning}", described(entry))).collect()
}

/// The message for a server that accepts no more clients.
pub fn full(clients: u32, limit: u32) -> Option<String> {
    let is_full = limit > 0 && clients >= limit;
    is_full.then(|| {
        format!("the server has {clients} of at most {limit} clients and accepts no more: end a program with many connections")
    })
}

pub fn is_wayland() -> bool {
    std::env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty())
}

/// The display of `--display`, or else of DISPLAY.
pub fn display_name(display: Option<&str>) -> Result<String> {
    let name = display.map(str::to_owned).or_else(|| std::env::var("DISPLAY").ok()).filter(|name| !name.is_empty());
    name.ok_or_else(|| refused!("DISPLAY is not set: name the X server with --display, as in `xqos --display :0 list`"))
}

/// Explains which limit of the server a reservation exceeds.
pub fn out_of_limits(wanted: Reservation, info: &ServerInfo) -> Option<String> {
    if wanted.budget.0 < info.min_budget_us {
        return Some(format!("this server's shortest budget is {}", Micros(info.min_budget_us)));
    }
    if wanted.period.0 < info.min_period_us || wanted.period.0 > info.max_period_us {
        let (shortest, longest) = (Micros(info.min_period_us), Micros(info.max_period_us));
        return Some(format!("this server takes periods from {shortest} to {longest}"));
    }
    None
}
