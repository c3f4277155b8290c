// SPDX-License-Identifier: MIT
//! Counts redundant bytes of requests: unused bytes, and coordinates that repeat those of the preceding shape.
//!
//! Unused bytes are those between fields, and the padding after an array or a string. A library that does not clear
//! them sends old contents of its buffer, which compress badly. The padding inside lists, such as those of text
//! requests, is not counted.

use super::counts::ByName;
use super::figure::{Value, figures};
use super::names::{NameId, NameTable};
use crate::observe::{Kind, Message};

figures! {
    #[derive(Copy, Eq)]
    UnusedBytes;
    /// Requests with unused bytes.
    count: u64 { title: "COUNT" };
    bytes: u64 { title: "UNUSED BYTES" };
    /// Number of these bytes that are not 0.
    not_zero: u64 { title: "NOT ZERO" };
}

figures! {
    #[derive(Copy, Eq)]
    RepeatedCoordinates;
    shapes: u64 { title: "SHAPES" };
    coordinates: u64 { title: "COORDINATES" };
    /// Coordinates that also occur in the preceding shape of the request.
    repeated: u64;
}

#[derive(Clone, Debug, Default)]
pub struct Redundancy {
    pub unused: ByName<UnusedBytes>,
    pub repeated: ByName<RepeatedCoordinates>,
}

impl Redundancy {
    pub fn message(&mut self, message: &Message<'_>, name: NameId, names: &NameTable) {
        if message.kind != Kind::Request {
            return;
        }
        let mut found = UnusedBytes { count: 1, ..UnusedBytes::default() };
        names.layout(name).unused(message, |bytes| {
            found.bytes += bytes.len() as u64;
            found.not_zero += bytes.iter().filter(|&&byte| byte != 0).count() as u64;
        });
        if found.bytes > 0 {
            self.unused.at(name).merge(&found);
        }
        if let Some((first, size)) = shapes(message.name) {
            let first = if message.order().u16(message.bytes, 2) == Some(0) { first + 4 } else { first };
            let shapes = message.bytes.get(first..).unwrap_or_default();
            self.repeated.at(name).merge(&repeated(shapes, size));
        }
    }

    pub fn end(&mut self) {
        self.unused.end();
        self.repeated.end();
    }
}

/// Offset of the first shape of a request, and the bytes of a shape. Strips and fans repeat no coordinate.
fn shapes(request: &str) -> Option<(usize, usize)> {
    match request {
        "RENDER::Trapezoids" => Some((24, 40)),
        "RENDER::Triangles" => Some((24, 24)),
        "RENDER::AddTraps" => Some((12, 24)),
        _ => None,
    }
}

fn repeated(bytes: &[u8], size: usize) -> RepeatedCoordinates {
    let shapes: Vec<&[u8]> = bytes.chunks_exact(size).collect();
    let words =
        |shape: &[u8]| shape.chunks_exact(4).map(<[u8; 4]>::try_from).filter_map(Result::ok).collect::<Vec<_>>();
    let pairs = shapes.windows(2).map(|pair| (words(pair[0]), words(pair[1])));
    let repeated = pairs.map(|(before, shape)| shape.iter().filter(|word| before.contains(word)).count());
    RepeatedCoordinates {
        shapes: shapes.len() as u64,
        coordinates: (shapes.len() * size / 4) as u64,
        repeated: repeated.sum::<usize>() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Spec, make};

    fn of(specs: &[Spec<'_>]) -> (Redundancy, NameTable) {
        let (mut redundancy, mut names) = (Redundancy::default(), NameTable::default());
        for spec in specs {
            let id = names.id(spec.name);
            redundancy.message(&make(spec), id, &names);
        }
        (redundancy, names)
    }

    #[test]
    fn padding_and_unused_fields_are_counted() {
        let requests = [
            // Two bytes after the length of the name, and one after the name.
            Spec { name: "InternAtom", bytes: b"\x10\x00\x03\x00\x03\x00??abc?", ..Spec::default() },
            Spec { name: "InternAtom", bytes: b"\x10\x00\x03\x00\x04\x00\0\0abcd", ..Spec::default() },
            // The second byte.
            Spec { name: "GetInputFocus", bytes: b"\x2b\xff\x01\x00", ..Spec::default() },
            Spec { name: "MapWindow", bytes: b"\x08\x00\x02\x00\x01\x00\x00\x00", ..Spec::default() },
            Spec {
                name: "CreatePixmap",
                bytes: &[53, 24, 4, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
                ..Spec::default()
            },
            // Four more bytes follow the length.
            Spec {
                name: "RENDER::Composite",
                bytes: &[[139, 8, 0, 0].as_slice(), &[7; 4], &[3; 32]].concat(),
                ..Spec::default()
            },
            Spec { kind: Kind::Reply, name: "InternAtom", bytes: &[1; 32], ..Spec::default() },
            Spec { name: "Invented::request", bytes: &[1; 32], ..Spec::default() },
        ];
        let (redundancy, names) = of(&requests);
        let unused = redundancy.unused.named(&names);
        let figures = |name: &str| unused.get(name).map(|unused| (unused.count, unused.bytes, unused.not_zero));
        assert_eq!((figures("InternAtom"), figures("GetInputFocus")), (Some((2, 5, 3)), Some((1, 1, 1))));
        assert_eq!((figures("MapWindow"), figures("RENDER::Composite")), (Some((1, 1, 0)), Some((1, 3, 3))));
        assert_eq!(unused.len(), 4, "CreatePixmap uses all of its bytes: {unused:?}");
    }

    #[test]
    fn coordinates_of_the_preceding_trapezoid_are_counted() {
        let trapezoid = |top: u32, bottom: u32| {
            [top, bottom, 1000, top, 1000, bottom, 2000, top, 2000, bottom].map(u32::to_le_bytes).concat()
        };
        let header = [[139, 10, 36, 0].as_slice(), &[0; 20]].concat();
        let bytes = [header, trapezoid(10, 20), trapezoid(20, 30), trapezoid(50, 60)].concat();
        let (redundancy, names) = of(&[Spec { name: "RENDER::Trapezoids", bytes: &bytes, ..Spec::default() }]);
        // The second repeats its top (three times) and 4 horizontal coordinates; the third repeats only these 4.
        let expected = RepeatedCoordinates { shapes: 3, coordinates: 30, repeated: 7 + 4 };
        assert_eq!(redundancy.repeated.named(&names)["RENDER::Trapezoids"], expected);
    }
}
