// SPDX-License-Identifier: MIT
//! Detects wrong timestamps in a capture: a wrong unit, missing times, or a clock that was set back.
//!
//! Nanoseconds labelled as microseconds can be detected with certainty and are converted. Other errors are only
//! reported, because the true times are unknown.

/// 10^17 microseconds since 1970 are in the year 5138, so larger values must be nanoseconds.
const LATEST_TICKS: u64 = 100_000_000_000_000_000;
const MICROSECONDS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Among this many packets, at least one timestamp must be beyond the first millisecond of its second.
const ENOUGH: u64 = 16;

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// True if a pcap file is labelled with microseconds but has nanoseconds, judging by its first packets.
fn is_pcap_of_nanoseconds(beginning: &[u8]) -> bool {
    let word: fn(&[u8], usize) -> Option<u32> = match beginning.first_chunk() {
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => |bytes, at| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)),
        Some([0xa1, 0xb2, 0xc3, 0xd4]) => |bytes, at| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?)),
        _ => return false,
    };
    let (mut at, mut packets, mut beyond) = (FILE_HEADER, 0, 0);
    while let (Some(part), Some(captured)) = (word(beginning, at + 4), word(beginning, at + 8)) {
        packets += 1;
        beyond += usize::from(u64::from(part) >= MICROSECONDS);
        at = at.saturating_add(PACKET_HEADER).saturating_add(captured as usize).min(beginning.len());
    }
    // Some programs write a whole second as a million microseconds, so require a majority.
    2 * beyond > packets
}

/// True if a pcapng timestamp is labelled with microseconds but has nanoseconds.
pub fn is_nanoseconds(ticks: u64, resolution: u64) -> bool {
    resolution == MICROSECONDS && ticks > LATEST_TICKS
}

#[derive(Debug, Default)]
pub struct Times {
    pub are_nanoseconds: bool,
    packets: u64,
    without_time: u64,
    set_back: u64,
    first_ns: u64,
    pub last_ns: u64,
    has_passed: bool,
    is_fine: bool,
}

impl Times {
    pub fn of(beginning: &[u8]) -> Times {
        Times { are_nanoseconds: is_pcap_of_nanoseconds(beginning), ..Times::default() }
    }

    pub fn take(&mut self, at_ns: u64, has_time: bool) {
        if self.packets == 0 {
            (self.first_ns, self.last_ns) = (at_ns, at_ns);
        }
        self.packets += 1;
        self.without_time += u64::from(!has_time);
        self.set_back += u64::from(at_ns.saturating_add(SECOND_NS) < self.last_ns);
        self.has_passed |= at_ns != self.first_ns;
        self.is_fine |= at_ns % SECOND_NS >= SECOND_NS / 1000;
        self.last_ns = at_ns;
    }

    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.are_nanoseconds {
            notes.push("the file states microseconds but counts nanoseconds: its times are converted".to_owned());
        }
        let is_long = self.first_ns / SECOND_NS != self.last_ns / SECOND_NS;
        if self.packets > 1 && !self.has_passed {
            notes.push("its packets have no timestamps: durations and waits are unknown".to_owned());
        } else if self.without_time > 0 {
            notes.push(format!("{} packets have no timestamps: waits near them are unknown", self.without_time));
        } else if self.packets >= ENOUGH && is_long && !self.is_fine {
            notes.push(
                "all its timestamps are in the first millisecond of a second: the file seems to count in another unit \
                 than it states, so durations and waits are wrong"
                    .to_owned(),
            );
        }
        if self.set_back > 0 {
            let times = if self.set_back == 1 { "once".to_owned() } else { format!("{} times", self.set_back) };
            notes.push(format!("its clock went back {times}: durations and waits near that are wrong"));
        }
        notes
    }
}
