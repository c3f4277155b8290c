// SPDX-License-Identifier: MIT
//! Facts about clients from their windows: classes, and which clients are active, fullscreen or iconic.
//!
//! [`WindowFacts::new`] walks the window tree once, and [`WindowFacts::take_event`] keeps the facts current. Windows
//! may disappear meanwhile, and errors for them are ignored. Only windows with a class or a state are kept.

use crate::error::Result;
use crate::windows::{children, classes, properties};
use std::collections::{BTreeMap, BTreeSet};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt, EventMask, GetPropertyReply, Window,
};
use xqos_rules::facts::{ClientFacts, State, bounded};

x11rb::atom_manager! {
    Atoms: AtomsCookie {
        WM_STATE,
        _NET_WM_STATE,
        _NET_WM_STATE_FULLSCREEN,
        _NET_ACTIVE_WINDOW,
    }
}

/// ICCCM 4.1.3.1.
const ICONIC_STATE: u32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WindowState {
    class: Vec<String>,
    fullscreen: bool,
    /// `None` if no window manager sets it.
    iconic: Option<bool>,
}

#[derive(Debug)]
pub struct WindowFacts {
    atoms: Atoms,
    roots: Vec<Window>,
    id_mask: u32,
    windows: BTreeMap<Window, WindowState>,
    /// The active window of each root, if a window manager reports it.
    active: BTreeMap<Window, Window>,
    is_watched: bool,
}

impl WindowFacts {
    /// Reads the current state. `is_watched`: also select events for changes.
    pub fn new(connection: &impl Connection, is_watched: bool) -> Result<WindowFacts> {
        let roots: Vec<Window> = connection.setup().roots.iter().map(|screen| screen.root).collect();
        let mut facts = WindowFacts {
            atoms: Atoms::new(connection)?.reply()?,
            id_mask: connection.setup().resource_id_mask,
            windows: BTreeMap::new(),
            active: BTreeMap::new(),
            roots: roots.clone(),
            is_watched,
        };
        // Select events before the first query, so that no change is missed.
        let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
        if is_watched {
            for &root in &roots {
                connection.change_window_attributes(root, &ChangeWindowAttributesAux::new().event_mask(mask))?;
            }
        }
        let mut level = children(connection, &roots)?;
        let mut is_top = true;
        while !level.is_empty() {
            facts.update(connection, &level, is_top)?;
            level = children(connection, &level)?;
            is_top = false;
        }
        facts.update_active(connection)?;
        Ok(facts)
    }

    /// Takes an event. Returns the clients with facts that may have changed.
    pub fn take_event(&mut self, connection: &impl Connection, event: &Event) -> Result<BTreeSet<u32>> {
        match event {
            Event::CreateNotify(event) => self.update(connection, &[event.window], true),
            Event::MapNotify(event) => self.update(connection, &[event.window], true),
            Event::DestroyNotify(event) => {
                let gone = self.windows.remove(&event.window);
                Ok(gone.map(|_| self.base_of(event.window)).into_iter().collect())
            }
            Event::PropertyNotify(event) if event.atom == self.atoms._NET_ACTIVE_WINDOW => {
                self.update_active(connection)
            }
            Event::PropertyNotify(event) if self.is_of_interest(event.atom) && !self.roots.contains(&event.window) => {
                self.update(connection, &[event.window], false)
            }
            _ => Ok(BTreeSet::new()),
        }
    }

    pub fn forget(&mut self, client: u32) {
        let id_mask = self.id_mask;
        self.windows.retain(|window, _| window & !id_mask != client);
    }

    pub fn add_to(&self, client: u32, facts: &mut ClientFacts) {
        let windows: Vec<_> = self.windows.range(client..=client | self.id_mask).map(|(_, window)| window).collect();
        let classes: BTreeSet<&String> = windows.iter().flat_map(|window| &window.class).collect();
        if !classes.is_empty() {
            facts.class = Some(classes.into_iter().cloned().collect());
        }
        if windows.is_empty() {
            return;
        }
        facts.states.set(State::Fullscreen, windows.iter().any(|window| window.fullscreen));
        let iconic: Vec<bool> = windows.iter().filter_map(|window| window.iconic).collect();
        if !iconic.is_empty() {
            facts.states.set(State::Iconic, iconic.iter().all(|&iconic| iconic));
        }
        if !self.active.is_empty() {
            facts.states.set(State::Active, self.active.values().any(|&window| self.base_of(window) == client));
        }
    }

