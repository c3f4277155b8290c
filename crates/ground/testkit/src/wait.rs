// SPDX-License-Identifier: MIT
//! Waits until a condition holds, for tests that have no event, count or descriptor to wait for.

use std::time::{Duration, Instant};

const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

/// Calls `look` until it returns a value, and fails after `limit`. Each pause is as long as the call before it, so that
/// calls that start a program do not load the machine.
#[track_caller]
pub fn find<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(looked.elapsed().clamp(PAUSES[0], PAUSES[1]));
    }
}

/// Waits until a condition holds, and fails after `limit`.
#[track_caller]
pub fn wait_for(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    find(what, limit, || is_so().then_some(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_returned_and_a_timeout_names_the_condition() {
        let mut looks = 0..3;
        assert_eq!(find("the last", Duration::from_secs(60), || looks.next().filter(|&look| look == 2)), 2);
        let in_vain = || wait_for("the end of time", Duration::from_millis(5), || false);
        let message = *std::panic::catch_unwind(in_vain).unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, "the end of time: not within 5ms");
    }
}
