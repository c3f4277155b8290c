// SPDX-License-Identifier: MIT
//! Asks a server for its extensions, to name their requests.

use crate::error::Result;
use x11rb::protocol::xproto::ConnectionExt;

use xqos_client::Control;
pub use xqos_trace::names::{Names, opcodes};

/// Names of this server's requests, or only those of the core protocol if only its control socket is available.
pub fn names_of(control: &Control) -> Result<Names> {
    let Ok(connection) = control.connection() else { return Ok(Names::default()) };
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
