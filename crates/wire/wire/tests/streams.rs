// SPDX-License-Identifier: MIT
//! Tests packets as real networks and captures deliver them: every link type, sequence numbers that wrap, packets that
//! are retransmitted, late, truncated or lost, and connections without start or end.

mod packets;

use packets::*;
use xqos_wire::capture::Link;
use xqos_wire::observe::{Direction, Ending, Kind};

const L: Order = Order::Little;
const GET_INPUT_FOCUS: u8 = 43;
const MAP_WINDOW: u8 = 8;
const PUT_IMAGE: u8 = 72;

/// Makes one round trip for each of these sequence numbers.
fn round_trips(talk: &mut Talk, sequences: std::ops::RangeInclusive<u64>) {
    for number in sequences {
        talk.client(&request(L, GET_INPUT_FOCUS, 0, 1)).server(&reply(L, number, 0, 0));
    }
}

fn three_round_trips() -> Talk {
    let mut talk = Talk::new();
    talk.open_x(L);
    round_trips(&mut talk, 1..=3);
    talk.close();
    talk
}

fn focus(sequences: impl IntoIterator<Item = u64>) -> Vec<String> {
    let both = |number| [format!("Request {number} GetInputFocus"), format!("Reply {number} GetInputFocus")];
    sequences.into_iter().flat_map(both).collect()
}

#[test]
fn every_link_type_and_both_ip_versions_are_decoded() {
    let links = [Link::ETHERNET, Link::LINUX_SLL, Link::LINUX_SLL2, Link::NULL, Link::LOOP, Link::RAW];
    for (client, server) in [("10.0.0.1:40000", "10.0.0.2:6000"), ("[::1]:40000", "[::2]:6000")] {
        for (link, vlan_tags) in
            links.map(|link| (link, 0)).into_iter().chain([(Link::ETHERNET, 1), (Link::ETHERNET, 2)])
        {
            let mut talk = Talk { link, vlan_tags, ..Talk::between(client, server) };
            talk.open_x(L);
            round_trips(&mut talk, 1..=3);
            talk.close();
            let (seen, counts) = observe(&talk.packets);
            assert_eq!(seen.lines(), focus(1..=3), "over {link:?} with {vlan_tags} tags from {client}");
            assert_eq!((seen.opened[0].client, seen.opened[0].server), (talk.client, talk.server));
            assert_eq!(seen.endings, [Ending::Finished]);
            assert_eq!((counts.broken_packets, counts.other_packets), (0, 0));
        }
    }
}

