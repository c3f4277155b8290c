// SPDX-License-Identifier: MIT
//! What a connection shows to be let in.

/// How a client proves that it may connect.
#[derive(Clone, Debug, Default)]
pub struct Authorization {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
}

/// An entry of an authority file that holds for every address and display.
pub fn authority_entry(name: &[u8], data: &[u8]) -> Vec<u8> {
    const FAMILY_WILD: u16 = 65535;
    let mut bytes = FAMILY_WILD.to_be_bytes().to_vec();
    for field in [b"", b"", name, data] {
        bytes.extend_from_slice(&(field.len() as u16).to_be_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}
