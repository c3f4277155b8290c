//! Numbers in columns: as many characters as there is room for, and the unit that suits.

/// A time in seven characters at most.
pub fn time(ms: f64) -> String {
    match ms.abs() {
        0.0 => "0".to_owned(),
        below if below < 0.01 => format!("{:.1}us", ms * 1000.0),
        below if below < 10.0 => format!("{ms:.2}ms"),
        below if below < 1000.0 => format!("{ms:.0}ms"),
        below if below < 1e5 => format!("{:.2}s", ms / 1e3),
        _ => format!("{:.0}s", ms / 1e3),
    }
}

/// A count in six characters at most.
pub fn count(number: f64) -> String {
    match number {
        below if below < 10.0 => format!("{number:.1}"),
        below if below < 1e4 => format!("{number:.0}"),
        below if below < 1e7 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.0}M", number / 1e6),
    }
}

/// How long ago, in seven characters at most.
pub fn ago(ms: f64) -> String {
    match (ms / 1e3) as u64 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_long_ago_is_told_in_larger_units() {
        let told = [0.0, 119_999.0, 120_000.0, 7.2e6, 1.8e8, 1e12].map(ago);
        assert_eq!(told, ["0 s", "119 s", "2 min", "2 h", "2 d", "11574 d"]);
    }

    #[test]
    fn times_and_counts_fit_their_columns() {
        for ms in [0.0, 0.0004, 0.009, 0.5, 9.994, 12.0, 999.0, 1000.0, 99_999.0, 1e6, 9e8] {
            assert!(time(ms).len() <= 8, "{}", time(ms));
        }
        for number in [0.0, 9.94, 500.0, 9_999.0, 1e6, 5e7] {
            assert!(count(number).len() <= 6, "{}", count(number));
        }
    }
}
