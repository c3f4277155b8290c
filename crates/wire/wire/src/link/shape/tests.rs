// SPDX-License-Identifier: MIT
//! Tests the guarantees of a link, with fixed and with random packets.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const MS: u64 = 1_000_000;

fn plain() -> Shape {
    Shape { rate: None, delay_ns: 0, jitter_ns: 0, queue: Some(Queue::Packets(1000)), loss_ppm: 0 }
}

fn rate(bits_per_second: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(bits_per_second)
}

/// Passes packets (arrival, bytes) through a link and delivers each when it is due. Returns all entries.
fn pass(shape: Shape, seed: u64, packets: &[(u64, u32)], end_ns: u64) -> (Vec<LoggedPacket>, Vec<Busy>) {
    let mut shaper = Shaper::new(shape, Direction::Requests, seed);
    for &(at_ns, bytes) in packets {
        deliver_until(&mut shaper, at_ns);
        shaper.arrive(at_ns, bytes, bytes);
    }
    deliver_until(&mut shaper, end_ns);
    shaper.close(end_ns);
    let (mut records, mut busy) = (Vec::new(), Vec::new());
    for entry in shaper.take_entries() {
        match entry {
            LogEntry::Packet(record) => records.push(record),
            LogEntry::Busy(interval) => busy.push(interval),
        }
    }
    (records, busy)
}

fn deliver_until(shaper: &mut Shaper<u32>, now_ns: u64) {
    while let Some(due_ns) = shaper.next_due_ns().filter(|&due_ns| due_ns <= now_ns) {
        let early = due_ns.checked_sub(1).and_then(|early_ns| shaper.deliver(early_ns));
        assert_eq!(early, None, "no packet is delivered early");
        shaper.deliver(due_ns).expect("a due packet is delivered");
    }
}

#[test]
fn a_packet_takes_its_transmission_time_and_the_delay() {
    let shape = Shape { rate: rate(1_000_000), delay_ns: 10 * MS, ..plain() };
    let (records, busy) = pass(shape, 0, &[(5 * MS, 1500), (5 * MS, 1500), (100 * MS, 125)], 200 * MS);
    let times: Vec<_> = records.iter().map(|record| (record.sent_ns, record.delivered_ns)).collect();
    assert_eq!(times[0], (Some((5 * MS, 17 * MS)), Some(27 * MS)));
    assert_eq!(times[1], (Some((17 * MS, 29 * MS)), Some(39 * MS)), "the second waits for the first");
    assert_eq!(times[2], (Some((100 * MS, 101 * MS)), Some(111 * MS)));
    let spans: Vec<_> = busy.iter().map(|busy| (busy.from_ns, busy.to_ns)).collect();
    assert_eq!(spans, [(5 * MS, 29 * MS), (100 * MS, 101 * MS)], "one interval for packets without a pause");
}

#[test]
fn an_unlimited_link_is_never_busy_and_drops_nothing() {
    let packets: Vec<_> = (0..2000).map(|_| (MS, 1500)).collect();
    let (records, busy) = pass(Shape { queue: Some(Queue::Packets(0)), ..plain() }, 0, &packets, MS);
    assert!(records.iter().all(|record| record.delivered_ns == Some(MS)) && records.len() == 2000);
    assert_eq!(busy, []);
}

#[test]
fn a_full_queue_drops_the_newest_packet() {
    let shape = Shape { rate: rate(8_000_000), queue: Some(Queue::Bytes(2000)), ..plain() };
    let packets = [(0, 1000), (0, 1000), (0, 1000), (0, 1000), (MS, 1000), (MS, 1000)];
    let (records, _) = pass(shape, 0, &packets, 100 * MS);
    let dropped: Vec<_> = records.iter().filter(|it| it.outcome == PacketFate::Dropped).map(|it| it.number).collect();
    assert_eq!(dropped, [4, 6], "one leaves the queue after a millisecond, so one more has room");
}

#[test]
fn memory_is_bounded_for_any_delay() {
    let mut shaper = Shaper::new(Shape { delay_ns: u64::MAX, ..plain() }, Direction::Replies, 0);
    for _ in 0..2 * HELD_BYTES / 65_535 {
        shaper.arrive(0, 65_535, ());
    }
    let dropped =
        shaper.take_entries().filter(|it| matches!(it, LogEntry::Packet(it) if it.outcome == PacketFate::Dropped));
    assert!(dropped.count() as u64 > HELD_BYTES / 65_535 - 2);
    assert!(shaper.held_bytes <= HELD_BYTES);
}

#[test]
fn rates_that_do_not_divide_a_second_do_not_drift() {
    let shape = Shape { rate: rate(9_999_991), queue: Some(Queue::Bytes(u64::MAX)), ..plain() };
    let packets: Vec<_> = (0..100_000).map(|_| (0, 1499)).collect();
    let (records, _) = pass(shape, 0, &packets, u64::MAX);
    let exact = 100_000u128 * 1499 * 8 * 1_000_000_000 / 9_999_991;
    assert_eq!(u128::from(records.last().unwrap().sent_ns.unwrap().1), exact);
}

