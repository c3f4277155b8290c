// SPDX-License-Identifier: MIT
//! A server that runs as an ordinary user, and each kind of client that sends requests to it.

use super::connect::{Identity, connect_as};
use crate::fixture::{Fixture, setup, uses_libc_host};
use crate::wire::{Authorization, Wire, ask_control, authority_entry, code, display_number, socket_path, tcp_socket};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use xqos_abi::control::paths;
use xqos_abi::{
    ByteOrder, ClientEntry, ClientList, EXTENSION_NAME, Label, Paced, Request, ServerInfo, Setting, SettingKind,
    Subject,
};
use xqos_lab::folder::Folder;
use xqos_lab::program;
use xqos_lab::server::ServerKind;

const PATIENCE: Duration = Duration::from_secs(60);

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Error(u8),
    /// The asker had no way to send the request.
    Unseen,
}

/// A served Xvfb that runs as a user other than root and requires a cookie from every client.
#[derive(Debug)]
pub struct TestServer {
    server: Fixture,
    _folder: Folder,
    trusted: Authorization,
    untrusted: Authorization,
    /// The server's user id in its own namespace.
    user: u32,
    /// The major opcode of XQOS, if the server has the extension.
    major: Option<u8>,
}

/// User ids that do not exist on this machine, different in each test process.
fn user(at: u32) -> u32 {
    1_000_000 + 4 * std::process::id() + at
}

fn server_user() -> u32 {
    user(0)
}

/// The identity that the kernel reports for each kind of client.
fn identity_of(kind: &str) -> Identity {
    let (user, is_sandboxed) = match kind {
        "server's user" | "untrusted" => (server_user(), false),
        "sandboxed" => (server_user(), true),
        "root" | "remote" => (0, false),
        "another user" => (user(1), false),
        "sandbox's root" => (user(1), true),
        "no client" => (user(2), false),
        "stranger" => (user(3), false),
        _ => panic!("docs/access.md: {kind:?} is no kind of client"),
    };
    Identity { user, is_sandboxed }
}

impl TestServer {
    /// Returns `None` if one kind of client cannot be created on this machine.
    pub fn start() -> Option<TestServer> {
        let user = server_user();
        TestServer::start_by(&format!("setpriv --reuid={user} --regid={user} --clear-groups"), user)
    }

    /// Starts a server as root in its own user namespace, in which no other user has an id.
    pub fn start_in_namespace() -> Option<TestServer> {
        TestServer::start_by("unshare --user --map-root-user", 0)
    }

    /// `command` changes the user and then runs the server.
    fn start_by(command: &str, user: u32) -> Option<TestServer> {
        let folder = Folder::create().unwrap();
        fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
        let nowhere = connect_as(identity_of("sandboxed"), &folder.path("no socket"));
        // This error shows that a process could enter the sandbox.
        nowhere.err().filter(|error| error.kind() == io::ErrorKind::NotFound)?;
        let cookie = folder.path("cookie");
        let trusted = Authorization::cookie(&[7; 16]);
        fs::write(&cookie, authority_entry(&trusted.name, &trusted.data)).unwrap();
        let mut wanted = setup(ServerKind::Xvfb);
        // Copy the module to where that user can read it.
        let module = wanted.module.as_mut().unwrap();
        let copy = folder.path("module.so");
        fs::copy(&module.path, &copy).unwrap();
        module.path = copy;
        write_program(&folder.path("Xvfb"), command);
        let path = format!("{}:{}", folder.path("").display(), std::env::var("PATH").unwrap());
        wanted.environment.push(("PATH".into(), path.into()));
        wanted.arguments.extend(["-listen", "tcp", "+extension", "SECURITY", "-auth"].map(Into::into));
        wanted.arguments.push(cookie.into());
        let server = Fixture::start(&wanted);
        let root = connect_as(identity_of("root"), &socket_path(server.display())).unwrap();
        let mut root = Wire::try_connect(root, ByteOrder::NATIVE, &trusted).unwrap();
        let major = root.extension(EXTENSION_NAME).map(|extension| extension.major);
        let untrusted = root.untrusted_cookie()?;
        Some(TestServer { server, _folder: folder, trusted, untrusted, user, major })
    }

    pub fn asker(&self, kind: &str) -> Asker {
        let identity = identity_of(kind);
        let has_control = uses_libc_host() && kind != "remote";
        let authorization = if kind == "untrusted" { &self.untrusted } else { &self.trusted };
        Asker {
            kind: kind.to_owned(),
            wire: (kind != "no client").then(|| self.client(kind, authorization)),
            control: has_control.then(|| self.control(identity)),
            major: self.major,
        }
    }

