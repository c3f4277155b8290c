// SPDX-License-Identifier: MIT
//! Texts and statistics of small traces.

use super::*;
use xqos_abi::trace::Level;
use xqos_core::ClientId;

#[test]
fn a_line_has_time_kind_client_and_details() {
    let mut model = Model::new();
    let begin = Entry::Begin { level: Level::Slices, server_pid: 9, words: 0 };
    model.take(&Event { at: Time(1_000_000), what: begin });
    let client = ClientId(3);
    let service = Service::new(client, Time(2_000_000), Time(12_000_000));
    let served = Fact::Served(Service { ended_early: true, requests: 1, last_request: 73, ..service });
    let text = line(&Event { at: Time(12_000_000), what: Entry::Fact(served) }, &model, &Names::default());
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.join(" "), "0.011000 deactivation client 3 10.0 ms, 1 request, last GetImage, ended early");
}

#[test]
fn records_are_selected_by_kind() {
    let filter = Filter { kinds: vec!["end".to_owned()], ..Filter::default() };
    let model = Model::new();
    assert!(filter.matches(&Event { at: Time(1), what: Entry::End }, &model));
    assert!(!filter.matches(&Event { at: Time(1), what: Entry::Fact(Fact::Replenish) }, &model));
}

/// Serves a client between two times in ms. The client has waited since `activation`.
fn serve(model: &mut Model, id: u16, activation: u64, (from, to): (u64, u64)) {
    const MS: u64 = 1_000_000;
    let client = ClientId(id);
    let service = Service::new(client, Time(from * MS), Time(to * MS));
    let served = Entry::Fact(Fact::Served(Service { requests: 2, last_request: 73, ..service }));
    model.take(&Event { at: Time(activation * MS), what: Entry::Fact(Fact::Arrived { client }) });
    model.take(&Event { at: Time(to * MS), what: served });
}

fn connect(model: &mut Model, id: u16, pid: u32, name: [u8; 16]) {
    let (client, at) = (ClientId(id), model.now);
    let identity = Entry::Identity { client, pid, base: pid << 8, uid: 7 };
    for what in
        [Entry::Fact(Fact::Connected { client, descriptor: 4 }), identity, Entry::Name { client, part: 0, bytes: name }]
    {
        model.take(&Event { at, what });
    }
}

#[test]
fn departed_clients_are_summed_up_by_program() {
    let mut model = Model::new();
    connect(&mut model, 1, 10, *b"mpv\0\0\0\0\0\0\0\0\0\0\0\0\0");
    for turn in 0..5 {
        let begin = turn * 20;
        connect(&mut model, 2, 100 + turn as u32, *b"xwd\0\0\0\0\0\0\0\0\0\0\0\0\0");
        serve(&mut model, 2, begin, (begin, begin + 4));
        serve(&mut model, 1, begin + 1, (begin + 4, begin + 5));
        model.take(&Event { at: model.now, what: Entry::Fact(Fact::Disconnected { client: ClientId(2) }) });
    }
    connect(&mut model, 2, 200, *b"xprop\0\0\0\0\0\0\0\0\0\0\0");
    serve(&mut model, 2, 90, (90, 100));
    model.take(&Event { at: model.now, what: Entry::Fact(Fact::Disconnected { client: ClientId(2) }) });

    let statistics = Statistics::of(&model, &Names::default());
    let [xwd] = &statistics.departed[..] else { panic!("{:?}", statistics.departed) };
    assert_eq!((xwd.program.as_deref(), xwd.uid, xwd.clients, xwd.requests), (Some("xwd"), Some(7), 5, 10));
    assert!((xwd.share - 0.20).abs() < 1e-9, "20 ms of 100 ms: {}", xwd.share);
    let alone: Vec<&str> = statistics.clients.iter().filter(|one| !one.summed).map(|one| one.name.as_str()).collect();
    assert_eq!(alone, ["xprop (200)", "mpv (10)"], "the only one of its program stays a client");
    let shares = statistics.clients.iter().filter(|one| !one.summed).map(|one| one.share).sum::<f64>() + xwd.share;
    assert!((shares - 0.35).abs() < 1e-9, "the server was busy for 35 ms of 100 ms: {shares}");
    let [delay] = &statistics.delays[..] else { panic!("{:?}", statistics.delays) };
    assert_eq!((delay.who.as_str(), delay.why.as_str()), ("mpv (10)", "behind xwd x5 GetImage"));
    assert!((delay.ms - 15.0).abs() < 1e-9, "3 ms each time: {}", delay.ms);
}
