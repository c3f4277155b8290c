// SPDX-License-Identifier: MIT
//! The real display behind the relay: its address, and connections to it.

use super::RelayError;
use rustix::net::sockopt::set_tcp_nodelay;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use x11rb_protocol::parse_display::{ConnectAddress, ParsedDisplay, parse_display};
use xqos_x11::display::plain;

/// Wireshark treats the ports of displays up to this one as X.
const LAST_DISPLAY: u16 = 63;
const FIRST_PORT: u16 = 6000;

/// A nonblocking socket to a client or a server.
#[derive(Debug)]
pub struct Socket {
    pub fd: OwnedFd,
    /// True for a Unix socket, which can pass file descriptors.
    pub takes_files: bool,
}

#[derive(Clone, Debug)]
pub struct Upstream {
    name: String,
    pub display: ParsedDisplay,
    /// The server's address, as authority files name it; `None` is this machine. Not known before [`Upstream::reach`].
    pub host: Option<IpAddr>,
}

impl Upstream {
    /// Finds a display by name (`None`: DISPLAY), and connects to it once.
    pub fn find(name: Option<&str>) -> Result<Upstream, RelayError> {
        let mut upstream = Upstream::named(name)?;
        upstream.reach().map(|_| upstream)
    }

    /// A display by name (`None`: DISPLAY), which may not exist.
    pub fn named(name: Option<&str>) -> Result<Upstream, RelayError> {
        let shown = name.map_or_else(|| std::env::var("DISPLAY").unwrap_or_default(), str::to_owned);
        match parse_display(Some(&plain(&shown))) {
            Ok(display) => Ok(Upstream { name: shown, display, host: None }),
            Err(_) if shown.is_empty() => Err(RelayError::NotSet),
            Err(_) => Err(RelayError::NoDisplay(shown)),
        }
    }

    /// Connects to the display for the first time. Until then, `host` is not known.
    pub fn reach(&mut self) -> Result<Socket, RelayError> {
        let connected = connect(&self.display).map_err(|error| RelayError::Unreachable(self.name.clone(), error));
        connected.map(|(socket, host)| {
            self.host = host;
            socket
        })
    }

    /// True if the display's socket is on this machine, as with ssh. Connecting then takes no round trip.
    pub fn is_local(&self) -> bool {
        let is_here = |address: &ConnectAddress<'_>| match address {
            ConnectAddress::Hostname("localhost", _) => true,
            ConnectAddress::Hostname(host, _) => host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
            _ => true,
        };
        self.display.connect_instruction().all(|address| is_here(&address))
    }

    /// The path of the server's socket, if the display's name is this path, as with launchd and `xqos ssh`.
    pub fn path(&self) -> Option<&str> {
        path(&self.display)
    }

    /// Port for captures. Displays whose port would not be recognized as X use the port of display 0.
    pub fn port(&self) -> u16 {
        FIRST_PORT + if self.display.display <= LAST_DISPLAY { self.display.display } else { 0 }
    }

    pub fn connect(&self) -> io::Result<Socket> {
        connect(&self.display).map(|(socket, _)| socket)
    }
}

fn path(display: &ParsedDisplay) -> Option<&str> {
    Some(display.host.as_str()).filter(|host| host.starts_with('/'))
}

/// Connects to the first of a display's addresses that accepts the connection.
fn connect(display: &ParsedDisplay) -> io::Result<(Socket, Option<IpAddr>)> {
    // x11rb-protocol parses paths, but does not connect to them.
    if let Some(path) = path(display) {
        return unix(UnixStream::connect(path)?);
    }
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in display.connect_instruction() {
        match connect_to(&address) {
            Ok(connected) => return Ok(connected),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(address: &ConnectAddress<'_>) -> io::Result<(Socket, Option<IpAddr>)> {
    match address {
        ConnectAddress::Hostname(host, port) => {
            let stream = TcpStream::connect((*host, *port))?;
            // Nagle's algorithm would add a delay.
            set_tcp_nodelay(&stream, true)?;
            stream.set_nonblocking(true)?;
            let peer = stream.peer_addr()?.ip();
            Ok((Socket { fd: stream.into(), takes_files: false }, Some(peer).filter(|peer| !peer.is_loopback())))
        }
        ConnectAddress::Socket(path) => {
            let hidden = SocketAddr::from_abstract_name(path).and_then(|address| UnixStream::connect_addr(&address));
            unix(hidden.or_else(|_| UnixStream::connect(path))?)
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn unix(stream: UnixStream) -> io::Result<(Socket, Option<IpAddr>)> {
    stream.set_nonblocking(true)?;
    Ok((Socket { fd: stream.into(), takes_files: true }, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn displays_can_have_every_name_that_libxcb_accepts() {
        let named = |name| Upstream::named(Some(name)).unwrap();
        for name in ["unix:7.2", "unix/:7.2", "[::1]:7.2", "::1:7.2", "tcp/localhost:7.2", ":7.2"] {
            let upstream = named(name);
            assert_eq!(
                (upstream.display.display, upstream.display.screen, upstream.is_local()),
                (7, 2, true),
                "{name}"
            );
        }
        let address = |name| format!("{:?}", named(name).display.connect_instruction().collect::<Vec<_>>());
        assert_eq!(address("unix:7"), "[Socket(\"/tmp/.X11-unix/X7\")]");
        assert_eq!(address("[::1]:7"), "[Hostname(\"::1\", 6007)]");
        assert!(!named("[2001:db8::1]:7").is_local());
    }

    #[test]
    fn a_display_can_be_named_by_its_sockets_path() {
        let path = std::env::temp_dir().join(format!("xqos-display-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let name = format!("{}.2", path.display());
        let upstream = Upstream::find(Some(&name)).unwrap();
        listener.accept().unwrap();
        assert_eq!((upstream.display.screen, upstream.path()), (2, path.to_str()));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Upstream::find(Some(&name)), Err(RelayError::NoDisplay(_))));
    }
}
