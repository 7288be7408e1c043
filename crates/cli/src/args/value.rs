//! Values of options as people type them: seconds, times with a unit, percentages, sizes.

use std::time::Duration;

/// A number of seconds, such as `0.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
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
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" | "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err("expected a time such as 1ms, 50us or 0.1s".into()),
    };
    let number: f64 = number.parse().map_err(|_| "expected a time such as 1ms, 50us or 0.1s".to_owned())?;
    Ok((number * factor) as u64)
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
    let expected = || "expected a time such as 90s, 12h or 30d".to_owned();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let factor = match unit.trim() {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "y" => 365 * 86_400,
        _ => return Err(expected()),
    };
    number.checked_mul(factor).filter(|&seconds| seconds > 0).map(Duration::from_secs).ok_or_else(expected)
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
        for bad in ["", "ms", "1 hour", "-1ms"] {
            assert!(nanoseconds(bad).is_err(), "{bad}");
        }
    }
}
