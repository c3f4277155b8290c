// SPDX-License-Identifier: MIT
//! Tests of servers that this build does not know: copies of an installed server with another release number or without
//! a symbol.

use crate::busy::Busy;
use crate::fixture::{Fixture, SOON, entry, in_parallel, is_missing, setup, wait_for};
use std::fs;
use std::path::{Path, PathBuf};
use xqos_lab::folder::Folder;
use xqos_lab::server::ServerKind;

/// The release number of the installed server, as it appears in the program.
fn release_of(kind: ServerKind) -> u32 {
    use x11rb::connection::Connection;
    let fixture = Fixture::start(&setup(kind));
    fixture.control().unwrap().connection().unwrap().setup().release_number
}

/// Copies Xvfb into a folder, with all occurrences of some bytes replaced.
fn changed(folder: &Folder, from: &[u8], to: &[u8]) -> PathBuf {
    assert_eq!(from.len(), to.len());
    let path = std::env::var("PATH").unwrap();
    let program = path.split(':').map(|folder| PathBuf::from(folder).join("Xvfb")).find(|path| path.exists()).unwrap();
    let mut bytes = fs::read(program).unwrap();
    let places: Vec<usize> = (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "nothing to change");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    xqos_testkit::executable(&folder.path("Xvfb"), &bytes);
    folder.path("")
}

fn start(folder: &Path, host: Option<&str>) -> Fixture {
    let mut setup = setup(ServerKind::Xvfb);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    setup.environment.push(("PATH".into(), path.into()));
    if let Some(host) = host {
        setup.environment.push(("XQOS_HOST".into(), host.into()));
    }
    Fixture::start(&setup)
}

fn assert_serves(server: &Fixture, is_below: bool) {
    let control = server.control().unwrap();
    assert_eq!(control.is_served_through_libc(), Some(is_below));
    assert!(control.server_info().unwrap().armed);
    let busy = [Busy::start(server), Busy::start(server)];
    let mut wire = server.native();
    wait_for("all clients are served", SOON, || {
        wire.sync();
        busy.iter().all(|busy| entry(&control, busy.base).server_time_ns > 0)
    });
}

#[test]
fn a_later_release_with_the_same_client_record_is_served_by_the_dix_host() {
    let _turn = in_parallel();
    if is_missing(ServerKind::Xvfb) {
        return;
    }
    let folder = Folder::create().unwrap();
    let programs = changed(&folder, &release_of(ServerKind::Xvfb).to_le_bytes(), &12_601_000_u32.to_le_bytes());
    assert_serves(&start(&programs, Some("dix")), false);
}

#[test]
fn a_release_with_another_client_record_is_served_through_libc() {
    let _turn = in_parallel();
    if is_missing(ServerKind::Xvfb) {
        return;
    }
    let folder = Folder::create().unwrap();
    let programs = changed(&folder, &release_of(ServerKind::Xvfb).to_le_bytes(), &11_900_000_u32.to_le_bytes());
    let server = start(&programs, None);
    assert_serves(&server, true);
    let said = server.xqos_log();
    assert!(said.contains("11900000") && said.contains("served through libc"), "{said}");
    drop(server);
    let server = start(&programs, Some("dix"));
    let info = server.info();
    assert!(!info.armed && info.reason.contains("11900000"), "{}", info.reason);
}

/// The Xorg of XLibre is such a server.
#[test]
fn a_server_that_lacks_one_symbol_is_served_through_libc() {
    let _turn = in_parallel();
    if is_missing(ServerKind::Xvfb) {
        return;
    }
    let folder = Folder::create().unwrap();
    let programs = changed(&folder, b"\0isItTimeToYield\0", b"\0isItTimeToYielD\0");
    assert_serves(&start(&programs, None), true);
}