    fn base_of(&self, window: Window) -> u32 {
        window & !self.id_mask
    }

    fn is_of_interest(&self, atom: Atom) -> bool {
        atom == u32::from(AtomEnum::WM_CLASS) || atom == self.atoms.WM_STATE || atom == self.atoms._NET_WM_STATE
    }

    /// Reads the properties of windows. `are_tops`: also select events of windows without a class, which may get one.
    fn update(&mut self, connection: &impl Connection, windows: &[Window], are_tops: bool) -> Result<BTreeSet<u32>> {
        if are_tops {
            self.select_events(connection, windows)?;
        }
        let classes = properties(connection, windows, AtomEnum::WM_CLASS.into())?;
        let managed = properties(connection, windows, self.atoms.WM_STATE)?;
        let states = properties(connection, windows, self.atoms._NET_WM_STATE)?;
        let (mut changed, mut found) = (BTreeSet::new(), Vec::new());
        for (((&window, class), managed), state) in windows.iter().zip(classes).zip(managed).zip(states) {
            let found_state = self.window_state(class, managed, state);
            if found_state == WindowState::default() && !self.windows.contains_key(&window) {
                continue;
            }
            let before = self.windows.insert(window, found_state);
            if before.is_none() {
                found.push(window);
            }
            if before.as_ref() != self.windows.get(&window) {
                changed.insert(self.base_of(window));
            }
        }
        if !are_tops {
            self.select_events(connection, &found)?;
        }
        Ok(changed)
    }

    /// Selects events of these windows, if changes are watched. Errors for windows that are gone are ignored.
    fn select_events(&self, connection: &impl Connection, windows: &[Window]) -> Result<()> {
        let mask = EventMask::PROPERTY_CHANGE | EventMask::STRUCTURE_NOTIFY;
        for &window in windows.iter().filter(|_| self.is_watched) {
            let asked =
                connection.change_window_attributes(window, &ChangeWindowAttributesAux::new().event_mask(mask))?;
            asked.ignore_error();
        }
        Ok(connection.flush()?)
    }

    fn window_state(&self, class: Property, managed: Property, state: Property) -> WindowState {
        let fullscreen = self.atoms._NET_WM_STATE_FULLSCREEN;
        let has = |property: Property, wanted: u32| {
            property.is_some_and(|property| property.value32().into_iter().flatten().any(|value| value == wanted))
        };
        let state_of = |property: GetPropertyReply| property.value32()?.next();
        let class_of = |part: &[u8]| bounded(&String::from_utf8_lossy(part)).into_owned();
        WindowState {
            class: class.iter().flat_map(|property| classes(&property.value)).map(class_of).collect(),
            fullscreen: has(state, fullscreen),
            iconic: managed.and_then(state_of).map(|state| state == ICONIC_STATE),
        }
    }

    fn update_active(&mut self, connection: &impl Connection) -> Result<BTreeSet<u32>> {
        let found = properties(connection, &self.roots, self.atoms._NET_ACTIVE_WINDOW)?;
        let window = |property: Property| property?.value32()?.next();
        let active: BTreeMap<Window, Window> =
            self.roots.iter().zip(found).filter_map(|(&root, property)| Some((root, window(property)?))).collect();
        let before = std::mem::replace(&mut self.active, active);
        if before == self.active {
            return Ok(BTreeSet::new());
        }
        if before.is_empty() || self.active.is_empty() {
            // A window manager has started or exited, so the state of all clients becomes known or unknown.
            return Ok(self.windows.keys().map(|&window| self.base_of(window)).collect());
        }
        let both = before.values().chain(self.active.values());
        Ok(both.map(|&window| self.base_of(window)).filter(|&base| base != 0).collect())
    }
}

type Property = Option<GetPropertyReply>;
