// SPDX-License-Identifier: MIT
//! The values and the help of the settings. Generated from proto/xqos.xml by proto/generate.py: edit that file instead.

use crate::range::Range;

ranges! {
    BUDGET "In microseconds.": u32 = 100..=10_000_000, 100, 0, [];
    PERIOD "In microseconds.": u32 = 1000..=10_000_000, 1000, 0, [];
    WEIGHT "In hundredths.": u32 = 1..=10_000, 1, 100, []
        "0.01 to 100; 1 is the default";
    PRIORITY "A number.": i32 = -1000..=1000, -1000, 0, []
        "-1000 to 1000; larger values are served first; 0 is the default";
    CAP "In millionths.": u32 = 10_000..=1_000_000, 10_000, 0, [];
    SLICE "In microseconds.": u32 = 100..=1_000_000, 100, 0, [("none", 0)]
        "100us to 1s, or none for the default of all clients";
    PACING "In microseconds.": u32 = 1000..=1_000_000, 1000, 0, [("off", 0)]
        "How long a client that uncovers windows waits for their clients to redraw, 1ms to 1s, or 'off'";
    DESKTOP "In millionths.": u32 = 0..=900_000, 50_000, 666_667, [("on", 666_667), ("off", 0)]
        "Serve compositors and window managers first: on (initially), off, or their maximum share under contention, \
         0.05 to 0.9 [fair]";
    CUT "In microseconds.": u32 = 50..=100_000, 50, 0, [("on", 250), ("off", 0)]
        "Cut long requests, to serve other clients in between: off (initially), on (after 0.25ms), or after what \
         time, 0.05ms to 100ms";
    USER_LIMIT "In millionths.": u32 = 0..=950_000, 10_000, 0, [("off", 0)]
        "Maximum sum of one user's reservations, 0.01 to 0.95, or off; does not apply to root and the server's user";
    POLICY_SLICE "In microseconds.": u32 = 100..=1_000_000, 100, 5000, []
        "Maximum time for one client while others wait, 0.1ms to 1s; initially 5ms [fair, fixed]";
    TIMER_INTERVAL "In microseconds.": u32 = 100..=1_000_000, 100, 5000, []
        "Length of a turn, after which the priority of a busy client falls, 0.1ms to 1s [smart]";
    MAXIMUM_SLICE "In microseconds.": u32 = 100..=1_000_000, 100, 15_000, []
        "Maximum turn of a client that runs alone, 0.1ms to 1s [smart]";
    MAX_UTILIZATION "In millionths.": u32 = 0..=950_000, 1, 900_000, []
        "Maximum sum of all reservations, up to 0.95, initially 0.9; the rest stays available to other clients";
    BLOCKING "In microseconds.": u32 = 0..=4_294_967_295, 0, 0, [("observed", 0)]
        "Blocking time to assume when admitting reservations: a time, or 'observed'";
}

/// The help of the option for the setting Grouping.
pub const GROUPING_HELP: &str =
    "Which clients share one allotment: none, those of one application (initially), or those of one user [fair]";
