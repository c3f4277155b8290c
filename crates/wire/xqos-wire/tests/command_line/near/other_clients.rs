// SPDX-License-Identifier: MIT
//! A program behind `xqos near` gets the server's answers although other clients change its windows and the monitors,
//! and although the server refuses some of its requests.

use super::Proxy;
use crate::fixture::{Folder, Server};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::randr::{ConnectionExt as _, MonitorInfo};
use x11rb::protocol::xproto::{
    ChangeWindowAttributesAux, ConfigureWindowAux, ConnectionExt as _, CreateWindowAux, EventMask, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// Creates a window that selects these events. Returns its ID, and whether the server has accepted it.
fn window(client: &RustConnection, parent: u32, (depth, width): (u8, u16), events: EventMask) -> (u32, bool) {
    let (id, aux) = (client.generate_id().unwrap(), CreateWindowAux::new().event_mask(events));
    let made = client.create_window(depth, id, parent, 3, 4, width, 40, 1, WindowClass::COPY_FROM_PARENT, 0, &aux);
    (id, made.unwrap().check().is_ok())
}

/// The successful replies about a window.
fn answers(client: &RustConnection, root: u32, id: u32) -> impl PartialEq + std::fmt::Debug {
    let geometry = client.get_geometry(id).unwrap().reply().ok();
    let position = client.translate_coordinates(id, root, 0, 0).unwrap().reply().ok();
    let property = client.get_property(false, id, 39u32, 31u32, 0, 100).unwrap().reply().ok();
    (
        geometry.map(|it| (it.root, it.depth, [it.x, it.y], [it.width, it.height, it.border_width])),
        position.map(|it| (it.child, it.dst_x, it.dst_y)),
        property.map(|it| it.type_),
    )
}

fn sync(client: &RustConnection) {
    client.get_input_focus().unwrap().reply().unwrap();
}

/// Ends the proxy, and checks that it has found no difference between its answers and the server's.
fn end(proxy: Proxy) {
    proxy.running.signal("TERM");
    let told = proxy.running.ended().with(128 + 15);
    assert!(!told.err.contains("unlike the one given here"), "{told:#?}");
}

#[test]
fn changes_of_windows_by_other_clients_are_seen() {
    let changes: [fn(&RustConnection, u32, u32); 6] = [
        |other, _, id| _ = other.configure_window(id, &ConfigureWindowAux::new().width(77).height(66)).unwrap(),
        |other, _, id| _ = other.configure_window(id, &ConfigureWindowAux::new().x(70).y(60)).unwrap(),
        |other, root, id| _ = other.reparent_window(id, root, 9, 9).unwrap(),
        |other, _, id| _ = other.map_window(id).unwrap(),
        |other, _, id| _ = other.destroy_subwindows(id).unwrap(),
        |other, _, id| _ = other.destroy_window(id).unwrap(),
    ];
    for options in [&["--quiet"][..], &["--quiet", "--relaxed"]] {
        let (server, folder) = (Server::stock(), Folder::new("near-others"));
        let proxy = Proxy::start(&server, &folder, options);
        let (other, screen) = RustConnection::connect(Some(&server.display)).unwrap();
        let root = other.setup().roots[screen].root;
        for events in [EventMask::NO_EVENT, EventMask::STRUCTURE_NOTIFY] {
            for change in changes {
                for is_child_changed in [false, true] {
                    let client = proxy.client();
                    let (parent, _) = window(&client, root, (0, 50), events);
                    let (child, _) = window(&client, parent, (0, 20), events);
                    // The second answer may be the proxy's own.
                    for id in [parent, child].repeat(2) {
                        assert_eq!(answers(&client, root, id), answers(&other, root, id));
                    }
                    // The server executes the requests that the proxy has answered before the change.
                    sync(&client);
                    change(&other, root, if is_child_changed { child } else { parent });
                    sync(&other);
                    sync(&client);
                    for id in [parent, child] {
                        assert_eq!(answers(&client, root, id), answers(&other, root, id), "{options:?} {events:?}");
                    }
                    sync(&client);
                    let is_silent = client.poll_for_event().unwrap().is_none();
                    assert!(is_silent || events != EventMask::NO_EVENT, "the proxy forwards selected events");
                }
            }
        }
        end(proxy);
    }
}

#[test]
fn a_refused_drawable_has_no_geometry() {
    let (server, folder) = (Server::stock(), Folder::new("near-refused"));
    let proxy = Proxy::start(&server, &folder, &["--quiet", "--relaxed"]);
    let client = proxy.client();
    let root = client.setup().roots[0].root;
    for kind in [(17, 50), (0, 0), (32, 50), (24, 50)] {
        let (id, is_accepted) = window(&client, root, kind, EventMask::STRUCTURE_NOTIFY);
        assert_eq!(client.get_geometry(id).unwrap().reply().is_ok(), is_accepted, "a window {kind:?}");
    }
    for (depth, drawable, width) in [(5, root, 20), (24, root, 0), (24, 0x777, 20), (1, root, 20)] {
        let id = client.generate_id().unwrap();
        // The question follows the request immediately.
        let made = client.create_pixmap(depth, id, drawable, width, 20).unwrap();
        let geometry = client.get_geometry(id).unwrap().reply();
        assert_eq!(geometry.is_ok(), made.check().is_ok(), "a pixmap {depth} {drawable} {width}");
    }
    end(proxy);
}

#[test]
fn monitors_of_other_clients_are_seen() {
    let (server, folder) = (Server::stock(), Folder::new("near-monitors"));
    let proxy = Proxy::start(&server, &folder, &["--quiet"]);
    let ((other, _), client) = (RustConnection::connect(Some(&server.display)).unwrap(), proxy.client());
    let root = client.setup().roots[0].root;
    for client in [&client, &other] {
        client.randr_query_version(1, 5).unwrap().reply().unwrap();
    }
    let select = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
    client.change_window_attributes(root, &select).unwrap().check().unwrap();
    let monitors = |client: &RustConnection| {
        let monitors = client.randr_get_monitors(root, true).unwrap().reply().unwrap().monitors;
        monitors.iter().map(|it| (it.name, it.width, it.height)).collect::<Vec<_>>()
    };
    for number in 0..4 {
        assert_eq!(monitors(&client), monitors(&other));
        sync(&client);
        let name = other.intern_atom(false, format!("PART-{number}").as_bytes()).unwrap().reply().unwrap().atom;
        let part = MonitorInfo { name, width: 300, height: 200, ..MonitorInfo::default() };
        other.randr_set_monitor(root, part).unwrap().check().unwrap();
        let event = client.wait_for_event().unwrap();
        assert!(matches!(event, Event::ConfigureNotify(event) if event.window == root), "{event:?}");
        assert_eq!(monitors(&client).len(), 2 + number);
    }
    end(proxy);
}
