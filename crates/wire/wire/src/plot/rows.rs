// SPDX-License-Identifier: MIT
//! Rows of numbers, packed by column as differences to the previous row. A message takes about eight bytes.
//!
//! A number is stored in as many bytes as it needs, seven bits in each; the highest bit means that more bytes follow.
//! Signed differences are zigzag-encoded. The page's script decodes the same format.

use std::array;

#[derive(Clone, Debug)]
pub struct Rows<const N: usize> {
    pub columns: [Vec<u8>; N],
    last: [u64; N],
    pub count: usize,
}

impl<const N: usize> Default for Rows<N> {
    fn default() -> Rows<N> {
        Rows { columns: array::from_fn(|_| Vec::new()), last: [0; N], count: 0 }
    }
}

impl<const N: usize> Rows<N> {
    pub fn push(&mut self, row: [u64; N]) {
        for (place, value) in row.into_iter().enumerate() {
            let difference = value.wrapping_sub(self.last[place]) as i64;
            write(((difference << 1) ^ (difference >> 63)) as u64, &mut self.columns[place]);
        }
        self.last = row;
        self.count += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = [u64; N]> + '_ {
        let mut rest = self.columns.each_ref().map(Vec::as_slice);
        let mut row = [0_u64; N];
        (0..self.count).map(move |_| {
            for (value, bytes) in row.iter_mut().zip(&mut rest) {
                let folded = read(bytes);
                *value = value.wrapping_add((folded >> 1) ^ (folded & 1).wrapping_neg());
            }
            row
        })
    }
}

fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_packing() {
        let rows = [[0, 5], [u64::MAX, 4], [1, 4], [1 << 40, 1 << 63], [u64::MAX / 2, 0]];
        let mut kept = Rows::default();
        rows.iter().for_each(|&row| kept.push(row));
        assert_eq!(kept.iter().collect::<Vec<_>>(), rows);
        assert_eq!(kept.count, rows.len());
    }

    #[test]
    fn a_steady_stream_takes_a_byte_for_each_number() {
        let mut kept = Rows::default();
        (0..1000).for_each(|at| kept.push([at * 60, at]));
        assert_eq!(kept.columns.each_ref().map(Vec::len), [1000, 1000]);
    }
}
