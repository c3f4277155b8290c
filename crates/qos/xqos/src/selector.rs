// SPDX-License-Identifier: MIT
//! Options that select clients: by process, window, class, client id, or with the pointer.

use anyhow::{Result, bail};
use clap::Args;
use xqos_abi::ClientEntry;
use xqos_agent::holder::Holder;
use xqos_agent::session::Session;
use xqos_agent::{pick, windows};
use xqos_text::quantity::XId;

/// Options of which exactly one is required.
#[derive(Args, Debug)]
#[group(id = "selector", required = true, multiple = false)]
pub struct Selector {
    /// All connections of this process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// The client that owns this window, by its id from xwininfo: 0x1c00007
    #[arg(long, value_name = "ID")]
    window: Option<XId>,
    /// All clients with a window of this WM_CLASS (instance or class; case is ignored)
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// This client, by its id from `xqos list --json` or a confirmation: 0x1c00000
    #[arg(long, value_name = "ID")]
    client: Option<XId>,
    /// Click on a window; Escape or the right button cancels
    #[arg(long)]
    pick: bool,
}

impl Selector {
    /// The selected clients; at least one.
    pub fn resolve(&self, session: &Session) -> Result<Vec<ClientEntry>> {
        if let Some(pid) = self.pid {
            return of_process(session, pid);
        }
        if let Some(id) = self.window {
            windows::exists(session.control.connection()?, id.0)?;
            return of_resource(session, id, "window");
        }
        if let Some(id) = self.client {
            return of_resource(session, id, "client");
        }
        if let Some(class) = &self.class {
            return of_class(session, class);
        }
        let window = pick::window(session.control.connection()?)?;
        of_resource(session, XId(window), "window")
    }
}

/// The clients that the selector chooses, or the groups of this name.
pub fn holders(session: &Session, selector: Option<&Selector>, group: Option<&str>) -> Result<Vec<Holder>> {
    if let Some(name) = group {
        return Ok(vec![Holder::of_group(session, name)?]);
    }
    let clients = selector.map_or(Ok(Vec::new()), |selector| selector.resolve(session))?;
    Ok(clients.into_iter().map(Holder::of_client).collect())
}

fn of_process(session: &Session, pid: i32) -> Result<Vec<ClientEntry>> {
    let mut clients = session.others()?;
    clients.retain(|entry| entry.pid == pid);
    if clients.is_empty() {
        bail!(
            "process {pid} has no connection to the X server {}: `xqos list` shows which processes have (a wrapper or \
             launcher is not the program itself)",
            session.display
        );
    }
    Ok(clients)
}

fn of_resource(session: &Session, id: XId, kind: &str) -> Result<Vec<ClientEntry>> {
    let base = session.base_of(id)?;
    if base == 0 {
        bail!("{kind} {:#x} belongs to the X server itself, as the background does: choose a program's window", id.0);
    }
    match session.others()?.into_iter().find(|entry| entry.client == base) {
        Some(entry) => Ok(vec![entry]),
        None => bail!("no client of the X server {} owns {:#x}: `xqos list` shows the clients", session.display, id.0),
    }
}

fn of_class(session: &Session, class: &str) -> Result<Vec<ClientEntry>> {
    let connection = session.control.connection()?;
    let windows = windows::of_class(connection, class)?;
    if windows.is_empty() {
        bail!(
            "no window on the X server {} has the class {class}: run `xprop WM_CLASS` to see the class of a window",
            session.display
        );
    }
    let bases = windows.into_iter().map(|window| session.base_of(XId(window))).collect::<Result<Vec<u32>, _>>()?;
    let mut clients = session.others()?;
    clients.retain(|entry| bases.contains(&entry.client));
    if clients.is_empty() {
        bail!("the windows of class {class} have just been closed: try again");
    }
    Ok(clients)
}
