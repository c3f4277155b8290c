// SPDX-License-Identifier: MIT
//! The values and the help of the settings. Generated from proto/xqos.xml by proto/generate.py: edit that file instead.

use crate::range::{Range, Unit};

ranges! {
    BUDGET Micros: u32 = 100..=10_000_000, 100, 0, [];
    PERIOD Micros: u32 = 1000..=10_000_000, 1000, 0, [];
    WEIGHT Hundredths: u32 = 1..=10_000, 1, 100, []
        finer "0.01, the step of weights"
        wanted "a weight: write a number from 0.01 to 100, such as 2 or 0.5"
        help "0.01 to 100; 1 is the default";
    PRIORITY Whole: i32 = -1000..=1000, -1000, 0, []
        wanted "a priority: write a whole number from -1000 to 1000"
        help "-1000 to 1000; larger values are served first; 0 is the default";
    CAP Percent: u32 = 10_000..=1_000_000, 10_000, 0, []
        finer "0.0001%, the step of shares"
        wanted "a share: write a percentage from 1 to 100, such as \"20%\"";
    SLICE Micros: u32 = 100..=1_000_000, 100, 0, [("none", 0)]
        wanted "the word none"
        help "100us to 1s, or none for the default of all clients";
    PACING Micros: u32 = 1000..=1_000_000, 1000, 0, [("off", 0)]
        wanted "the word 'off'"
        help "How long a client that uncovers windows waits for their clients to redraw, 1ms to 1s, or 'off'";
    DESKTOP Millionths: u32 = 0..=900_000, 50_000, 666_667, [("on", 666_667), ("off", 0)]
        wanted "a setting: write on, off, or a number from 0.05 to 0.9, such as 0.5"
        help "Serve compositors and window managers first: on (initially), off, or their maximum share under \
         contention, 0.05 to 0.9 [fair]";
    CUT Micros: u32 = 50..=100_000, 50, 0, [("on", 250), ("off", 0)]
        wanted "on or off"
        help "Cut long requests, to serve other clients in between: off (initially), on (after 0.25ms), or the \
         time after which to cut, 0.05ms to 100ms";
    USER_LIMIT Millionths: u32 = 0..=950_000, 10_000, 0, [("off", 0)]
        wanted "a limit: write off, or a number from 0.01 to 0.95, such as 0.3"
        help "Maximum sum of one user's reservations, 0.01 to 0.95, or off; does not apply to root and the \
         server's user";
    POLICY_SLICE Micros: u32 = 100..=1_000_000, 100, 5000, []
        help "Maximum time for one client while others wait, 0.1ms to 1s; initially 5ms [fair, fixed]";
    TIMER_INTERVAL Micros: u32 = 100..=1_000_000, 100, 5000, []
        help "Length of a turn, after which the priority of a busy client falls, 0.1ms to 1s [smart]";
    MAXIMUM_SLICE Micros: u32 = 100..=1_000_000, 100, 15_000, []
        help "Maximum turn of a client that runs alone, 0.1ms to 1s [smart]";
    MAX_UTILIZATION Millionths: u32 = 0..=950_000, 1, 900_000, []
        finer "a millionth"
        wanted "a share: write a number above 0 and at most 0.95, such as 0.9"
        help "Maximum sum of all reservations, up to 0.95, initially 0.9; the rest stays available to other \
         clients";
    BLOCKING Micros: u32 = 0..=4_294_967_295, 0, 0, [("observed", 0)]
        wanted "the word 'observed'"
        help "Blocking time to assume when admitting reservations: a time, or 'observed'";
}

/// The help of the option for the setting Grouping.
pub const GROUPING_HELP: &str =
    "Which clients share one allotment: none, those of one application (initially), or those of one user [fair]";
