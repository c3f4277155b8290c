// SPDX-License-Identifier: MIT
//! Writes an authority file with the server's cookie for our display. Clients look up cookies by display number.
//!
//! If libxcb finds no cookie for its display, it sends none, and the server refuses the client. The program therefore
//! gets a file with entries for our display, followed by the user's own. There is no file if the server uses no cookie.
//!
//! | entry | used by |
//! |---|---|
//! | FamilyLocal with the host name, as xauth and sshd write it | libraries that consider the display local |
//! | FamilyInternet, if the display is reached over TCP | python-xlib and others that compare the whole entry |
//! | FamilyWild | libX11 and libxcb, with any host name |

use super::display::TemporaryFile;
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
/// Matches any address.
const FAMILY_WILD: u16 = 65_535;

#[derive(Debug)]
pub struct Authority(TemporaryFile);

impl Authority {
    /// A file for clients of our display, if the real server uses a cookie.
    pub fn of_upstream(upstream: &Upstream, number: u16) -> io::Result<Option<Authority>> {
        cookie(upstream).map(|(name, data)| Authority::make(number, None, &name, &data)).transpose()
    }

    /// A file with this cookie for our display; `address` is its TCP address, if any.
    pub fn make(number: u16, address: Option<Ipv4Addr>, name: &[u8], data: &[u8]) -> io::Result<Authority> {
        let address = address.map(|address| address.octets());
        let internet = address.as_ref().map(|octets| (FAMILY_INTERNET, &octets[..]));
        let (host, number_text) = (xqos_sys::host_name(), number.to_string());
        let hosts = [Some((FAMILY_LOCAL, host.as_bytes())), internet, Some((FAMILY_WILD, &[][..]))];
        let mut bytes = Vec::new();
        for (family, host) in hosts.into_iter().flatten() {
            bytes.extend(entry(family, [host, number_text.as_bytes(), name, data]));
        }
        // Keep the user's entries: programs may use other displays too.
        bytes.extend(users_file().and_then(|path| fs::read(path).ok()).unwrap_or_default());
        create(number, &bytes)
    }

    pub fn path(&self) -> &Path {
        &self.0.0
    }
}

fn entry(family: u16, texts: [&[u8]; 4]) -> Vec<u8> {
    let mut bytes = Vec::from(family.to_be_bytes());
    for text in texts {
        bytes.extend((text.len() as u16).to_be_bytes());
        bytes.extend(text);
    }
    bytes
}

/// An authority file's entry for a display that is named by its socket's path. Only [`cookie`] finds it.
pub fn entry_for_path(path: &str, name: &[u8], data: &[u8]) -> Vec<u8> {
    entry(FAMILY_LOCAL, [path.as_bytes(), b"0", name, data])
}

/// Name and data of the authorization for the real display.
pub fn cookie(upstream: &Upstream) -> Option<(Vec<u8>, Vec<u8>)> {
    // Treat an unreadable file as missing, as the program would.
    let find = |family, address: &[u8]| get_auth(family, address, upstream.display.display).ok().flatten();
    if let Some(found) = upstream.path().and_then(|path| find(Family::LOCAL, path.as_bytes())) {
        return Some(found);
    }
    let (family, address) = match upstream.host {
        None => (Family::LOCAL, xqos_sys::host_name().into_bytes()),
        Some(IpAddr::V4(address)) => (Family::INTERNET, address.octets().to_vec()),
        Some(IpAddr::V6(address)) => (Family::INTERNET6, address.octets().to_vec()),
    };
    find(family, &address)
}

pub fn secret() -> io::Result<[u8; 16]> {
    let mut secret = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

fn users_file() -> Option<PathBuf> {
    let named = env::var_os("XAUTHORITY").map(PathBuf::from);
    named.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".Xauthority")))
}

fn create(number: u16, bytes: &[u8]) -> io::Result<Authority> {
    let folder = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let folder = folder.unwrap_or_else(env::temp_dir);
    let path = folder.join(format!("xqos-{}-{number}", std::process::id()));
    // A killed process with the same id may have left the file behind.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let authority = Authority(TemporaryFile(path));
    file.write_all(bytes)?;
    Ok(authority)
}