#[test]
fn ip_is_found_after_tags_labels_and_other_headers() {
    let vlan = [0x81, 0, 0, 100];
    let pppoe = [0x88, 0x64, 0x11, 0, 0, 1, 0, 42];
    let labels = [0x88, 0x47, 0, 6, 0x40, 64, 0, 6, 0x41, 64];
    let snap = [0, 60, 0xaa, 0xaa, 3, 0, 0, 0];
    let ends = [("10.0.0.1:40000", "10.0.0.2:6000", [8, 0], 0x21), ("[::1]:40000", "[::2]:6000", [0x86, 0xdd], 0x57)];
    for (client, server, ip, ppp) in ends {
        let cases: [(Link, &[&[u8]]); 15] = [
            (Link::LINUX_SLL, &[&[0; 14], &vlan, &ip]),
            (Link::LINUX_SLL, &[&[0; 14], &vlan, &vlan, &ip]),
            (Link::LINUX_SLL, &[&[0; 14], &pppoe, &[0, ppp]]),
            (Link::LINUX_SLL, &[&[0; 14], &labels]),
            // Type 4: an 802.2 header follows.
            (Link::LINUX_SLL, &[&[0; 14], &[0, 4], &snap[2..], &ip]),
            (Link::LINUX_SLL2, &[&vlan[..2], &[0; 18], &vlan[2..], &ip]),
            (Link::ETHERNET, &[&[0; 12], &pppoe, &[0, ppp]]),
            (Link::ETHERNET, &[&[0; 12], &vlan, &pppoe, &[ppp]]),
            (Link::ETHERNET, &[&[0; 12], &labels]),
            (Link::ETHERNET, &[&[0; 12], &snap, &ip]),
            (Link::ETHERNET, &[&[0; 12], &vlan, &snap, &vlan, &ip]),
            (Link(9), &[&[0, ppp]]),
            (Link(9), &[&[0xff, 3, 0, ppp]]),
            (Link(50), &[&[0xff, 3, 0x02, 0x81], &labels[2..]]),
            (Link(51), &[&pppoe[2..], &[0, ppp]]),
        ];
        for (link, header) in cases {
            let mut talk = Talk { link: Link::RAW, ..Talk::between(client, server) };
            talk.open_x(L);
            round_trips(&mut talk, 1..=3);
            let header = header.concat();
            for packet in &mut talk.packets {
                packet.bytes.splice(..0, header.iter().copied());
                (packet.link, packet.length) = (link, packet.bytes.len() as u32);
            }
            let (seen, counts) = observe(&talk.packets);
            assert_eq!(seen.lines(), focus(1..=3), "over {link:?} after {header:x?}");
            // Without the IP packet, each header is refused.
            for length in 0..=header.len() {
                let cut = talk.packets[0].clone().cut(length);
                let (_, counts) = observe(&[cut]);
                assert_eq!(counts.other_packets + counts.broken_packets, 1, "{length} bytes of {header:x?}");
            }
            assert_eq!((counts.broken_packets, counts.other_packets), (0, 0));
        }
    }
}

#[test]
fn packets_other_than_tcp_are_counted() {
    let mut talk = three_round_trips();
    let mut fragment = talk.packets[4].clone();
    fragment.bytes[20] = 0x20;
    let mut datagram = talk.packets[4].clone();
    datagram.bytes[23] = 17;
    let mut other = talk.packets[4].clone();
    other.bytes[12..14].copy_from_slice(&[0x08, 0x06]);
    let unknown = Captured { link: Link(147), ..talk.packets[4].clone() };
    talk.packets.extend([fragment, datagram, other, unknown, talk.packets[4].clone().cut(40)]);
    let (_, counts) = observe(&talk.packets);
    assert_eq!((counts.fragments, counts.other_packets, counts.unknown_links), (1, 2, 1));
    assert_eq!((counts.broken_packets, counts.cut_packets), (1, 1));
}

#[test]
fn tcp_numbers_may_wrap() {
    let mut talk = Talk::new();
    talk.next = [u32::MAX - 60, u32::MAX - 500];
    talk.open_x(L);
    round_trips(&mut talk, 1..=20);
    talk.close();
    let (seen, counts) = observe(&talk.packets);
    assert_eq!(seen.lines(), focus(1..=20));
    assert_eq!((counts.gaps, seen.packets.last().unwrap().acknowledged), (0, 48 + 20 * 4));
}

#[test]
fn sequence_numbers_continue_after_65536() {
    let mut talk = Talk::new();
    talk.open_x(L);
    for thousand in 1..=200 {
        let many: Vec<u8> = (1..1000).flat_map(|_| request(L, MAP_WINDOW, 0, 2)).collect();
        talk.client(&many);
        round_trips(&mut talk, thousand * 1000..=thousand * 1000);
    }
    let (seen, _) = observe(&talk.packets);
    let replies: Vec<u64> =
        seen.messages.iter().filter(|(_, it)| it.kind == Kind::Reply).map(|(_, it)| it.sequence).collect();
    assert_eq!(replies, (1..=200).map(|thousand| thousand * 1000).collect::<Vec<_>>());
    assert!(seen.messages.iter().all(|(_, it)| it.kind != Kind::Reply || it.name == "GetInputFocus"));
}

