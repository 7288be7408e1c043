//! Values of options as people type them: seconds, times with a unit, percentages, sizes.

use std::time::Duration;

/// Units of time, in nanoseconds.
const UNITS: [(&str, f64); 11] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
    ("w", 7.0 * 86_400e9),
    ("y", 365.0 * 86_400e9),
];

/// A time in nanoseconds: a number with a unit, or without one in `default`.
fn time(text: &str, default: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = if unit.is_empty() { default } else { unit.trim() };
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(number.parse::<f64>().ok()? * factor)
}

/// A time such as `30s` or `5m`; without a unit in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let ns = time(text, "s").ok_or("expected seconds or a time such as 0.5, 30s or 5m")?;
    Duration::try_from_secs_f64(ns / 1e9).map_err(|error| error.to_string())
}

/// A percentage from 0 to 100, such as `0.5%`, also without the sign.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0 to 100".into()),
    }
}

/// A time such as `1ms`; without a unit in nanoseconds.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    time(text, "ns").map(|ns| ns as u64).ok_or_else(|| "expected a time such as 1ms, 50us or 0.1s".into())
}

/// A label such as `region=eu`.
#[cfg(any(feature = "agent", feature = "server"))]
pub fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A long time such as `30d`.
#[cfg(feature = "server")]
pub fn period(text: &str) -> Result<Duration, String> {
    let seconds = time(text, "").map(|ns| ns / 1e9).filter(|&seconds| seconds >= 1.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected a time such as 90s, 12h or 30d".into())
}

/// A number of bytes, such as `256M`.
pub fn size(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 256M or 1G".to_owned();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(expected()),
    };
    let bytes = number.checked_mul(1 << shift).ok_or_else(expected)?;
    if bytes < 1 << 20 { Err("at least 1M; plumb alone needs about 15M".into()) } else { Ok(bytes) }
}

/// An address to listen on: `127.0.0.1:4041`, or a port of this machine alone: `localhost:4041`, `4041`.
#[cfg(feature = "server")]
pub fn address(text: &str) -> Result<std::net::SocketAddr, String> {
    if let Ok(port) = text.strip_prefix("localhost:").unwrap_or(text).parse::<u16>() {
        return Ok((std::net::Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:4041".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "server")]
    #[test]
    fn addresses_have_a_port() {
        for good in ["127.0.0.1:4041", "localhost:4041", "4041"] {
            assert_eq!(address(good), Ok(([127, 0, 0, 1], 4041).into()));
        }
        assert_eq!(address("[::1]:80").map(|one| one.port()), Ok(80));
        for bad in ["", "localhost", "127.0.0.1", "example.com:80", "99999"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("1 GiB"), Ok(1 << 30));
        assert_eq!(size("2T"), Ok(2 << 40));
        assert_eq!(size("1048576"), Ok(1 << 20));
        for bad in ["", "M", "1P", "-1M", "64k", "1.5G", "99999999999999999999", "18446744073709551615G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(nanoseconds("1ms"), Ok(1_000_000));
        assert_eq!(nanoseconds("50us"), Ok(50_000));
        assert_eq!(nanoseconds("0.5s"), Ok(500_000_000));
        assert_eq!(nanoseconds("0"), Ok(0));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("22m"), Ok(Duration::from_secs(22 * 60)));
        for bad in ["", "ms", "1 hour", "-1ms", "1.2.3"] {
            assert!(nanoseconds(bad).is_err(), "{bad}");
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
