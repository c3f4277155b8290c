// SPDX-License-Identifier: MIT
//! Reads random bytes as a request of a kind that may be executed in parts.
//!
//! Nothing may panic. The parts are requests of the same kind, none is executed twice, and together they are the whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xqos_module::parts::{DrawingKind, Parts};

const RENDER: u8 = 139;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[major, minor, work, ..], request)) = bytes.split_first_chunk::<4>() else { return };
    let Some(kind) = DrawingKind::of(major, minor, RENDER) else { return };
    let Some(parts) = Parts::of(kind, request) else { return };
    if !parts.has_headers(request) {
        return;
    }
    let whole = parts.header_of(request);
    let figure = |part: u32| &request[parts.header + part as usize * parts.bytes..][..parts.bytes];
    let (mut from, mut rows) = (0, vec![false; parts.count as usize]);
    while from < parts.count {
        let (count, _) = parts.fitting(request, from, u64::from(work) << 6);
        let range = from..from + count;
        let header = parts.header_for(&whole, &range, [figure(0), figure(from)]).expect("a header");
        let mut part = header[..parts.header].to_vec();
        part.extend((range.start..range.end).flat_map(figure));
        assert!(count == 1 || Parts::of(kind, &part).is_some_and(|again| again.count == count));
        for row in parts.rows(&range) {
            assert!(!std::mem::replace(&mut rows[row as usize], true), "row {row} twice");
        }
        from += count;
    }
    assert!(rows.iter().all(|&one| one));
});