    fn client(&self, kind: &str, authorization: &Authorization) -> Wire {
        let stream = match kind {
            "remote" => tcp_socket(self.server.display()),
            _ => connect_as(identity_of(kind), &socket_path(self.server.display())).unwrap(),
        };
        Wire::try_connect(stream, ByteOrder::NATIVE, authorization).unwrap()
    }

    fn control(&self, identity: Identity) -> UnixStream {
        let display = display_number(self.server.display());
        let mut streams =
            paths(display.into(), self.user).into_iter().filter_map(|path| connect_as(identity, &path).ok());
        let stream = streams.next().expect("the server listens for control");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Another client of the asker's user, outside any sandbox; a stranger's client if the asker has no client.
    pub fn second_of(&self, asker: &Asker) -> Wire {
        let kind = match asker.kind.as_str() {
            "untrusted" | "sandboxed" => "server's user",
            "sandbox's root" => "another user",
            "no client" => "stranger",
            kind => kind,
        };
        self.client(kind, &self.trusted)
    }

    /// A client whose user is not the user of any asker.
    pub fn stranger(&self) -> Wire {
        self.client("stranger", &self.trusted)
    }
}

/// Writes an Xvfb wrapper that first becomes the server's user.
fn write_program(path: &Path, command: &str) {
    let real = program::find("Xvfb").unwrap();
    xqos_testkit::executable(path, format!("#!/bin/sh\nexec {command} {} \"$@\"\n", real.display()).as_bytes());
}

/// A client, and its connection to the control socket if it sends its requests there.
#[derive(Debug)]
pub struct Asker {
    kind: String,
    wire: Option<Wire>,
    control: Option<UnixStream>,
    major: Option<u8>,
}

impl Asker {
    /// The first resource id of the asker.
    pub fn base(&self) -> Option<u32> {
        self.wire.as_ref().map(|wire| wire.base)
    }

    pub fn ask(&mut self, request: Request) -> Answer {
        self.try_ask(request).unwrap_or_else(|| panic!("{}: the connection was closed", self.kind))
    }

    /// Returns `None` if the server closed the connection.
    pub fn try_ask(&mut self, request: Request) -> Option<Answer> {
        if let Some(control) = &mut self.control {
            return Some(
                ask_control(control, request)?.map_or_else(|error| Answer::Error(error.code), |_| Answer::Done),
            );
        }
        let wire = self.wire.as_mut()?;
        let sees = wire.extension(EXTENSION_NAME).is_some();
        let Some(major) = self.major else {
            assert!(!sees, "there is an extension");
            return Some(Answer::Unseen);
        };
        let answer = wire.tell_or_ask(&request.encode(major));
        Some(match answer.map_err(|error| error.code) {
            Err(code::BAD_REQUEST) if !sees => Answer::Unseen,
            Err(code) => Answer::Error(code),
            Ok(()) => Answer::Done,
        })
    }

    /// The reply to a request that the asker may make.
    fn reply(&mut self, request: Request) -> Vec<u8> {
        if let Some(control) = &mut self.control {
            return ask_control(control, request).expect("an answer").expect("no error");
        }
        let bytes = request.encode(self.major.expect("an extension"));
        self.wire.as_mut().unwrap().ask(&bytes).expect("no error")
    }

    pub fn server_info(&mut self) -> ServerInfo {
        ServerInfo::decode(&self.reply(Request::GetServerInfo), ByteOrder::NATIVE).unwrap()
    }

    /// All settings of a client as text.
    pub fn settings_of(&mut self, base: u32) -> String {
        let list = ClientList::decode(&self.reply(Request::ListClients), ByteOrder::NATIVE).unwrap();
        let entry: &ClientEntry = list.clients.iter().find(|entry| entry.client == base).expect("a client");
        let of_group = (entry.group_name, entry.group_weight, entry.group_cap_ppm, entry.group_budget_us);
        format!("{:?}", (entry.weight, entry.fixed_priority, entry.budget_us, entry.period_us, of_group))
    }

    /// Undoes the settings of a client and of this connection with the rights of `root`.
    pub fn undo(&mut self, client: u32, root: &mut Asker) {
        for request in [
            Subject::Client(client).clear(SettingKind::Reservation),
            Subject::Client(client).set(Setting::Weight(100)),
            Subject::Client(client).set(Setting::Priority(0)),
            Subject::Client(client).set(Setting::Paced(Paced::AsAll)),
            Subject::Client(client).set(Setting::Group(Label::default())),
        ] {
            assert_eq!(root.ask(request), Answer::Done);
        }
        self.ask(Request::StopTrace);
    }
}
