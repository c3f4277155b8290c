// SPDX-License-Identifier: MIT
//! Steady work: keys are pressed at the server, one after the other, and it is seen when the screen changes.
//!
//! A change needs the way there and back at least; what is more are waits for replies.

use super::{Case, Program, Site};
use crate::actor::{Answered, Pressed, Stroke, Strokes};
use crate::statistics::median;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// So long nothing may change, besides two round trips; a letter is there at once.
const SILENCE: Duration = Duration::from_millis(400);
const SILENCE_OF_LETTER: Duration = Duration::from_millis(250);

/// Medians over the strokes of each kind; `None` where the program has no such thing, or did not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::experiments) struct Steady {
    pub typing: Option<Answered>,
    pub scrolling: Option<Answered>,
    pub menu: Option<Answered>,
}

/// What is done to a program.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Typing,
    Scrolling,
    Menu,
}

/// Pixels of a letter; xterm's letters have 6 by 13.
const LETTER: u32 = 120;
const SMALL_LETTER: u32 = 60;

// Key symbols.
const RETURN: u32 = 0xff0d;
const ESCAPE: u32 = 0xff1b;
const DOWN: u32 = 0xff54;
const PRIOR: u32 = 0xff55;
const NEXT: u32 = 0xff56;
const F10: u32 = 0xffc7;
const CONTROL: u32 = 0xffe3;
const ALT: u32 = 0xffe9;

const fn key(symbol: u32) -> Stroke {
    Stroke { with: None, what: Pressed::Key(symbol) }
}

const fn again(stroke: Stroke, times: u32) -> Strokes {
    Strokes { before: None, stroke, back: None, times, least_area: LETTER }
}

const fn there_and_back(stroke: Stroke, back: Stroke) -> Strokes {
    Strokes { back: Some(back), ..again(stroke, 3) }
}

/// xterm's terminal echoes; a line at its bottom scrolls. gtk3-demo's list shows another demo's text for each line.
fn strokes(program: Program, kind: Kind) -> Option<Strokes> {
    const LINES: u32 = 60;
    let before = Some((LINES, key(RETURN)));
    Some(match (program, kind) {
        (Program::Gtk, Kind::Scrolling) => again(key(DOWN), 5),
        (Program::Gtk, Kind::Menu) => there_and_back(key(F10), key(ESCAPE)),
        // No text is typed there.
        (Program::Gtk, Kind::Typing) => return None,
        // A cursor that blinks is drawn with as much around it as a letter; and the list of results is empty.
        (Program::Qt, Kind::Typing | Kind::Scrolling) => return None,
        (Program::Qt, Kind::Menu) => {
            there_and_back(Stroke { with: Some(ALT), what: Pressed::Key(b's'.into()) }, key(ESCAPE))
        }
        (Program::Emacs, Kind::Scrolling) => Strokes { before, ..there_and_back(key(PRIOR), key(NEXT)) },
        // Neither does its menu open at each F10, nor close at each Escape.
        (Program::Emacs, Kind::Menu) => return None,
        (Program::Xterm | Program::XtermFa, Kind::Scrolling) => Strokes { before, ..again(key(RETURN), 5) },
        (Program::Xterm | Program::XtermFa, Kind::Typing) => {
            Strokes { least_area: SMALL_LETTER, ..again(key(b'a'.into()), 10) }
        }
        (Program::Xterm | Program::XtermFa, Kind::Menu) => {
            let button = |with| Stroke { with, what: Pressed::Button(1) };
            there_and_back(button(Some(CONTROL)), button(None))
        }
        (_, Kind::Typing) => again(key(b'a'.into()), 10),
    })
}

impl Steady {
    /// The program is quiet, and has the keyboard from now on.
    pub(super) fn measure(site: &Site, case: Case) -> Result<Steady> {
        let round_trip = 2 * Duration::from_micros(case.line.delay_us);
        let of = |kind| -> Result<Option<Answered>> {
            let silence = match kind {
                Kind::Typing => SILENCE_OF_LETTER + round_trip,
                Kind::Scrolling | Kind::Menu => SILENCE + 2 * round_trip,
            };
            let Some(strokes) = strokes(case.program, kind) else { return Ok(None) };
            let answered: Vec<Option<Answered>> = site.typist(strokes, silence)?.hear()?;
            let of = |value: fn(&Answered) -> f64| median(answered.iter().flatten().map(value));
            let any = answered.iter().any(Option::is_some);
            Ok(any.then(|| Answered { first_ms: of(|one| one.first_ms), last_ms: of(|one| one.last_ms) }))
        };
        Ok(Steady { typing: of(Kind::Typing)?, scrolling: of(Kind::Scrolling)?, menu: of(Kind::Menu)? })
    }
}
