// SPDX-License-Identifier: MIT
//! Level of detail: reduces packed data to what a picture can show, in one pass.
//!
//! Time is divided into columns. The packets of a column become one bar from their first byte to their last. Each
//! column also keeps its first retransmission and its last step. A picture thus has a few thousand elements, however
//! long the capture is.

use super::track::{Bar, MessageMark, Step, Track, Window};

/// Maximum number of names in a picture. If there are more messages, only the longest are named.
const MAX_MARKS: usize = 1500;

#[derive(Clone, Copy, Debug)]
pub struct Columns {
    pub window: Window,
    pub count: u64,
}

impl Columns {
    fn of(&self, at_ns: u64) -> u64 {
        let length_ns = self.window.to_ns.saturating_sub(self.window.from_ns).max(1);
        let since_ns = at_ns.saturating_sub(self.window.from_ns).min(length_ns);
        (u128::from(since_ns) * u128::from(self.count) / u128::from(length_ns)) as u64
    }
}

/// Packets with data. If there are more packets than columns, the packets of each column are joined.
pub fn bars(track: &Track, columns: &Columns) -> Vec<Bar> {
    let is_sparse = track.packets.count as u64 <= columns.count;
    let mut bars: Vec<Bar> = Vec::new();
    let mut last_retransmission = None;
    for bar in track.bars().filter(|bar| bar.length > 0) {
        let column = columns.of(bar.at_ns);
        match bars.iter_mut().rev().find(|last| !last.is_retransmission) {
            _ if is_sparse => bars.push(bar),
            _ if bar.is_retransmission => {
                if last_retransmission.replace(column) != Some(column) {
                    bars.push(bar);
                }
            }
            Some(last) if columns.of(last.at_ns) == column => {
                let end = (last.offset + last.length).max(bar.offset + bar.length);
                last.offset = last.offset.min(bar.offset);
                last.length = end - last.offset;
            }
            _ => bars.push(bar),
        }
    }
    bars
}

/// The acknowledgement steps: only the last one of each column.
pub fn steps(track: &Track, columns: &Columns) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for step in track.steps() {
        let is_first = steps.len() < 2;
        match steps.last_mut() {
            // Keep the very first step, where the line starts.
            Some(last) if !is_first && columns.of(last.at_ns) == columns.of(step.at_ns) => *last = step,
            _ => steps.push(step),
        }
    }
    steps
}

/// The messages to draw, in stream order: all of them, or the longest.
pub fn marks(track: &Track) -> Vec<MessageMark> {
    if track.messages.count <= MAX_MARKS {
        return track.marks().collect();
    }
    let mut longest: Vec<MessageMark> = Vec::with_capacity(2 * MAX_MARKS);
    for mark in track.marks() {
        longest.push(mark);
        if longest.len() == 2 * MAX_MARKS {
            longest.select_nth_unstable_by_key(MAX_MARKS, |mark| std::cmp::Reverse(mark.length));
            longest.truncate(MAX_MARKS);
        }
    }
    longest.sort_by_key(|mark| std::cmp::Reverse(mark.length));
    longest.truncate(MAX_MARKS);
    longest.sort_by_key(|mark| mark.offset);
    longest
}

/// The range of bytes that packets, messages and gaps cover, without the receive window.
pub fn bytes(track: &Track) -> (u64, u64) {
    let bars = track.bars().filter(|bar| bar.length > 0).map(|bar| (bar.offset, bar.offset + bar.length));
    let marks = track.marks().map(|mark| (mark.offset, mark.offset.saturating_add(mark.length)));
    let gap_marks = track.gap_marks().map(|gap| (gap.offset, gap.offset.saturating_add(gap.length)));
    let join = |(low, high): (u64, u64), (from, to)| (low.min(from), high.max(to));
    let (low, high) = bars.chain(marks).chain(gap_marks).fold((u64::MAX, 0), join);
    if low > high { (0, 1) } else { (low, high.max(low + 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Direction, Packet};

    /// One packet per millisecond; every hundredth is retransmitted half a millisecond later.
    fn busy() -> Track {
        let mut track = Track::default();
        let window = Window { from_ns: 0, to_ns: u64::MAX };
        for at in 0..20_000_u64 {
            let packet = Packet {
                direction: Direction::Requests,
                at_ns: at * 1_000_000,
                offset: at * 1448,
                length: 1448,
                acknowledged: at * 1448,
                window: 65_536,
                is_retransmission: false,
                is_control: false,
            };
            track.packet(packet.at_ns, &packet);
            track.acknowledged(packet.at_ns, &packet, &window);
            if at % 100 == 0 {
                track.packet(packet.at_ns + 500_000, &Packet { is_retransmission: true, ..packet });
            }
        }
        track
    }

    #[test]
    fn a_picture_is_limited_to_its_columns_and_covers_all_bytes() {
        let track = busy();
        let columns = Columns { window: Window { from_ns: 0, to_ns: 20_000_000_000 }, count: 500 };
        let bars = bars(&track, &columns);
        let new: Vec<&Bar> = bars.iter().filter(|bar| !bar.is_retransmission).collect();
        assert!((499..=501).contains(&new.len()), "{}", new.len());
        assert!(new.windows(2).all(|pair| pair[0].offset + pair[0].length == pair[1].offset));
        assert_eq!(bars.len() - new.len(), 200, "retransmissions are drawn");
        let steps = steps(&track, &columns);
        assert!(steps.len() <= 502, "{}", steps.len());
        assert_eq!((steps[0].acknowledged, steps.last().unwrap().acknowledged), (0, 19_999 * 1448));
    }

    #[test]
    fn few_packets_are_drawn_separately() {
        let columns = Columns { window: Window { from_ns: 0, to_ns: 20_000_000_000 }, count: 50_000 };
        assert_eq!(bars(&busy(), &columns).len(), 20_200);
    }
}