#[test]
fn loss_and_jitter_match_the_settings_and_follow_the_seed() {
    let shape = Shape { loss_ppm: 100_000, jitter_ns: 2 * MS, delay_ns: 5 * MS, ..plain() };
    let packets: Vec<_> = (0..20_000).map(|at| (at * 10 * MS, 100)).collect();
    let records_of = |seed| pass(shape, seed, &packets, u64::MAX).0;
    let records = records_of(1);
    assert_eq!(records, records_of(1));
    assert_ne!(records, records_of(2));
    let lost = records.iter().filter(|record| record.outcome == PacketFate::Lost).count();
    assert!((1850..=2150).contains(&lost), "{lost} of 20,000 lost where 2,000 are expected");
    let delays = || records.iter().filter_map(|record| Some(record.delivered_ns? - record.arrived_ns));
    let (least, most) = (delays().min().unwrap(), delays().max().unwrap());
    assert!((3 * MS..3 * MS + MS / 50).contains(&least) && (7 * MS - MS / 50..=7 * MS).contains(&most));
    let mean = delays().sum::<u64>() / delays().count() as u64;
    assert!(mean.abs_diff(5 * MS) < MS / 20, "{mean}");
}

#[test]
fn losses_do_not_depend_on_drops() {
    let packets: Vec<_> = (0..1000).map(|at| (at * 100, 1000)).collect();
    let shape = Shape { rate: rate(1_000_000), loss_ppm: 300_000, queue: Some(Queue::Packets(1000)), ..plain() };
    let lost = |queue| {
        let (records, _) = pass(Shape { queue: Some(queue), ..shape }, 9, &packets, u64::MAX);
        records.into_iter().filter(|it| it.outcome == PacketFate::Lost).map(|it| it.number).collect::<Vec<_>>()
    };
    let (all, some) = (lost(Queue::Packets(1000)), lost(Queue::Packets(100)));
    assert!(some.len() > 20 && some.len() < all.len() && some.iter().all(|number| all.contains(number)));
}

