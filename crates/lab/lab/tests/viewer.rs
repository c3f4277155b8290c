// SPDX-License-Identifier: MIT
//! Tests the viewer with a real Xtigervnc: the server's pointer follows the viewer's.

use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt;
use xqos_lab::server::{ServerKind, Setup};
use xqos_lab::viewer::Viewer;

const SOON: Duration = Duration::from_secs(60);

#[test]
fn the_servers_pointer_follows_the_viewer_until_the_server_ends() {
    let server = Setup { screen: (640, 480), ..Setup::stock(ServerKind::Xtigervnc) }.start().unwrap();
    let viewer = Viewer::connect(&server.viewer_socket().unwrap()).unwrap();
    let connection = server.connect().unwrap();
    let root = connection.setup().roots[0].root;
    for place in [(123, 234), (639, 479), (5, 7)] {
        viewer.point(place.0, place.1).unwrap();
        xqos_testkit::wait_for(&format!("the pointer is at {place:?}"), SOON, || {
            let pointer = connection.query_pointer(root).unwrap().reply().unwrap();
            (pointer.root_x as u16, pointer.root_y as u16) == place
        });
    }
    drop(server);
    let error = viewer.point(1, 1).unwrap_err().to_string();
    assert!(error.contains("takes no more input"), "{error}");
    assert!(Setup::stock(ServerKind::Xvfb).start().unwrap().viewer_socket().is_none());
}
