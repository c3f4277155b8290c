//! x
use crate::fixture::{beside_others, xvfb_with};
use xqos_abi::Order;
use xqos_core::PolicyKind;
use crate::wire::opcode;

#[test]
fn a_swapped_client_under_every_policy() {
    let _turn = beside_others();
    for policy in PolicyKind::ALL {
        let mut fixture = xvfb_with(policy);
        let mut wire = fixture.wire(Order::Swapped);
        for _ in 0..3 {
            wire.sync();
            let request = wire.message(opcode::NO_OPERATION, 0).finish();
            wire.tell(&request).unwrap();
            let _canvas = wire.canvas(100, 100);
        }
        drop(wire);
        fixture.assert_armed();
    }
}
