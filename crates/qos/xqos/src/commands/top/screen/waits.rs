// SPDX-License-Identifier: MIT
//! The histogram of the waits of a client or a group.

use super::rows::Row;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Paragraph};
use xqos_agent::sample::ClientSample;
use xqos_agent::sample::client::WAITS;
use xqos_core::WAIT_BOUNDS_NS;
use xqos_text::time::of_ns;

/// Lines of the histogram: a title, the classes and a border.
pub const HEIGHT: u16 = WAITS as u16 + 3;
/// Columns in front of the bars.
const NUMBERS: usize = 34;

pub fn draw(frame: &mut Frame, area: Rect, row: &Row) {
    let title = format!("Waits of {}, from a request's arrival to its dispatch", row.name());
    let lines = lines(&row.client, usize::from(area.width.saturating_sub(2)));
    frame.render_widget(Paragraph::new(lines.join("\n")).block(Block::bordered().title(title)), area);
}

/// A line for each class of waits: their number in the last interval, and in total with a bar.
fn lines(client: &ClientSample, width: usize) -> Vec<String> {
    let most = client.entry.waits.iter().copied().max().unwrap_or(0).max(1);
    let room = width.saturating_sub(NUMBERS) as u64;
    let mut lines = vec![format!("{:<10}{:>11}{:>11}", "", "last", "ever")];
    for (class, (last, ever)) in client.waits.iter().zip(client.entry.waits).enumerate() {
        let label = match WAIT_BOUNDS_NS.get(class) {
            Some(&bound) => format!("<= {}", of_ns(bound)),
            None => "longer".to_owned(),
        };
        // A class that is not empty has a bar of at least one column.
        let bar = "█".repeat((room * u64::from(ever)).div_ceil(u64::from(most)) as usize);
        lines.push(format!("{label:<10}{last:>11}{ever:>11}  {bar}").trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::ClientEntry;

    #[test]
    fn each_class_has_its_counts_and_a_bar_in_proportion() {
        let entry = ClientEntry { waits: [1000, 0, 0, 500, 0, 0, 0, 1], ..ClientEntry::default() };
        let client = ClientSample { waits: [9, 0, 0, 0, 0, 0, 0, 0], ..ClientSample::of(&entry) };
        let lines = lines(&client, 74);
        let bars: Vec<usize> = lines.iter().map(|line| line.matches('█').count()).collect();
        assert_eq!(bars, [0, 40, 0, 0, 20, 0, 0, 0, 1], "the title, and {WAITS} classes");
        for (line, words) in
            [(1, ["<= 1.00 ms", "9", "1000"]), (4, ["<= 50.0 ms", "0", "500"]), (8, ["longer", "0", "1"])]
        {
            let found: Vec<&str> = lines[line].split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
            assert_eq!(found[..3], words, "{}", lines[line]);
        }
        assert!(lines.iter().all(|line| line.chars().count() <= 74));
    }

    #[test]
    fn a_client_without_waits_and_a_narrow_screen_are_drawn() {
        assert!(lines(&ClientSample::default(), 80).iter().all(|line| !line.contains('█')));
        let entry = ClientEntry { waits: [u32::MAX; WAITS], ..ClientEntry::default() };
        assert_eq!(lines(&ClientSample::of(&entry), 0).len(), WAITS + 1);
    }
}