#[test]
fn repeated_data_are_reported_once() {
    let mut talk = three_round_trips();
    let late = |packet: &Captured| Captured { at_ns: packet.at_ns + STEP_NS / 2, ..packet.clone() };
    let whole: Vec<Captured> = talk.packets.iter().flat_map(|packet| [packet.clone(), late(packet)]).collect();
    let (seen, _) = observe(&whole);
    assert_eq!(seen.lines(), focus(1..=3));
    let again: Vec<bool> =
        seen.packets.iter().filter(|packet| packet.length > 0).map(|packet| packet.is_retransmission).collect();
    assert_eq!(again, [false, true].repeat(again.len() / 2));
    // A retransmission that also contains new data.
    let old = talk.next[0] - 1;
    talk.packets.truncate(talk.packets.len() - 3);
    talk.next = [old - 4, talk.next[1] - 1];
    talk.client(&[request(L, GET_INPUT_FOCUS, 0, 1), request(L, MAP_WINDOW, 0, 2)].concat());
    let (seen, counts) = observe(&talk.packets);
    assert_eq!(seen.last().name, "MapWindow");
    assert_eq!((seen.last().sequence, counts.gaps), (4, 0));
}

/// The same packet at another capture point, `late_ns` later.
fn elsewhere(packet: &Captured, late_ns: u64, change: impl Fn(&mut [u8])) -> Captured {
    let mut copy = Captured { at_ns: packet.at_ns + late_ns, ..packet.clone() };
    change(&mut copy.bytes);
    copy
}

#[test]
fn a_packet_captured_at_two_points_counts_once() {
    for (client, link, hops_at) in [
        ("10.0.0.1:40000", Link::ETHERNET, 14 + 8),
        ("[::1]:40000", Link::ETHERNET, 14 + 7),
        ("10.0.0.1:40000", Link::LINUX_SLL2, 20 + 8),
    ] {
        let server = if client.starts_with('[') { "[::2]:6000" } else { "10.0.0.2:6000" };
        let mut talk = Talk { link, ..Talk::between(client, server) };
        talk.open_x(L);
        round_trips(&mut talk, 1..=3);
        talk.close();
        let once = observe(&talk.packets).0;
        // Capture points: a mirrored port; a bridge and its port; a router, which decrements the TTL.
        for (late_ns, at) in [(12_000, None), (700_000, Some(7)), (700_000, Some(hops_at))] {
            let change = |bytes: &mut [u8]| at.into_iter().for_each(|at: usize| bytes[at] ^= 1);
            let twice = talk.packets.iter().flat_map(|packet| [packet.clone(), elsewhere(packet, late_ns, change)]);
            let (seen, counts) = observe(&twice.collect::<Vec<_>>());
            assert_eq!(counts.copies, talk.packets.len() as u64, "{client} {link:?} {late_ns} {at:?}");
            assert_eq!((&seen.packets, seen.lines()), (&once.packets, once.lines()), "{client} {link:?} {late_ns}");
        }
    }
}

#[test]
fn a_retransmission_is_not_a_copy() {
    let mut talk = three_round_trips();
    let request = talk.packets[5].clone();
    let number = |packet: &mut Captured, number: u8| packet.bytes[19] = number;
    talk.packets.iter_mut().zip(1..).for_each(|(packet, count)| number(packet, count));
    // The request again, with a new identification or after a round trip, is a retransmission.
    for (late_ns, count) in [(50_000, 200), (900_000, 0)] {
        let mut packets = talk.packets.clone();
        if count == 0 {
            packets.iter_mut().for_each(|packet| number(packet, 0));
        }
        let mut again = elsewhere(&request, late_ns, |_| ());
        number(&mut again, count);
        let copy = elsewhere(&again, 5_000, |bytes| bytes[7] = 1);
        packets.splice(6..6, [again, copy]);
        let (seen, counts) = observe(&packets);
        let again = seen.packets.iter().filter(|packet| packet.is_retransmission).count();
        assert_eq!((again, counts.copies, seen.lines()), (1, 1, focus(1..=3)), "{late_ns} ns later");
    }
}

