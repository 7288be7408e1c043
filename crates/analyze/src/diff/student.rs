//! Student's t distribution, for means of few runs; with infinite degrees of freedom it is the normal one.
//!
//! Computed from the regularized incomplete beta function as a continued fraction (Abramowitz and Stegun, 26.7.1 and 26.5.8; the fraction is
//! evaluated by Lentz' method).

/// Returns the probability that |t| is at least this with `freedom` degrees of freedom, which may be infinite.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    let t = t.abs();
    if freedom.is_infinite() {
        return libm::erfc(t / std::f64::consts::SQRT_2);
    }
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Returns the |t| that is exceeded with probability `p`, above 0 and below 1.
pub(super) fn exceeded(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // With one degree of freedom t is about 2 / (pi p), so the loop ends.
    while two_sided(high, freedom) > p && high < 1e18 {
        high *= 2.0;
    }
    while high - low > 1e-12 * high {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) > p { low = middle } else { high = middle }
    }
    high
}

/// Degrees of freedom of the sum of two variances, each with its own (Welch, The generalization of "Student's" problem, 1947).
pub(super) fn welch(variances: [f64; 2], freedoms: [f64; 2]) -> f64 {
    let sum = variances[0] + variances[1];
    let part = |side: usize| variances[side] * variances[side] / freedoms[side];
    sum * sum / (part(0) + part(1)).max(f64::MIN_POSITIVE)
}

fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on the other side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() * fraction(x, a, b) / a
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const SMALL: f64 = 1e-300;
    let away = |value: f64| if value.abs() < SMALL { SMALL } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..1000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_that_of_scipy() {
        // 2 * scipy.stats.t.sf(t, df); the last: 2 * scipy.stats.norm.sf(t). scipy 1.17.1
        for (t, freedom, p) in [
            (1.0, 1.0, 0.5),
            (2.0, 2.0, 0.18350341907227397),
            (2.776, 4.0, 0.05002277831997642),
            (12.0, 3.5, 0.0005745341928561276),
            (0.3, 17.2, 0.7677725752776239),
            (5.0, 200.0, 1.2501981277715407e-06),
            (2.5, f64::INFINITY, 0.012419330651552265),
        ] {
            let found = two_sided(t, freedom);
            assert!((found / p - 1.0).abs() < 1e-9, "t {t}, {freedom}: {found} of {p}");
        }
        assert_eq!(two_sided(0.0, 3.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy.stats.t.isf(p / 2, df)
        for (p, freedom, t) in [
            (0.05, 1.0, 12.706204736174705),
            (0.05, 4.0, 2.7764451051977943),
            (1e-6, 2.0, 999.9992499998438),
            (0.01, 7.7, 3.39372686761901),
            (0.05, f64::INFINITY, 1.9599639845400545),
        ] {
            let found = exceeded(p, freedom);
            assert!((found / t - 1.0).abs() < 1e-9, "p {p}, {freedom}: {found} of {t}");
        }
    }
}
