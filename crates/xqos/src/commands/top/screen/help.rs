// SPDX-License-Identifier: MIT
//! The window that explains keys and columns. Where it is too small for all lines, the arrow keys scroll it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Paragraph};
use xqos_cli::width::{Align, padded, wrapped};

/// Of the window with its border.
const WIDTH: u16 = 76;
/// Of the first column, with the space behind it.
const WORDS: usize = 12;

const HELP: [(&str, &str); 21] = [
    ("Up, Down", "choose a client"),
    ("Enter, Esc", "all about it; back to the table"),
    ("s", "sort by the next column"),
    ("/", "show only some clients; Esc shows all again"),
    ("l", "the longest requests"),
    ("p, Space", "pause"),
    ("r", "reserve budget/period, such as 3ms/10ms; hard or soft=paper after it"),
    ("x, u", "release its reservation; undo the last change"),
    ("R", "time each request, to see which kinds are expensive"),
    ("q", "quit"),
    ("last", "Columns of the last interval:"),
    ("SHARE", "share of the server's time"),
    ("CHARGED", "the same with what a window manager does for it; a manager is not charged for that"),
    ("REQ/S", "requests per second"),
    ("P50 P99", "response time: from having work to having none left"),
    ("ever", "Columns since the client connected, before this top too:"),
    ("TIME", "server time"),
    ("WAIT", "longest wait for its turn; may be far above the P99 of now"),
    ("LONGEST", "its longest single request, and the name of it"),
    ("GRAB", "time it held the server grab; underlined: holds it now"),
    ("RESERVED", "budget/period, and the part in use; auto: measured; group: used by its clients together"),
];

/// Draws it from its `line`th line on, or from the last one that leaves no room below; returns which.
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

fn lines(width: usize) -> Vec<String> {
    let row = |(word, text): (&str, &str)| {
        let texts = wrapped(text, width.saturating_sub(WORDS)).into_iter().enumerate();
        let line = |(at, text): (usize, String)| padded(if at == 0 { word } else { "" }, WORDS, Align::Left) + &text;
        texts.map(line).collect::<Vec<_>>()
    };
    HELP.into_iter().flat_map(row).collect()
}
