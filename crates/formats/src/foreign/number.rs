//! Converts numbers of any kind to weights, and rejects those that cannot be weights.

/// A weight, and whether it had a fraction; or the error.
pub(crate) type Weight = Result<(u64, bool), &'static str>;

/// Rounds a number to a weight, and returns whether it had a fraction.
///
/// # Errors
/// If it is negative, too large or not a number.
pub(crate) fn whole(value: f64) -> Weight {
    let whole = value.round();
    if value.is_nan() {
        return Err("is no number");
    }
    if whole < 0.0 {
        return Err(
            "is below zero, as in a difference of profiles: use the two profiles that it was made of",
        );
    }
    // 2^64 is representable, one less is not.
    if whole >= u64::MAX as f64 {
        return Err("is more than 2^64 - 1, which nothing can have measured");
    }
    Ok((whole as u64, (whole - value).abs() > 1e-3))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn only_what_can_be_a_weight_is_one() {
        assert_eq!(
            [0.0, 2.0, 2.4, 2.6, -0.2].map(|value| whole(value).unwrap()),
            [(0, false), (2, false), (2, true), (3, true), (0, true)]
        );
        for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 18_446_744_073_709_551_616.0] {
            assert!(whole(bad).is_err(), "{bad}");
        }
        assert_eq!(whole(18_446_744_073_709_549_568.0), Ok((18_446_744_073_709_549_568, false)));
    }
}