#[test]
fn reordered_packets_give_the_same_messages() {
    let talk = three_round_trips();
    let data = 3..talk.packets.len() - 3;
    for first in data.clone() {
        for second in data.clone() {
            let mut packets = talk.packets.clone();
            packets.swap(first, second);
            let (seen, counts) = observe(&packets);
            assert_eq!(counts.gaps, 0, "packets {first} and {second} changed places");
            let mut lines = seen.lines();
            lines.sort();
            let mut expected = focus(1..=3);
            expected.sort();
            assert_eq!(lines, expected, "packets {first} and {second} changed places");
        }
    }
}

#[test]
fn a_lost_request_affects_few_other_messages() {
    let mut talk = Talk::new();
    talk.open_x(L);
    round_trips(&mut talk, 1..=3);
    let lost = talk.packets.len();
    round_trips(&mut talk, 4..=60);
    talk.packets.remove(lost);
    let (seen, counts) = observe(&talk.packets);
    assert_eq!((counts.gaps, counts.gap_bytes, counts.lost_bytes), (1, 4, 4));
    let lines = seen.lines();
    assert!(lines.contains(&"Reply 4 unknown request".to_owned()), "{lines:?}");
    // The first request after the gap has no certain number until a reply shows how many are missing.
    for line in focus(6..=60) {
        assert!(lines.contains(&line), "{line} is missing");
    }
}

#[test]
fn a_lost_reply_does_not_affect_other_messages() {
    let mut talk = Talk::new();
    talk.open_x(L);
    round_trips(&mut talk, 1..=3);
    let lost = talk.packets.len() + 1;
    round_trips(&mut talk, 4..=60);
    talk.packets.remove(lost);
    let (seen, counts) = observe(&talk.packets);
    assert_eq!((counts.gaps, counts.gap_bytes, counts.skipped_bytes), (1, 32, 0));
    let expected: Vec<String> = focus(1..=60).into_iter().filter(|line| line != "Reply 4 GetInputFocus").collect();
    let (mut lines, mut expected) = (seen.lines(), expected);
    lines.sort();
    expected.sort();
    assert_eq!(lines, expected);
}

#[test]
fn a_hole_waits_for_its_retransmission() {
    let mut talk = three_round_trips();
    // The server cannot acknowledge a missing request, so both replies after the hole follow its retransmission.
    let lost = talk.packets.remove(7);
    assert_eq!(lost.length, 58, "the lost packet is a request");
    let mut late = lost.clone();
    late.at_ns += 700_000_000;
    talk.packets.truncate(7);
    talk.packets.push(late);
    let (seen, counts) = observe(&talk.packets);
    assert_eq!((counts.gaps, seen.last().sequence), (0, 2));
    assert_eq!(seen.last().last_ns, lost.at_ns + 700_000_000);
}

#[test]
fn selective_acknowledgements_do_not_fill_a_hole() {
    let mut talk = Talk::new();
    talk.open_x(L);
    let lost = talk.next[0];
    talk.client(&request(L, GET_INPUT_FOCUS, 0, 1));
    let lost_packet = talk.packets.pop().unwrap();
    // For each request after the hole, the server repeats its acknowledgement and adds a selective one.
    for length in [2, 3] {
        let from = talk.next[0];
        talk.client(&request(L, MAP_WINDOW, 0, length));
        talk.selective = vec![(lost + 4, talk.next[0]), (from, talk.next[0])];
        let next = std::mem::replace(&mut talk.next[0], lost);
        talk.server(&[]);
        (talk.next[0], talk.selective) = (next, Vec::new());
    }
    let (seen, counts) = observe(&talk.packets);
    assert_eq!(counts.gaps, 1, "the hole is still open at the end");
    let acknowledged: Vec<u64> =
        seen.packets.iter().rev().take(3).step_by(2).map(|packet| packet.acknowledged).collect();
    assert_eq!(acknowledged, [u64::from(lost - 1001); 2], "selective acknowledgements do not count");
    talk.packets.push(Captured { at_ns: talk.at_ns + 200_000_000, ..lost_packet });
    talk.at_ns += 200_000_000;
    talk.server(&reply(L, 1, 0, 0));
    let (seen, counts) = observe(&talk.packets);
    let lines = seen.lines();
    assert_eq!(
        lines,
        ["Request 1 GetInputFocus", "Request 2 MapWindow", "Request 3 MapWindow", "Reply 1 GetInputFocus"]
    );
    assert_eq!(
        (counts.gaps, counts.broken_packets, seen.packets.iter().filter(|packet| packet.is_retransmission).count()),
        (0, 0, 0)
    );
}

