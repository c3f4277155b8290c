// SPDX-License-Identifier: MIT
//! The viewer against a real Xtigervnc: what is done in it happens on the server, what is drawn there arrives in it.

use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateWindowAux, EventMask, WindowClass};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use xqos_lab::rfb::{Area, Viewer};
use xqos_lab::server::{Kind, Server, Setup};

const SOON: Duration = Duration::from_secs(10);

fn viewed() -> (Server, Viewer, RustConnection) {
    let server = Setup { screen: (640, 480), ..Setup::stock(Kind::Xtigervnc) }.start().unwrap();
    let viewer = Viewer::connect(&server.viewer_socket().unwrap()).unwrap();
    let connection = server.connect().unwrap();
    (server, viewer, connection)
}

/// A window that no window manager would touch, of one colour.
fn window(connection: &RustConnection, place: Area, colour: u32) -> u32 {
    let window = connection.generate_id().unwrap();
    let root = connection.setup().roots[0].root;
    let values = CreateWindowAux::new().background_pixel(colour).override_redirect(1).event_mask(EventMask::KEY_PRESS);
    let (x, y) = (place.x as i16, place.y as i16);
    let class = WindowClass::INPUT_OUTPUT;
    connection.create_window(0, window, root, x, y, place.width, place.height, 0, class, 0, &values).unwrap();
    connection.map_window(window).unwrap();
    connection.sync().unwrap();
    window
}

#[test]
fn the_pointer_goes_where_the_viewer_points() {
    let (_server, viewer, connection) = viewed();
    let root = connection.setup().roots[0].root;
    for place in [(123, 234), (639, 479), (5, 7)] {
        viewer.point(place.0, place.1).unwrap();
        let limit = Instant::now() + SOON;
        loop {
            let pointer = connection.query_pointer(root).unwrap().reply().unwrap();
            let at = (pointer.root_x as u16, pointer.root_y as u16);
            if at == place {
                break;
            }
            assert!(Instant::now() < limit, "the pointer is at {at:?}, not {place:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn what_is_drawn_arrives_in_the_framebuffer_and_nothing_else_changes() {
    let (_server, viewer, connection) = viewed();
    assert_eq!(viewer.size(), (640, 480));
    let (place, beside) = (Area::new(100, 60, 50, 40), Area::new(150, 60, 50, 40));
    let (before, bytes) = (Instant::now(), viewer.bytes());
    assert_eq!(viewer.changed(place, before, Duration::from_millis(50)).unwrap(), None);
    window(&connection, place, 0x12_34_56);
    let arrived = viewer.changed(place, before, SOON).unwrap().expect("the window arrives");
    assert!(arrived > before && arrived <= Instant::now());
    for (x, y) in [(100, 60), (149, 99)] {
        assert_eq!(viewer.pixel(x, y), Some(0x12_34_56), "{x}, {y}");
    }
    assert_eq!(viewer.changed(beside, before, Duration::from_millis(100)).unwrap(), None);
    assert!(viewer.bytes() >= bytes + 4 * 50 * 40);
    assert_eq!(viewer.pixel(640, 0), None);
}

#[test]
fn a_key_reaches_the_window_below_the_pointer() {
    let (_server, viewer, connection) = viewed();
    let place = Area::new(0, 0, 640, 200);
    let window = window(&connection, place, 0x80_80_80);
    viewer.point(20, 20).unwrap();
    viewer.key(u32::from(b'a'), true).unwrap();
    viewer.key(u32::from(b'a'), false).unwrap();
    let limit = Instant::now() + SOON;
    loop {
        if let Some(x11rb::protocol::Event::KeyPress(event)) = connection.poll_for_event().unwrap() {
            assert_eq!((event.event, event.root_x, event.root_y), (window, 20, 20));
            return;
        }
        assert!(Instant::now() < limit, "no key arrived");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_server_that_ends_ends_the_viewer_with_a_sentence() {
    let (server, viewer, _connection) = viewed();
    drop(server);
    let error = viewer.changed(Area::new(0, 0, 1, 1), Instant::now(), SOON).unwrap_err().to_string();
    assert!(error.contains("picture ended"), "{error}");
    assert!(Setup::stock(Kind::Xvfb).start().unwrap().viewer_socket().is_none());
}
