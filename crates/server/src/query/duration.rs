//! Durations in messages that clients may show: in Go's and in Prometheus' format.

use std::fmt;

/// Milliseconds as Go prints a duration: `166h48m14.865s`.
pub(crate) struct GoDuration(pub u128);

impl fmt::Display for GoDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0 / 1000, self.0 % 1000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(out, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(out, "{minutes}m")?;
        }
        if hours == 0 && minutes == 0 && seconds == 0 && millis > 0 {
            return write!(out, "{millis}ms");
        }
        let fraction = format!("{millis:03}");
        match fraction.trim_end_matches('0') {
            "" => write!(out, "{seconds}s"),
            fraction => write!(out, "{seconds}.{fraction}s"),
        }
    }
}

/// Milliseconds as Prometheus prints a duration: `1d`, `1h30m`.
pub(crate) struct PrometheusDuration(pub u128);

impl fmt::Display for PrometheusDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return out.write_str("0s");
        }
        // Years and weeks are used only for exact multiples.
        let units = [
            ("y", 31_536_000_000, true),
            ("w", 604_800_000, true),
            ("d", 86_400_000, false),
            ("h", 3_600_000, false),
            ("m", 60_000, false),
            ("s", 1000, false),
            ("ms", 1, false),
        ];
        for (unit, millis, exact) in units {
            if exact && !rest.is_multiple_of(millis) {
                continue;
            }
            if rest >= millis {
                write!(out, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_and_prometheus_do() {
        // Answers of Pyroscope, and examples from Go's and Prometheus' documentation.
        let go = |millis| GoDuration(millis).to_string();
        assert_eq!(go(((166 * 60 + 48) * 60 + 14) * 1000 + 865), "166h48m14.865s");
        assert_eq!((go(0), go(1500), go(3_600_000)), ("0s".into(), "1.5s".into(), "1h0m0s".into()));
        assert_eq!(go(12), "12ms");
        let prometheus = |millis| PrometheusDuration(millis).to_string();
        assert_eq!((prometheus(86_400_000), prometheus(5_400_000)), ("1d".into(), "1h30m".into()));
        assert_eq!((prometheus(604_800_000), prometheus(1)), ("1w".into(), "1ms".into()));
    }
}
