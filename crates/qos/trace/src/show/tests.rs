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
