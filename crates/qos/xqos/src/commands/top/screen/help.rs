// SPDX-License-Identifier: MIT
//! The help window for keys and columns. If not all lines fit, the arrow keys scroll it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Paragraph};
use xqos_agent::field::{columns_help, explained};
use xqos_agent::sample::CLIENT;
use xqos_text::width::wrapped;

/// Columns of the window, including its border.
const WIDTH: u16 = 76;

const KEYS: [(&str, &str); 18] = [
    ("Up, Down", "choose a row; also PageUp, PageDown, Home and End"),
    ("Enter, Esc", "show its details; go back to the table"),
    ("s, S", "sort by the next column, by the previous column; also > and <"),
    ("I", "sort backwards"),
    ("P, T", "sort by SHARE, by TIME"),
    ("f, F2", "choose and order the columns"),
    ("t, F5", "tree of users, applications and clients"),
    ("g", "group by application, by user, or not at all"),
    ("+, -", "unfold and fold a group; also Right and Left"),
    ("w", "show the waits of the selected client or group"),
    ("/, F4", "show only some clients; Esc shows all again"),
    ("l", "show the longest requests"),
    ("p, Space", "pause"),
    ("r", "reserve budget/period, such as 3ms/10ms; you may add hard or soft=paper"),
    ("x, u", "release its reservation (asks first); undo the last change"),
    ("R", "time each request, to find expensive kinds (tens of nanoseconds each), until R is pressed again"),
    ("D, q", "use the default settings (asks first); quit (settings are kept)"),
    ("?", "help"),
];

/// Draws the help from `line` on, or from the last line that fills the window. Returns the first visible line.
pub fn draw(frame: &mut Frame, line: u16) -> u16 {
    let area = frame.area();
    let width = area.width.min(WIDTH);
    let lines = lines(usize::from(width.saturating_sub(2)));
    let height = area.height.min(lines.len() as u16 + 2);
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    let hidden = lines.len() as u16 - height.saturating_sub(2).min(lines.len() as u16);
    let title = if hidden == 0 { "Help; ? closes" } else { "Help; ? closes, Up and Down scroll" };
    let line = line.min(hidden);
    let text = Paragraph::new(lines.join("\n")).scroll((line, 0)).block(Block::bordered().title(title));
    frame.render_widget(Clear, place);
    frame.render_widget(text, place);
    line
}

pub fn keys_help(width: usize) -> Vec<String> {
    KEYS.iter().flat_map(|(key, text)| explained(key, text, width)).collect()
}

fn lines(width: usize) -> Vec<String> {
    let spans = "Columns: (last) is the last interval, (ever) since the client connected, even before top started";
    let columns = columns_help(CLIENT, width);
    keys_help(width).into_iter().chain(wrapped(spans, width)).chain(columns.lines().map(str::to_owned)).collect()
}
