//! Dates and times, in UTC, as recordings and benchmarks carry them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today: `2026-01-31`.
pub fn today() -> String {
    date(since_1970() / 86_400)
}

/// Now: `2026-01-31T23:59:59Z`.
pub fn now() -> String {
    moment(since_1970())
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn moment(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{}T{hours:02}:{minutes:02}:{:02}Z", date(seconds / 86_400), seconds % 60)
}

/// The date so many days after 1970-01-01, in the Gregorian calendar.
fn date(mut days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!((date(0), date(59), date(19_782)), ("1970-01-01".into(), "1970-03-01".into(), "2024-02-29".into()));
        assert_eq!(date(20_453), "2025-12-31");
    }

    #[test]
    fn moments_have_times() {
        assert_eq!(moment(86_400 + 3_661), "1970-01-02T01:01:01Z");
    }
}
