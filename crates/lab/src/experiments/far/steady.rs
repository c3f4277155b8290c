// SPDX-License-Identifier: MIT
//! Steady work: keys are pressed at the server, one after the other, and screen changes are observed.
//!
//! A screen change takes at least one round trip. The rest of its time is spent waiting for replies.

use super::{Case, Program, Site};
use crate::actor::{KeyOrButton, ResponseTimes, Stroke, Strokes};
use crate::statistics::median;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A stroke ends after this time (plus two round trips) without a change. A letter appears immediately.
const SILENCE: Duration = Duration::from_millis(400);
const SILENCE_OF_LETTER: Duration = Duration::from_millis(250);

/// Medians over the strokes of each kind. `None` if the program has no such function or the screen did not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::experiments) struct Steady {
    pub typing: Option<ResponseTimes>,
    pub scrolling: Option<ResponseTimes>,
    pub menu: Option<ResponseTimes>,
}

/// Least areas of letters, in pixels. A letter of xterm has 6 x 13 pixels.
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
    Stroke { with: None, what: KeyOrButton::Key(symbol) }
}

const fn again(stroke: Stroke, times: u32) -> Strokes {
    Strokes { before: None, stroke, back: None, times, least_area: LETTER }
}

const fn there_and_back(stroke: Stroke, back: Stroke) -> Strokes {
    Strokes { back: Some(back), ..again(stroke, 3) }
}

/// Strokes for typing, scrolling and the menu. In xterm, the terminal echoes letters and Return on the bottom line
/// scrolls. In gtk3-demo, each line of the list shows the text of another demo.
fn strokes(program: Program) -> [Option<Strokes>; 3] {
    let letters = again(key(b'a'.into()), 10);
    let at_the_bottom = |strokes| Some(Strokes { before: Some((60, key(RETURN))), ..strokes });
    let stroke = |with, what| Stroke { with, what };
    match program {
        // gtk3-demo has nothing to type into.
        Program::Gtk => [None, Some(again(key(DOWN), 5)), Some(there_and_back(key(F10), key(ESCAPE)))],
        // The blinking cursor redraws as large an area as a letter, and the list of results is too empty to scroll.
        Program::Qt => {
            let menu = stroke(Some(ALT), KeyOrButton::Key(b's'.into()));
            [None, None, Some(there_and_back(menu, key(ESCAPE)))]
        }
        // Emacs does not open its menu on every F10, nor does it close the menu on every Escape.
        Program::Emacs => [Some(letters), at_the_bottom(there_and_back(key(PRIOR), key(NEXT))), None],
        Program::Xterm => {
            let button = |with| stroke(with, KeyOrButton::Button(1));
            let typing = Strokes { least_area: SMALL_LETTER, ..letters };
            let menu = there_and_back(button(Some(CONTROL)), button(None));
            [Some(typing), at_the_bottom(again(key(RETURN), 5)), Some(menu)]
        }
        _ => [None; 3],
    }
}

impl Steady {
    /// The program must be quiet when this is called. It gets the keyboard focus and keeps it.
    pub(super) fn measure(site: &Site, case: Case) -> Result<Steady> {
        let round_trip = 2 * Duration::from_micros(case.line.delay_us);
        let of = |strokes: Option<Strokes>, silence| -> Result<Option<ResponseTimes>> {
            let Some(strokes) = strokes else { return Ok(None) };
            let answered: Vec<Option<ResponseTimes>> = site.typist(strokes, silence)?.hear()?;
            let of = |value: fn(&ResponseTimes) -> f64| median(answered.iter().flatten().map(value));
            let any = answered.iter().any(Option::is_some);
            Ok(any.then(|| ResponseTimes { first_ms: of(|one| one.first_ms), last_ms: of(|one| one.last_ms) }))
        };
        let [typing, scrolling, menu] = strokes(case.program);
        let silence = SILENCE + 2 * round_trip;
        let typing = of(typing, SILENCE_OF_LETTER + round_trip)?;
        Ok(Steady { typing, scrolling: of(scrolling, silence)?, menu: of(menu, silence)? })
    }
}
