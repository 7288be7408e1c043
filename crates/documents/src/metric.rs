//! Values of metrics as text.

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Nanoseconds.
    Time,
    /// Bytes of memory.
    Bytes,
    /// A count.
    Count,
    /// A plain number with two decimals.
    Ratio,
    /// Any number, with four figures.
    Number,
}

/// Formats a value as text.
pub fn text(unit: MetricUnit, value: f64) -> String {
    match unit {
        MetricUnit::Time => time(value),
        MetricUnit::Bytes => bytes(value),
        MetricUnit::Count => thousands(value),
        MetricUnit::Ratio => format!("{value:.2}"),
        MetricUnit::Number if value >= 1000.0 => thousands(value),
        MetricUnit::Number => {
            let decimals = if value >= 100.0 { 1 } else { 3 };
            format!("{value:.decimals$}")
        }
    }
}

/// Formats a duration with four significant digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e3, "us"),
    };
    let decimals = if value >= 100.0 {
        1
    } else if value >= 10.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$} {unit}")
}

/// Formats an amount of memory.
pub fn bytes(bytes: f64) -> String {
    const MIB: f64 = 1_048_576.0;
    if bytes >= 1024.0 * MIB {
        format!("{:.2} GiB", bytes / 1024.0 / MIB)
    } else {
        format!("{:.1} MiB", bytes / MIB)
    }
}

/// Formats a number with thousands separators.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_for_people() {
        assert_eq!(text(MetricUnit::Time, 1_234_567_890.0), "1.235 s");
        assert_eq!(text(MetricUnit::Time, 12_345_678.0), "12.35 ms");
        assert_eq!(text(MetricUnit::Time, 123_456.0), "123.5 us");
        assert_eq!(text(MetricUnit::Count, 1_234_567.0), "1,234,567");
        assert_eq!(text(MetricUnit::Count, 0.0), "0");
        assert_eq!(text(MetricUnit::Bytes, 1_572_864.0), "1.5 MiB");
        assert_eq!(text(MetricUnit::Ratio, 0.999), "1.00");
    }
}
