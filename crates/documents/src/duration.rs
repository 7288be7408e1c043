//! Durations as text, in the unit that suits them.

/// Nanoseconds in the unit that suits them.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.3} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.0} µs", ns / 1e3),
    }
}

/// Nanoseconds, also few of them.
pub fn short_time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e5 => format!("{:.2} µs", ns / 1e3),
        ns => time(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        assert_eq!([1.5e9, 2.5e6, 3e3].map(time), ["1.500 s", "2.50 ms", "3 µs"]);
        assert_eq!([40.0, 2e3, 2e6].map(short_time), ["40 ns", "2.00 µs", "2.00 ms"]);
    }
}