#[test]
fn directions_have_independent_random_numbers() {
    let lost = |direction| {
        let mut shaper = Shaper::new(Shape { loss_ppm: 500_000, ..plain() }, direction, 3);
        (0..100).for_each(|at| shaper.arrive(at, 100, ()));
        shaper.take_entries().map(|entry| format!("{entry}").split(' ').nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_ne!(lost(Direction::Requests), lost(Direction::Replies));
}

#[test]
fn the_default_queue_holds_one_round_trip() {
    let queue = |rate, delay_ns| Shape { rate, delay_ns, ..Shape::default() }.queue();
    assert_eq!(queue(rate(100_000_000), 50 * MS), Queue::Bytes(1_250_000));
    assert_eq!(queue(rate(10_000), 100 * MS), Queue::Bytes(MIN_QUEUE_BYTES));
    assert_eq!(queue(None, 100 * MS), Queue::Bytes(MIN_QUEUE_BYTES));
    assert_eq!(queue(rate(u64::MAX), u64::MAX), Queue::Bytes(HELD_BYTES));
}

fn shapes() -> impl Strategy<Value = Shape> {
    let rates = prop_oneof![Just(None), (10_000u64..1_000_000_000).prop_map(rate)];
    let queues =
        prop_oneof![(0u64..100_000).prop_map(Queue::Bytes), (0u64..100).prop_map(Queue::Packets)].prop_map(Some);
    let jitters = prop_oneof![Just(0), 0..20 * MS];
    (rates, 0..50 * MS, jitters, queues, prop_oneof![Just(0), 0u32..=1_000_000])
        .prop_map(|(rate, delay_ns, jitter_ns, queue, loss_ppm)| Shape { rate, delay_ns, jitter_ns, queue, loss_ppm })
}

fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gaps = prop_oneof![Just(0), 0..2 * MS, 0..100 * MS];
    prop::collection::vec((gaps, 20u32..=1500), 1..200).prop_map(|steps| {
        let mut at_ns = 0;
        let mut later = |gap_ns: u64| {
            at_ns += gap_ns;
            at_ns
        };
        steps.into_iter().map(|(gap_ns, bytes)| (later(gap_ns), bytes)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(xqos_testkit::seed()), ..ProptestConfig::default() })]

    #[test]
    fn random_packets_keep_all_guarantees(shape in shapes(), seed: u64, packets in packets(), cut in 0..3000 * MS) {
        let end_ns = packets.last().unwrap().0 + cut;
        let (mut records, busy) = pass(shape, seed, &packets, end_ns);
        let again = pass(shape, seed, &packets, end_ns);
        prop_assert_eq!((&records, &busy), (&again.0, &again.1), "the same seed gives the same result");
        check_order(&shape, &records)?;
        records.sort_by_key(|record| record.number);
        check_conservation(&packets, &records)?;
        check_line(&shape, &records)?;
        check_queue(&shape, &records)?;
        check_delays(&shape, &records, end_ns)?;
        check_busy(&records, &busy, end_ns)?;
    }
}

fn check_order(shape: &Shape, records: &[LoggedPacket]) -> Result<(), TestCaseError> {
    let delivered = records.iter().filter(|record| record.outcome == PacketFate::Delivered);
    let numbers: Vec<_> = delivered.map(|record| record.number).collect();
    prop_assert!(shape.jitter_ns > 0 || numbers.is_sorted(), "the order is kept: {:?}", numbers);
    Ok(())
}

fn check_conservation(packets: &[(u64, u32)], records: &[LoggedPacket]) -> Result<(), TestCaseError> {
    let seen: Vec<_> = records.iter().map(|record| (record.number, record.arrived_ns, record.bytes)).collect();
    let came: Vec<_> = (1..).zip(packets).map(|(number, &(at_ns, bytes))| (number, at_ns, bytes)).collect();
    prop_assert_eq!(seen, came, "each packet has one fate");
    Ok(())
}

/// Checks that packets are sent one after the other, never above the rate, and without a pause while any wait.
fn check_line(shape: &Shape, records: &[LoggedPacket]) -> Result<(), TestCaseError> {
    let (mut free_ns, mut begun_ns, mut bits) = (0, 0, 0u128);
    for record in records {
        let Some((start_ns, end_ns)) = record.sent_ns else { continue };
        prop_assert_eq!(start_ns, free_ns.max(record.arrived_ns));
        if start_ns > free_ns {
            (begun_ns, bits) = (start_ns, 0);
        }
        free_ns = end_ns;
        bits += u128::from(record.bytes) * 8;
        let least = shape.rate.map_or(0, |rate| bits * u128::from(NS) / u128::from(rate.get()));
        prop_assert_eq!(u128::from(end_ns - begun_ns), if shape.rate.is_some() { least } else { 0 });
    }
    Ok(())
}

/// Checks that the queue never exceeds its bound, and that no packet is dropped while there is room for it.
fn check_queue(shape: &Shape, records: &[LoggedPacket]) -> Result<(), TestCaseError> {
    for (place, record) in records.iter().enumerate() {
        let now_ns = record.arrived_ns;
        let sent = |other: &&LoggedPacket| other.sent_ns.is_some_and(|(start_ns, _)| start_ns > now_ns);
        let before: Vec<_> = records[..place].iter().filter(sent).collect();
        let bytes: u64 = before.iter().map(|other| u64::from(other.bytes)).sum();
        let has_room = match shape.queue() {
            Queue::Bytes(bound) => bytes + u64::from(record.bytes) <= bound,
            Queue::Packets(bound) => (before.len() as u64) < bound,
        };
        let is_idle = records[..place].iter().filter_map(|other| other.sent_ns).all(|(_, end_ns)| end_ns <= now_ns);
        prop_assert_eq!(record.outcome != PacketFate::Dropped, is_idle || has_room, "{:?}", record);
    }
    Ok(())
}

fn check_delays(shape: &Shape, records: &[LoggedPacket], end_ns: u64) -> Result<(), TestCaseError> {
    for record in records {
        let sent_ns = record.sent_ns.map_or(0, |(_, sent_ns)| sent_ns);
        let earliest = sent_ns + shape.delay_ns.saturating_sub(shape.jitter_ns);
        let latest = sent_ns + shape.delay_ns + shape.jitter_ns;
        match (record.outcome, record.delivered_ns) {
            (PacketFate::Delivered, Some(at_ns)) => prop_assert!((earliest..=latest).contains(&at_ns), "{:?}", record),
            (PacketFate::Unfinished, None) => prop_assert!(latest > end_ns, "{:?}", record),
            (PacketFate::Lost, None) => prop_assert!(shape.loss_ppm > 0),
            (PacketFate::Dropped, None) => prop_assert!(record.sent_ns.is_none()),
            _ => prop_assert!(false, "{:?}", record),
        }
    }
    Ok(())
}

/// Checks that busy intervals are the joined transmissions, cut off at the end.
fn check_busy(records: &[LoggedPacket], busy: &[Busy], end_ns: u64) -> Result<(), TestCaseError> {
    let mut expected: Vec<(u64, u64)> = Vec::new();
    for (start_ns, sent_ns) in records.iter().filter_map(|record| record.sent_ns) {
        match expected.last_mut().filter(|last| last.1 == start_ns) {
            Some(last) => last.1 = sent_ns,
            None => expected.push((start_ns, sent_ns)),
        }
    }
    if let Some(last) = expected.last_mut() {
        last.1 = last.1.min(end_ns);
    }
    expected.retain(|span| span.0 < span.1);
    let spans: Vec<_> = busy.iter().map(|busy| (busy.from_ns, busy.to_ns)).collect();
    prop_assert_eq!(spans, expected);
    Ok(())
}
