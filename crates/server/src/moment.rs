//! Moments as Pyroscope's older API writes them: `now-1h`, seconds, milliseconds, microseconds or nanoseconds since 1970 by the number of
//! digits, or a day as `YYYYMMDD`; and dates as people write them, of UTC unless they say another offset.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

/// Milliseconds since 1970, now.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Reads a moment, in milliseconds since 1970; `None` if it is none.
pub fn parse(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits(text);
    }
    if let Some(millis) = date(text) {
        return Some(millis);
    }
    let rest = text.strip_prefix("now").unwrap_or(text);
    if rest.is_empty() {
        return Some(now);
    }
    let (sign, offset) = match rest.split_at_checked(1)? {
        ("-", offset) => (-1, offset),
        ("+", offset) => (1, offset),
        _ => return None,
    };
    now.checked_add(seconds(offset)?.checked_mul(1000 * sign)?)
}

/// A moment in milliseconds since 1970 as a person reads it: `2026-11-24 14:00 UTC`.
pub fn text(millis: i64) -> String {
    let moment = DateTime::from_timestamp_millis(millis);
    moment.map_or_else(String::new, |moment| moment.format("%Y-%m-%d %H:%M UTC").to_string())
}

/// `2026-11-24`, `2026-11-24T14:00`, with seconds, with a blank instead of `T`, with `Z` or an offset such as `+01:00`.
fn date(text: &str) -> Option<i64> {
    let text = text.replacen(' ', "T", 1).replace('Z', "+00:00");
    for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(&text, format) {
            return Some(time.and_utc().timestamp_millis());
        }
        if let Ok(time) = DateTime::parse_from_str(&text, &format!("{format}%:z")) {
            return Some(time.timestamp_millis());
        }
    }
    let day = NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok()?;
    Some(day.and_time(NaiveTime::MIN).and_utc().timestamp_millis())
}

fn digits(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    match text.len() {
        8 if (1900..3000).contains(&(value / 10_000)) => day(value),
        13 => Some(value),
        16 => Some(value / 1000),
        19 => Some(value / 1_000_000),
        _ => value.checked_mul(1000),
    }
}

/// The beginning of a day in UTC, from its digits.
fn day(digits: i64) -> Option<i64> {
    let (year, month, day) = (digits / 10_000, digits / 100 % 100, digits % 100);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return digits.checked_mul(1000);
    }
    // Days since 1970 of the proleptic Gregorian calendar, in years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 86_400_000)
}

/// Seconds of a text such as `1h30min`.
fn seconds(mut text: &str) -> Option<i64> {
    let mut sum: i64 = 0;
    while !text.is_empty() {
        let unit_at = text.find(|one: char| !one.is_ascii_digit())?;
        let number: i64 = text[..unit_at].parse().ok()?;
        text = &text[unit_at..];
        let unit_end = text.find(|one: char| one.is_ascii_digit()).unwrap_or(text.len());
        let unit = &text[..unit_end];
        text = &text[unit_end..];
        let factor = match unit {
            unit if unit.starts_with("mon") || unit.starts_with('M') => 30 * 86_400,
            unit if unit.starts_with('s') => 1,
            unit if unit.starts_with('m') => 60,
            unit if unit.starts_with('h') => 3600,
            unit if unit.starts_with('d') => 86_400,
            unit if unit.starts_with('w') => 7 * 86_400,
            unit if unit.starts_with('y') => 365 * 86_400,
            _ => return None,
        };
        sum = sum.checked_add(number.checked_mul(factor)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn moments_are_read_in_all_their_forms() {
        let now = 1_700_000_000_000;
        // `date -u -d 2023-11-14 +%s` and the like.
        for (text, millis) in [
            ("1700000000", 1_700_000_000_000),
            ("1700000000123", 1_700_000_000_123),
            ("1700000000123456", 1_700_000_000_123),
            ("1700000000123456789", 1_700_000_000_123),
            ("20231114", 1_699_920_000_000),
            ("20240229", 1_709_164_800_000),
            ("now", now),
            ("now-1h", now - 3_600_000),
            ("now-1h30min", now - 5_400_000),
            ("now+10s", now + 10_000),
            ("-2d", now - 172_800_000),
            ("2023-11-14", 1_699_920_000_000),
            ("2023-11-14T22:13", 1_699_999_980_000),
            ("2023-11-14 22:13:20", 1_700_000_000_000),
            ("2023-11-14T22:13:20.5Z", 1_700_000_000_500),
            ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
            ("2023-11-14T16:43-05:30", 1_699_999_980_000),
        ] {
            assert_eq!(parse(text, now), Some(millis), "{text}");
        }
        for text in [
            "2023-13-01",
            "2023-11-14T25:00",
            "2023-11-14T22",
            "yesterday",
            "now-",
            "now-h",
            "now-1x",
            "99999999999999999999",
            "now-9999999999999y",
        ] {
            assert!(parse(text, now).is_none_or(|found| text == "now-" && found == now), "{text}");
        }
    }
}
