// SPDX-License-Identifier: MIT
//! Edits replies to hide extensions and the proxy's own event selections, and compares two replies.

use crate::opcodes::HIDDEN;
use xqos_x11::ByteOrder;

/// Offset of the client's own event mask in a GetWindowAttributes reply.
const OWN_MASK: usize = 36;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Reports the extension as absent.
    Absent,
    /// Removes the hidden extensions from the list.
    List,
    /// Removes events that only the proxy selects from a window's attributes.
    Attributes { added: u32 },
}

impl Edit {
    pub fn apply(self, order: ByteOrder, reply: &mut Vec<u8>) {
        match self {
            Edit::Absent => reply.get_mut(8..32).into_iter().for_each(|fields| fields.fill(0)),
            Edit::List => hide(order, reply),
            Edit::Attributes { added } => {
                let selected = order.u32(reply, OWN_MASK).unwrap_or(0);
                order.put_u32(reply, OWN_MASK, selected & !added);
            }
        }
    }
}

/// A QueryExtension reply that reports an absent extension.
pub fn absent() -> [u8; 32] {
    let mut reply = [0; 32];
    reply[0] = 1;
    reply
}

fn hide(order: ByteOrder, reply: &mut Vec<u8>) {
    let mut names: Vec<u8> = Vec::new();
    let (mut count, mut rest) = (0, reply.get(32..).unwrap_or_default());
    for _ in 0..reply.get(1).copied().unwrap_or(0) {
        let Some((&length, after)) = rest.split_first() else { return };
        let Some((name, after)) = after.split_at_checked(usize::from(length)) else { return };
        rest = after;
        if !HIDDEN.iter().any(|hidden| hidden.as_bytes() == name) {
            count += 1;
            names.push(length);
            names.extend(name);
        }
    }
    names.resize(names.len().next_multiple_of(4), 0);
    reply.truncate(32);
    reply[1] = count;
    order.put_u32(reply, 4, names.len() as u32 / 4);
    reply.extend(names);
}

/// Whether two replies to the same question agree. Sequence numbers are ignored. With `has_valuators`, current device
/// positions are also ignored; clients read these with QueryPointer.
pub fn is_same(order: ByteOrder, one: &[u8], other: &[u8], has_valuators: bool) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let plain = |reply: &[u8]| {
        let mut reply = reply.to_vec();
        order.put_u16(&mut reply, 2, 0);
        if has_valuators {
            let _ = blank_values(order, &mut reply);
        }
        reply
    };
    plain(one) == plain(other)
}

/// Clears the current values of valuators in a reply to XIQueryDevice.
fn blank_values(order: ByteOrder, reply: &mut [u8]) -> Option<()> {
    const VALUATOR: u16 = 2;
    const VALUE: std::ops::Range<usize> = 28..36;
    let devices = order.u16(reply, 8)?;
    let mut at = 32;
    for _ in 0..devices {
        let (classes, name) = (order.u16(reply, at + 6)?, usize::from(order.u16(reply, at + 8)?));
        at += 12 + name.next_multiple_of(4);
        for _ in 0..classes {
            let (kind, words) = (order.u16(reply, at)?, usize::from(order.u16(reply, at + 2)?));
            if kind == VALUATOR && words >= 11 {
                reply.get_mut(at + VALUE.start..at + VALUE.end)?.fill(0);
            }
            at += 4 * words.max(1);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_extensions_are_not_in_the_list() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut reply = vec![0; 32];
            (reply[0], reply[1]) = (1, 4);
            for name in ["RANDR", "MIT-SHM", "DRI3", "GLX"] {
                reply.push(name.len() as u8);
                reply.extend(name.bytes());
            }
            Edit::List.apply(order, &mut reply);
            assert_eq!((reply[1], order.u32(&reply, 4)), (2, Some(3)));
            assert_eq!(&reply[32..], b"\x05RANDR\x03GLX\0\0");
        }
    }

    #[test]
    fn a_malformed_extension_list_stays_unchanged() {
        let mut reply = vec![0; 33];
        (reply[0], reply[1], reply[32]) = (1, 9, 200);
        let before = reply.clone();
        Edit::List.apply(ByteOrder::Little, &mut reply);
        assert_eq!(reply, before);
    }

    #[test]
    fn pointer_positions_are_ignored_in_comparisons() {
        let device = |value: u32| {
            let mut reply = vec![0; 32 + 12 + 4 + 44];
            (reply[0], reply[8], reply[32 + 6], reply[32 + 8]) = (1, 1, 1, 3);
            let class = 32 + 12 + 4;
            (reply[class], reply[class + 2]) = (2, 11);
            ByteOrder::Little.put_u32(&mut reply, class + 28, value);
            reply
        };
        let (one, mut other) = (device(3), device(4));
        assert!(is_same(ByteOrder::Little, &one, &other, true) && !is_same(ByteOrder::Little, &one, &other, false));
        other[33] = 1;
        assert!(!is_same(ByteOrder::Little, &one, &other, true));
    }
}
