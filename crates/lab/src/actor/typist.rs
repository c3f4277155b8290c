// SPDX-License-Identifier: MIT
//! A user at the keyboard: presses keys and notes when the screen changes, on the machine of the X server.
//!
//! XTEST injects the keys, and damage of the root window shows the changes. A change smaller than a letter is taken for
//! a blinking cursor and ignored. A stroke is over when nothing has changed for the given time.

use super::{Ready, say};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::thread::sleep;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, InputFocus, KEY_PRESS_EVENT, KEY_RELEASE_EVENT,
    MOTION_NOTIFY_EVENT, MapState, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Longest wait for the answer to a stroke.
const LIMIT: Duration = Duration::from_secs(20);

/// A key or a button, with a modifier that is held down at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stroke {
    /// Key symbol of the modifier.
    pub with: Option<u32>,
    pub what: KeyOrButton,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyOrButton {
    /// Key symbol of a key that is pressed and released.
    Key(u32),
    /// Button number. With a modifier, the button is pressed and stays down; without a modifier, it is released.
    Button(u8),
}

/// A stroke that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strokes {
    /// A stroke to make before the measurement, and how often to make it.
    pub before: Option<(u32, Stroke)>,
    pub stroke: Stroke,
    /// Undoes the stroke after each repetition; not measured.
    pub back: Option<Stroke>,
    pub times: u32,
    /// Smallest area of a change that counts, in pixels: larger than a blinking cursor, but no larger than a letter.
    pub least_area: u32,
}

/// Milliseconds until the first and the last change that a stroke caused.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResponseTimes {
    pub first_ms: f64,
    pub last_ms: f64,
}

struct Desk {
    connection: RustConnection,
    root: Window,
    first_code: u8,
    /// Key symbols of each keycode.
    symbols: Vec<Vec<u32>>,
    least_area: u32,
}

pub(super) fn perform(strokes: Strokes, silence: Duration) -> Result<()> {
    let desk = Desk::sit_down(strokes.least_area)?;
    say(&Ready { window: 0 })?;
    if let Some((times, stroke)) = strokes.before {
        (0..times).try_for_each(|_| desk.press(stroke))?;
    }
    desk.settle(silence)?;
    let mut answered: Vec<Option<ResponseTimes>> = Vec::new();
    for _ in 0..strokes.times {
        let at = Instant::now();
        desk.press(strokes.stroke)?;
        let [first, last] = desk.settle(silence)?;
        let ms = |change: Option<Instant>| change.map(|change| change.duration_since(at).as_secs_f64() * 1e3);
        answered.push(ms(first).zip(ms(last)).map(|(first_ms, last_ms)| ResponseTimes { first_ms, last_ms }));
        if let Some(back) = strokes.back {
            desk.press(back)?;
            desk.settle(silence)?;
        }
    }
    say(&answered)
}

impl Desk {
    /// Puts the keyboard focus and the pointer on the largest visible window.
    fn sit_down(least_area: u32) -> Result<Desk> {
        let (connection, screen) = xqos_client::connect(None)?;
        let setup = connection.setup();
        let (root, first_code) = (setup.roots[screen].root, setup.min_keycode);
        let count = setup.max_keycode - first_code + 1;
        let map = connection.get_keyboard_mapping(first_code, count)?.reply()?;
        let symbols = map.keysyms.chunks(map.keysyms_per_keycode.into()).map(<[u32]>::to_vec).collect();
        let desk = Desk { connection, root, first_code, symbols, least_area };
        let [window, x, y] = desk.largest()?;
        let connection = &desk.connection;
        connection.xtest_get_version(2, 2)?.reply()?;
        connection.damage_query_version(1, 1)?.reply()?;
        let middle = |value: u32| i16::try_from(value).unwrap_or(0);
        connection.xtest_fake_input(MOTION_NOTIFY_EVENT, 0, 0, root, middle(x), middle(y), 0)?;
        connection.set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME)?;
        connection.damage_create(connection.generate_id()?, root, damage::ReportLevel::RAW_RECTANGLES)?;
        connection.get_input_focus()?.reply()?;
        Ok(desk)
    }

    /// The largest visible window and the coordinates of its middle.
    fn largest(&self) -> Result<[u32; 3]> {
        let connection = &self.connection;
        let mut largest = (0, [0; 3]);
        for window in connection.query_tree(self.root)?.reply()?.children {
            // A window can be destroyed between these requests.
            let Ok(attributes) = connection.get_window_attributes(window)?.reply() else { continue };
            let Ok(place) = connection.get_geometry(window)?.reply() else { continue };
            let area = u32::from(place.width) * u32::from(place.height);
            if attributes.map_state == MapState::VIEWABLE && area > largest.0 {
                let middle = |at: i16, size: u16| (i32::from(at) + i32::from(size) / 2).max(0) as u32;
                largest = (area, [window, middle(place.x, place.width), middle(place.y, place.height)]);
            }
        }
        if largest.0 == 0 {
            bail!("no window is visible");
        }
        Ok(largest.1)
    }

    fn code(&self, symbol: u32) -> Result<u8> {
        let place = self.symbols.iter().position(|symbols| symbols.first() == Some(&symbol));
        let place = place.with_context(|| format!("no key has symbol {symbol:#x}"))?;
        Ok(self.first_code + place as u8)
    }

    fn press(&self, Stroke { with, what }: Stroke) -> Result<()> {
        let fake = |kind, detail| self.connection.xtest_fake_input(kind, detail, 0, self.root, 0, 0, 0).map(drop);
        let with = with.map(|symbol| self.code(symbol)).transpose()?;
        with.map(|code| fake(KEY_PRESS_EVENT, code)).transpose()?;
        match what {
            KeyOrButton::Key(symbol) => {
                let code = self.code(symbol)?;
                fake(KEY_PRESS_EVENT, code)?;
                fake(KEY_RELEASE_EVENT, code)?;
            }
            KeyOrButton::Button(number) if with.is_some() => fake(BUTTON_PRESS_EVENT, number)?,
            KeyOrButton::Button(number) => fake(BUTTON_RELEASE_EVENT, number)?,
        }
        with.map(|code| fake(KEY_RELEASE_EVENT, code)).transpose()?;
        Ok(self.connection.flush()?)
    }

    /// Waits until nothing has changed for `silence`. Returns the times of the first and the last change.
    fn settle(&self, silence: Duration) -> Result<[Option<Instant>; 2]> {
        let begun = Instant::now();
        let mut changes = [None; 2];
        loop {
            while let Some(event) = self.connection.poll_for_event()? {
                let is_change = |area: &damage::NotifyEvent| {
                    u32::from(area.area.width) * u32::from(area.area.height) >= self.least_area
                };
                if matches!(&event, Event::DamageNotify(area) if is_change(area)) {
                    let now = Some(Instant::now());
                    changes = [changes[0].or(now), now];
                }
            }
            let since = changes[1].unwrap_or(begun);
            if since.elapsed() >= silence || begun.elapsed() >= LIMIT {
                return Ok(changes);
            }
            sleep(LOOK_AGAIN);
        }
    }
}
