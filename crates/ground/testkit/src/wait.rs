// SPDX-License-Identifier: MIT
//! Waits until a condition holds. A test that knows an event, a count or a descriptor to wait for needs none of this.

use std::time::{Duration, Instant};

const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

/// Looks again and again until there is something, and fails after `limit`. The pauses are as long as a look takes, so
/// that starting a program at each look does not load the machine.
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
    fn what_is_found_is_returned_and_what_is_not_is_named() {
        let mut looks = 0..3;
        assert_eq!(find("the last", Duration::from_secs(60), || looks.next().filter(|&look| look == 2)), 2);
        let in_vain = || wait_for("the end of time", Duration::from_millis(5), || false);
        let message = *std::panic::catch_unwind(in_vain).unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, "the end of time: not within 5ms");
    }
}