#[test]
fn bytes_truncated_inside_a_message_lose_no_other_message() {
    let mut talk = Talk::new();
    talk.open_x(L);
    for number in 1..=50 {
        talk.client(&[request(L, PUT_IMAGE, 2, 300), request(L, GET_INPUT_FOCUS, 0, 1)].concat());
        talk.server(&reply(L, number * 2, 0, 0));
    }
    let whole = observe(&talk.packets).0.lines();
    // The request after each image is lost, and so is the boundary between the two. The next boundary is found again.
    let cut: Vec<Captured> = talk.packets.iter().map(|packet| packet.clone().cut(1200)).collect();
    let (seen, counts) = observe(&cut);
    assert_eq!((counts.gaps, counts.cut_packets), (50, 50));
    let images = |lines: &[String]| lines.iter().filter(|line| line.ends_with("PutImage")).count();
    assert_eq!((images(&whole), images(&seen.lines())), (50, 50));
    // A stream of images only: all are reported, with the captured bytes.
    let mut talk = Talk::new();
    talk.open_x(L);
    (0..50).for_each(|_| _ = talk.client(&request(L, PUT_IMAGE, 2, 300)));
    let cut: Vec<Captured> = talk.packets.iter().map(|packet| packet.clone().cut(96)).collect();
    let (seen, counts) =
        observe(&cut[..3].iter().chain(&talk.packets[3..5]).chain(&cut[5..]).cloned().collect::<Vec<_>>());
    assert_eq!((images(&seen.lines()), counts.gaps, counts.skipped_bytes), (50, 50, 0));
    assert_eq!((seen.last().length, seen.last().kept, seen.last().sequence), (1200, 96 - 54, 50));
}

#[test]
fn packets_truncated_after_their_headers_lose_no_message() {
    let mut talk = Talk::new();
    talk.open_x(L).client(&query_extension(L, "RENDER")).server(&extension_reply(L, 1, [139, 0, 142]));
    talk.client(&request(L, PUT_IMAGE, 2, 2000)[..1448]).client(&request(L, PUT_IMAGE, 2, 2000)[1448..]);
    talk.client(&request(L, 20, 0, 6)).server(&reply(L, 3, 8, 40));
    talk.client(&request(L, 139, 23, 300)).client(&request(L, GET_INPUT_FOCUS, 0, 1)).server(&reply(L, 5, 0, 0));
    let (whole, _) = observe(&talk.packets);
    for most in [66, 96, 128] {
        let cut: Vec<Captured> = talk.packets.iter().map(|packet| packet.clone().cut(most)).collect();
        let (seen, counts) = observe(&cut);
        let summary = |seen: &Observed| -> Vec<(Kind, u64, String, u64)> {
            let messages = seen.messages.iter().map(|(_, it)| it);
            messages.map(|it| (it.kind, it.sequence, it.name.clone(), it.length)).collect()
        };
        if most > 66 {
            assert_eq!(summary(&seen), summary(&whole), "{most} bytes of each packet");
        } else {
            // Four bytes of an extension's name are not enough to learn it.
            assert_eq!(summary(&seen).len(), summary(&whole).len(), "{most} bytes of each packet");
        }
        assert_eq!((counts.lost_bytes, counts.skipped_bytes), (0, 0), "{most} bytes of each packet");
        assert!(seen.gaps.iter().all(|gap| gap.is_within_message) && counts.gap_bytes > 9000);
    }
}

