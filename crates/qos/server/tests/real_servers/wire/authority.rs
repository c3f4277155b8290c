// SPDX-License-Identifier: MIT
//! The authorization data of a connection.

use super::Wire;

pub const COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";

/// An authorization that a client sends when it connects.
#[derive(Clone, Debug, Default)]
pub struct Authorization {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
}

impl Authorization {
    pub fn cookie(data: &[u8]) -> Authorization {
        Authorization { name: COOKIE.to_vec(), data: data.to_vec() }
    }
}

impl Wire {
    /// Creates a cookie that makes clients untrusted. Returns `None` if the server has no SECURITY.
    pub fn untrusted_cookie(&mut self) -> Option<Authorization> {
        const GENERATE_AUTHORIZATION: u8 = 1;
        const TRUST_LEVEL: u32 = 2;
        const UNTRUSTED: u32 = 1;
        let security = self.extension("SECURITY")?;
        let request = self.message(security.major, GENERATE_AUTHORIZATION).u16(COOKIE.len() as u16).u16(0);
        let mut padded = COOKIE.to_vec();
        padded.resize(padded.len().next_multiple_of(4), 0);
        let reply = self.ask(&request.u32(TRUST_LEVEL).raw(&padded).u32(UNTRUSTED).finish()).unwrap();
        let length = usize::from(self.u16_in(&reply, 12));
        Some(Authorization::cookie(&reply[32..32 + length]))
    }
}

/// An entry of an authority file that is valid for every address and display.
pub fn authority_entry(name: &[u8], data: &[u8]) -> Vec<u8> {
    const FAMILY_WILD: u16 = 65535;
    let mut bytes = FAMILY_WILD.to_be_bytes().to_vec();
    for field in [b"", b"", name, data] {
        bytes.extend_from_slice(&(field.len() as u16).to_be_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}
