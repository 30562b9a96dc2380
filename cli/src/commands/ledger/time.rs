//! Times on the command line and in lists. Records have microseconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use toolward_ledger::record::Number;
use toolward_signing::timestamp::Timestamp;

const MICROS: u64 = 1_000_000;

/// Reads a time: RFC 3339 in UTC, a date, or how long ago (`30m`, `12h`, `7d`).
pub(super) fn parse(text: &str) -> Result<Number, String> {
    let seconds = match ago(text) {
        Some(ago) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.unwrap_or_default().as_secs().checked_sub(ago)
        }
        None => {
            let time = Timestamp::parse(text);
            let time = time.or_else(|_| Timestamp::parse(&format!("{text}T00:00:00Z")));
            time.ok().and_then(|time| u64::try_from(time.unix()).ok())
        }
    };
    let seconds = seconds
        .ok_or("expected a time as 2026-05-01T12:00:00Z, a date, or how long ago: 30m, 12h, 7d")?;
    Ok(Number::from(seconds.saturating_mul(MICROS)))
}

fn ago(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// A time as people read it: RFC 3339 in UTC, to the second.
pub(in crate::commands) fn shown(at: Number) -> String {
    let seconds = i64::try_from(at.get() / MICROS).unwrap_or(i64::MAX);
    // Clocks may have said anything.
    Timestamp::from_unix(seconds).map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_moments_or_how_long_ago() {
        assert_eq!(parse("1970-01-02").unwrap().get(), 86_400 * MICROS);
        assert_eq!(parse("1970-01-01T00:00:07Z").unwrap().get(), 7 * MICROS);
        let now = parse("0s").unwrap().get();
        let hour = parse("1h").unwrap().get();
        assert!((3600..3610).contains(&((now - hour) / MICROS)));
        for wrong in [
            "",
            "d",
            "yesterday",
            "-1d",
            "1w",
            "99999999999999999999d",
            "9999999999999d",
            "ü",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(shown(parse("1970-01-02").unwrap()), "1970-01-02T00:00:00Z");
        assert_eq!(shown(Number::from(u64::MAX)), "2255-06-05T23:47:34Z");
    }
}
