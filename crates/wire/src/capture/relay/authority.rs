// SPDX-License-Identifier: MIT
//! The server's cookie under the name of our display: a client looks it up by the display's number.
//!
//! libxcb sends no cookie at all where it finds none for the display that it was told, and a server that asks for one
//! then refuses. So the program gets a file with entries of our display in front of the user's own; without a cookie for
//! the server nothing is needed.
//!
//! | entry | who looks for it |
//! |---|---|
//! | FamilyLocal, with this machine's name, as xauth and sshd write it | every library that takes the display for local |
//! | FamilyInternet, where the display is behind TCP | python-xlib and others that compare all of an entry |
//! | FamilyWild | libX11 and libxcb, whatever they call this machine |

use super::display::Removed;
use super::upstream::Upstream;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use x11rb_protocol::xauth::{Family, get_auth};

const FAMILY_INTERNET: u16 = 0;
const FAMILY_LOCAL: u16 = 256;
/// For whatever a client calls this machine.
const FAMILY_WILD: u16 = 65_535;

/// Its drop removes the file.
#[derive(Debug)]
pub struct Authority(Removed);

impl Authority {
    /// A file for clients of our display, if the server behind it has a cookie.
    pub fn of_upstream(upstream: &Upstream, number: u16) -> io::Result<Option<Authority>> {
        cookie(upstream).map(|(name, data)| Authority::make(number, None, &name, &data)).transpose()
    }

    /// A file for clients of a display of ours, with this cookie for it; `address` is where they reach it by TCP.
    pub fn make(number: u16, address: Option<Ipv4Addr>, name: &[u8], data: &[u8]) -> io::Result<Authority> {
        let address = address.map(|address| address.octets());
        let internet = address.as_ref().map(|octets| (FAMILY_INTERNET, &octets[..]));
        let (host, number_text) = (xqos_sys::host_name(), number.to_string());
        let hosts = [Some((FAMILY_LOCAL, host.as_bytes())), internet, Some((FAMILY_WILD, &[][..]))];
        let mut bytes = Vec::new();
        for (family, host) in hosts.into_iter().flatten() {
            bytes.extend(u16::to_be_bytes(family));
            for text in [host, number_text.as_bytes(), name, data] {
                bytes.extend((text.len() as u16).to_be_bytes());
                bytes.extend(text);
            }
        }
        // Programs that use other displays too still find theirs.
        bytes.extend(users_file().and_then(|path| fs::read(path).ok()).unwrap_or_default());
        create(number, &bytes)
    }

    pub fn path(&self) -> &Path {
        &self.0.0
    }
}

/// What lets a client into the display behind ours: the name of a way, and its secret.
pub fn cookie(upstream: &Upstream) -> Option<(Vec<u8>, Vec<u8>)> {
    let (family, address) = match upstream.host() {
        None => (Family::LOCAL, xqos_sys::host_name().into_bytes()),
        Some(IpAddr::V4(address)) => (Family::INTERNET, address.octets().to_vec()),
        Some(IpAddr::V6(address)) => (Family::INTERNET6, address.octets().to_vec()),
    };
    // A file that cannot be read is none, to the program too.
    get_auth(family, &address, upstream.number()).ok().flatten()
}

/// A secret that nobody can guess.
pub fn secret() -> io::Result<[u8; 16]> {
    let mut secret = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

/// Where libraries look for it.
fn users_file() -> Option<PathBuf> {
    let named = env::var_os("XAUTHORITY").map(PathBuf::from);
    named.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".Xauthority")))
}

fn create(number: u16, bytes: &[u8]) -> io::Result<Authority> {
    let folder = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let folder = folder.unwrap_or_else(env::temp_dir);
    let path = folder.join(format!("xqos-{}-{number}", std::process::id()));
    // Left behind by a process of the same id that was killed.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let authority = Authority(Removed(path));
    file.write_all(bytes)?;
    Ok(authority)
}
