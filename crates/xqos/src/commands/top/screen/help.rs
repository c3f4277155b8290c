// SPDX-License-Identifier: MIT
//! The window that explains keys and columns.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Paragraph};

pub fn draw(frame: &mut Frame) {
    const HELP: &str = "\
Up, Down    choose a client          Enter   all about it; Esc goes back
s           sort by the next column  /       show only some; Esc shows all
l           the longest requests     p       pause; Space too
r           reserve: budget/period, such as 3ms/10ms; hard or soft=paper after it
x           release the reservation  u       take the last change back
R           time each request, to see which kinds are expensive
q           quit

SHARE       of the server's time in the last interval
TIME        server time since it connected
P50 P99     response: from having work to having none left
WAIT        the longest time from arrival to dispatch
LONGEST     its longest single request, and the name of it
GRAB        for how long it held the server grab; underlined: holds it now
RESERVED    budget/period, and how much of it is used; auto: measured;
            group: used by its clients together";
    let area = frame.area();
    let (width, height) = (area.width.min(76), area.height.min(18));
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title("Help, any key of these; ? closes")), place);
}
