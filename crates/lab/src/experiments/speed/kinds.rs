//! What kind of test a label names, and which tests make a reduced Xmark.

use std::collections::{BTreeMap, BTreeSet};

/// In this order: the first that fits.
const KINDS: [(&str, &[&str]); 11] = [
    ("drawn with exclusive or", &["(xor) "]),
    ("windows", &["window (", "windows (", "window via"]),
    ("text", &["Char"]),
    ("images", &["PutImage", "GetImage"]),
    ("copies", &["Copy", "Scroll"]),
    ("circles and ellipses", &["circle", "ellipse"]),
    ("triangles, trapezoids, polygons", &["triangle", "trapezoid", "polygon"]),
    ("patterned rectangles", &["stippled rectangle", "tiled rectangle"]),
    ("rectangles", &["rectangle"]),
    ("dashed and wide lines", &["wide", "dashed"]),
    ("thin lines", &["line", "segment"]),
];
/// A dot, NoOperation, a graphics context, questions.
const OTHERS: &str = "dot, NoOperation, context, questions";

/// All, in the order in which they are shown.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    KINDS.iter().rev().map(|(kind, _)| *kind).chain([OTHERS])
}

/// About `count` labels: of each kind the heaviest, as many as befits the kind's part of the whole weight. The heaviest of
/// all kinds together would be lines, text and copies, and of half of the kinds nothing.
pub(super) fn reduced(weights: &BTreeMap<String, u32>, count: usize) -> BTreeSet<String> {
    let whole: u32 = weights.values().sum();
    let mut labels = BTreeSet::new();
    for kind in all() {
        let mut heaviest: Vec<(&String, u32)> =
            weights.iter().filter(|(label, _)| of(label) == kind).map(|(label, &weight)| (label, weight)).collect();
        heaviest.sort_by_key(|&(_, weight)| std::cmp::Reverse(weight));
        let part = f64::from(heaviest.iter().map(|&(_, weight)| weight).sum::<u32>()) / f64::from(whole.max(1));
        let befits = (part * count as f64).round().max(1.0) as usize;
        labels.extend(heaviest.into_iter().take(befits).map(|(label, _)| label.clone()));
    }
    labels
}

pub(super) fn of(label: &str) -> &'static str {
    let fits = |kind: &&(&str, &[&str])| kind.1.iter().any(|word| label.contains(word));
    KINDS.iter().find(fits).map_or(OTHERS, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_has_one_kind() {
        let expected = [
            ("(xor) 100-pixel line segment (2 kids)", "drawn with exclusive or"),
            ("100-pixel line segment (2 kids)", "thin lines"),
            ("Create and map subwindows (4 kids)", "windows"),
            ("Copy 100x100 from window to pixmap", "copies"),
            ("Char in 60-char line (9x15)", "text"),
            ("100-pixel wide dashed circle", "circles and ellipses"),
            ("100x100 wide rectangle outline", "rectangles"),
            ("10x10 161x145 opaque stippled rectangle", "patterned rectangles"),
            ("10x1 wide double-dashed line", "dashed and wide lines"),
            ("X protocol NoOperation", OTHERS),
        ];
        for (label, kind) in expected {
            assert_eq!(of(label), kind, "{label}");
            assert!(all().any(|one| one == kind), "{kind}");
        }
    }
    #[test]
    fn a_reduced_xmark_has_the_heaviest_of_every_kind() {
        let weights =
            [("100-pixel line", 28), ("10-pixel line", 30), ("Dot", 14), ("1-pixel line", 17), ("10-pixel circle", 1)];
        let weights = weights.map(|(label, weight)| (label.to_owned(), weight)).into();
        let expected = ["10-pixel circle", "10-pixel line", "100-pixel line", "Dot"].map(str::to_owned);
        assert_eq!(reduced(&weights, 2), BTreeSet::from(expected));
    }
}
