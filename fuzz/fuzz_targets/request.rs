// SPDX-License-Identifier: MIT
//! Reads random bytes as requests of a client, and as replies and events of a hostile server, in both byte orders.
//!
//! Nothing may panic, and a parsed request must survive encoding and decoding.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xqos_abi::{AdmissionReport, ClientList, Notify, ByteOrder, Request, ReservationReport, ServerInfo, Version};

fuzz_target!(|bytes: &[u8]| {
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        read_request(bytes, order);
        read_answers(bytes, order);
    }
});

fn read_request(bytes: &[u8], order: ByteOrder) {
    let Ok(request) = Request::parse(bytes, order) else { return };
    assert_eq!(bytes.get(1), Some(&request.minor()));
    for written_in in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        let written = request.encode_as(bytes[0], written_in);
        assert_eq!(written.len(), bytes.len());
        assert_eq!(Request::parse(&written, written_in), Ok(request));
    }
}

fn read_answers(bytes: &[u8], order: ByteOrder) {
    if let Ok(version) = Version::decode(bytes, order) {
        assert_eq!(Version::decode(&version.encode(1, order), order), Ok(version));
    }
    if let Ok(info) = ServerInfo::decode(bytes, order) {
        // Replacing invalid UTF-8 in the reason may have made the reason longer than the maximum.
        assert!(ServerInfo::decode(&info.encode(1, order), order).is_ok());
    }
    if let Ok(report) = ReservationReport::decode(bytes, order) {
        assert_eq!(ReservationReport::decode(&report.encode(1, order), order), Ok(report));
    }
    if let Ok(report) = AdmissionReport::decode(bytes, order) {
        assert_eq!(AdmissionReport::decode(&report.encode(1, order), order), Ok(report));
    }
    if let Ok(list) = ClientList::decode(bytes, order) {
        let again = ClientList::decode(&list.encode(1, order), order);
        assert_eq!(again.map(|again| again.clients.len()), Ok(list.clients.len()));
    }
    if let Ok(event) = Notify::decode(bytes, order) {
        assert_eq!(Notify::decode(&event.encode(64, 1, order), order), Ok(event));
    }
}
