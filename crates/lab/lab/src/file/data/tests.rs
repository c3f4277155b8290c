// SPDX-License-Identifier: MIT
//! Trials for tests of the evaluation.

use super::*;

impl<'a> At<'a> {
    pub fn of(data: &'a Data, cell: &[(&str, &str)], turn: u32) -> At<'a> {
        let cell = cell.iter().map(|&(axis, value)| (axis.to_owned(), value.to_owned())).collect();
        At { data, cell, turn }
    }
}

pub fn trial(case: &[(&str, &str)], turn: u32, samples: &[f64]) -> Trial {
    Trial {
        case: case.iter().map(|&(axis, value)| (axis.to_owned(), value.to_owned())).collect(),
        turn,
        samples: BTreeMap::from([("response".to_owned(), samples.to_vec())]),
        ..Trial::default()
    }
}

/// An axis `case` with stock and fair, two turns.
pub fn two_turns() -> Data {
    let of = |name: &str| (name.to_owned(), Setting::default());
    let axes = vec![AxisValues { name: "case".into(), values: vec![of("stock"), of("fair")] }];
    let trials = [
        trial(&[("case", "stock")], 0, &[10.0, 20.0, 30.0]),
        trial(&[("case", "fair")], 0, &[1.0, 2.0, 3.0]),
        trial(&[("case", "fair")], 1, &[2.0, 4.0, 6.0]),
        trial(&[("case", "stock")], 1, &[20.0, 40.0, 60.0]),
    ];
    Data::new(axes, trials)
}

#[test]
fn pooled_turns_have_all_samples() {
    let data = two_turns().pooled();
    let at = At::of(&data, &[("case", "stock")], 0);
    assert_eq!(at.samples("response").unwrap().len(), 6);
    assert_eq!(at.turns().count(), 1);
}
