// SPDX-License-Identifier: MIT
//! Enums whose values have names, in experiment files or on the command line.

/// Declares such an enum, with all its values and their names as `ALL`.
macro_rules! named {
    ($(#[$about:meta])* pub enum $Type:ident { $($(#[$doc:meta])* $Value:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Type { $($(#[$doc])* $Value,)* }

        impl $Type {
            pub const ALL: &[(&str, $Type)] = &[$(($name, $Type::$Value)),*];
        }
    };
}

pub(crate) use named;
