// SPDX-License-Identifier: MIT
//! Requests that select the events by which the server reports changes.

use super::Watch;
use crate::bytes::{NATIVE, request};
use crate::opcodes::op;

/// The requests that select an extension's change events.
pub fn selections(watch: Watch, major: u8, roots: &[u32]) -> Vec<Vec<u8>> {
    match watch {
        Watch::Keys => vec![keyboard_events(major)],
        Watch::Devices => roots.iter().map(|&root| device_events(major, root)).collect(),
        Watch::Screens => roots.iter().flat_map(|&root| [screen_events(major, root), root_events(root)]).collect(),
        Watch::Fonts => Vec::new(),
    }
}

fn screen_events(major: u8, root: u32) -> Vec<u8> {
    /// The events ScreenChange, CrtcChange, OutputChange, OutputProperty, ProviderChange, ProviderProperty and
    /// ResourceChange.
    const EVENTS: u16 = 0x7f;
    let mut bytes = request(NATIVE, major, 4, &[root, 0]);
    NATIVE.put_u16(&mut bytes, 8, EVENTS);
    bytes
}

/// Selects the root window's ConfigureNotify, which reports monitors.
fn root_events(root: u32) -> Vec<u8> {
    const EVENT_MASK: u32 = 1 << 11;
    const STRUCTURE_NOTIFY: u32 = 1 << 17;
    request(NATIVE, op::CHANGE_WINDOW_ATTRIBUTES_REQUEST, 0, &[root, EVENT_MASK, STRUCTURE_NOTIFY])
}

fn device_events(major: u8, root: u32) -> Vec<u8> {
    /// The events DeviceChanged, Hierarchy and Property, for all devices.
    const EVENTS: u32 = (1 << 1) | (1 << 11) | (1 << 12);
    let mut bytes = request(NATIVE, major, 46, &[root, 0, 0, EVENTS]);
    NATIVE.put_u16(&mut bytes, 8, 1);
    NATIVE.put_u16(&mut bytes, 14, 1);
    // The mask is an array of bytes, independent of the byte order.
    bytes[16..20].copy_from_slice(&EVENTS.to_le_bytes());
    bytes
}

/// Selects all events of the core keyboard except state changes.
fn keyboard_events(major: u8) -> Vec<u8> {
    const CORE_KEYBOARD: u16 = 0x100;
    /// The events NewKeyboard, Map, Controls, IndicatorMap, Names, CompatMap and ExtensionDevice.
    const KINDS: u16 = 1 | (1 << 1) | (1 << 3) | (1 << 5) | (1 << 6) | (1 << 7) | (1 << 11);
    const ALL_MAP_PARTS: u16 = 0xff;
    let mut bytes = request(NATIVE, major, 1, &[0, 0, 0]);
    for (at, value) in [(4, CORE_KEYBOARD), (6, KINDS), (8, 0), (10, KINDS), (12, ALL_MAP_PARTS), (14, ALL_MAP_PARTS)] {
        NATIVE.put_u16(&mut bytes, at, value);
    }
    bytes
}
