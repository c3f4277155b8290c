//! Loading.
use crate::fixture::{Fixture, beside_others, is_missing, setup};
use xqos_core::PolicyKind;
use xqos_lab::server::Kind;

#[test]
fn every_kind_of_server_is_armed_with_fair() {
    let _turn = beside_others();
    for kind in Kind::ALL {
        if is_missing(kind) {
            continue;
        }
        let fixture = Fixture::start(&setup(kind));
        let info = fixture.info();
        assert!(info.armed && info.policy == PolicyKind::Fair, "{kind:?}: {info:?}");
    }
}