#[test]
fn a_connection_can_be_decoded_from_the_middle() {
    for order in [Order::Little, Order::Big] {
        let mut talk = Talk::new();
        for number in 70_001..=70_040 {
            let requests = [request(order, MAP_WINDOW, 0, 2), request(order, GET_INPUT_FOCUS, 0, 1)].concat();
            talk.client(&requests).server(&reply(order, number * 2, 0, 0));
        }
        let (seen, _) = observe(&talk.packets);
        assert!(seen.opened[0].started_midstream);
        // 140,080 in 16 bits.
        assert_eq!((seen.last().sequence, seen.last().name.as_str()), (140_080 % 65_536, "GetInputFocus"), "{order:?}");
        assert!(seen.lines().len() > 100, "nearly all is understood: {}", seen.lines().len());
    }
}

#[test]
fn windows_are_scaled_if_both_sides_agreed() {
    let mut talk = Talk { window_scale: Some(7), ..Talk::new() };
    talk.open_x(L);
    let (seen, _) = observe(&talk.packets);
    let windows: Vec<u64> = seen.packets.iter().map(|packet| packet.window).collect();
    assert_eq!(windows, [1000, 1000, 128_000, 128_000, 128_000], "the window of a SYN is never scaled");
    let (seen, _) = observe(&talk.packets[2..]);
    assert!(seen.opened[0].started_midstream && seen.packets.iter().all(|packet| packet.window == 1000));
}

#[test]
fn a_reset_ends_a_connection_within_a_message() {
    let mut talk = Talk::new();
    talk.open_x(L);
    talk.client(&request(L, PUT_IMAGE, 2, 300)[..100]);
    talk.send(Direction::Replies, RST | ACK, &[]);
    let (seen, counts) = observe(&talk.packets);
    assert_eq!((seen.endings.as_slice(), counts.unfinished_messages), ([Ending::Reset].as_slice(), 1));
    assert_eq!(seen.last().kind, Kind::SetupReply);
}

#[test]
fn ports_can_be_reused() {
    let mut talk = three_round_trips();
    talk.next = [9_000, 77];
    talk.open_x(L);
    round_trips(&mut talk, 1..=2);
    // Reuse the ports once more, without the end of the previous connection.
    talk.next = [900_000, 7];
    talk.open_x(L);
    round_trips(&mut talk, 1..=1);
    let (seen, counts) = observe(&talk.packets);
    assert_eq!(counts.connections, 3);
    assert_eq!(seen.endings, [Ending::Finished, Ending::Open, Ending::Open]);
    assert_eq!(seen.lines(), [focus(1..=3), focus(1..=2), focus(1..=1)].concat());
}

#[test]
fn x_is_recognised_by_its_setup_on_any_port() {
    let x = |server: &str| {
        let mut talk = Talk::between("10.0.0.1:40000", server);
        talk.open_x(L);
        round_trips(&mut talk, 1..=2);
        talk
    };
    let (seen, _) = observe(&x("10.0.0.2:7777").packets);
    assert_eq!(seen.lines(), focus(1..=2), "the setup identifies X");
    assert_eq!(seen.packets.len(), 9, "the handshake too");
    let middle = x("10.0.0.2:7777").packets.split_off(5);
    assert_eq!(observe(&middle).1.connections, 0);
    assert_eq!(observe_with(&middle, |session| session.also_port(7777)).1.connections, 1);
    let mut foreign = Talk::new();
    foreign.open().client(b"GET / HTTP/1.1\r\n\r\n").server(b"HTTP/1.1 200 OK\r\n\r\n");
    let (seen, counts) = observe(&foreign.packets);
    assert_eq!((seen.messages.len(), counts.foreign_connections, counts.skipped_bytes), (0, 1, 37));
    let mut ssh = Talk::between("10.0.0.1:40000", "10.0.0.2:22");
    ssh.open().server(b"SSH-2.0-x\r\n").client(b"SSH-2.0-y\r\n");
    assert_eq!(observe(&ssh.packets).1.connections, 0);
}

/// A keep-alive: its sequence number is one below the next one to send.
fn keep_alive(talk: &mut Talk, from: Direction, bytes: &[u8]) {
    let next = talk.next;
    talk.next[from as usize] = next[from as usize].wrapping_sub(1);
    let probe = talk.packet(from, ACK, bytes);
    talk.packets.push(probe);
    talk.next = next;
    let other = if from == Direction::Requests { Direction::Replies } else { Direction::Requests };
    talk.send(other, ACK, &[]);
}

#[test]
fn keep_alives_carry_no_data() {
    for bytes in [&[][..], &[0], &[GET_INPUT_FOCUS]] {
        let mut talk = Talk::new();
        talk.open_x(L);
        round_trips(&mut talk, 1..=2);
        for _ in 0..3 {
            talk.at_ns += 75_000_000_000;
            keep_alive(&mut talk, Direction::Requests, bytes);
            keep_alive(&mut talk, Direction::Replies, bytes);
        }
        round_trips(&mut talk, 3..=3);
        talk.close();
        let (seen, counts) = observe(&talk.packets);
        assert_eq!((seen.lines(), counts.gaps), (focus(1..=3), 0), "{bytes:?}");
        assert!(seen.packets.iter().all(|packet| !packet.is_retransmission), "{bytes:?}");
        let sum = |direction| -> u32 {
            seen.packets.iter().filter(|packet| packet.direction == direction).map(|packet| packet.length).sum()
        };
        assert_eq!((sum(Direction::Requests), sum(Direction::Replies)), (48 + 3 * 4, 408 + 3 * 32), "{bytes:?}");
    }
}

#[test]
fn repeating_an_unacknowledged_byte_is_a_retransmission() {
    let mut talk = Talk::new();
    talk.open_x(L);
    let whole = request(L, GET_INPUT_FOCUS, 0, 1);
    talk.client(&whole[..3]).client(&whole[3..]);
    let mut again = talk.packets.last().unwrap().clone();
    again.at_ns += 200_000_000;
    talk.packets.push(again);
    let (seen, _) = observe(&talk.packets);
    assert_eq!(seen.packets.last().map(|packet| (packet.is_retransmission, packet.length)), Some((true, 1)));
}

#[test]
fn a_window_probe_byte_is_counted_with_the_data_after_it() {
    let mut talk = Talk::new();
    talk.open_x(L);
    let close = |talk: &mut Talk, window: u16| {
        talk.send(Direction::Replies, ACK, &[]);
        let bytes = &mut talk.packets.last_mut().unwrap().bytes;
        bytes[48..50].copy_from_slice(&window.to_be_bytes());
    };
    close(&mut talk, 0);
    let begin = talk.next[0];
    let requests = [request(L, MAP_WINDOW, 0, 2), request(L, GET_INPUT_FOCUS, 0, 1)].concat();
    for _ in 0..4 {
        talk.at_ns += 5_000_000_000;
        talk.next[0] = begin;
        talk.client(&requests[..1]);
        talk.next[0] = begin;
        close(&mut talk, 0);
    }
    close(&mut talk, 1000);
    talk.client(&requests).server(&reply(L, 2, 0, 0));
    let (seen, counts) = observe(&talk.packets);
    assert_eq!(seen.lines(), ["Request 1 MapWindow", "Request 2 GetInputFocus", "Reply 2 GetInputFocus"]);
    assert!(seen.packets.iter().all(|packet| !packet.is_retransmission) && counts.gaps == 0);
    let sent = seen.packets.iter().filter(|packet| packet.direction == Direction::Requests);
    assert_eq!(sent.map(|packet| packet.length).sum::<u32>(), 48 + 12);
}

#[test]
fn packets_longer_than_the_ip_length_field_are_read() {
    let mut talk = Talk::new();
    talk.open_x(L);
    let many: Vec<u8> = (0..50_000).flat_map(|_| request(L, MAP_WINDOW, 0, 2)).collect();
    talk.client(&many);
    let (seen, counts) = observe(&talk.packets);
    assert_eq!((seen.last().sequence, counts.gaps), (50_000, 0));
}
