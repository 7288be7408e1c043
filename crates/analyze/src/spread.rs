//! Medians, quartiles and slopes of measurements: robust against a few bad values.

/// The quartiles of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The lower quartile.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub upper: f64,
}

impl Spread {
    /// Computes the quartiles of `values`; `None` if there are none. Interpolates linearly between two measurements
    /// (type 7 of Hyndman and Fan, as numpy and R do).
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        (!sorted.is_empty()).then(|| Spread { lower: at(0.25), median: at(0.5), upper: at(0.75) })
    }
}

/// Returns the Theil-Sen slope of y over x: the median of the slopes between all pairs of points. `None` without two
/// points of different x.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        let others = points[index + 1..].iter().filter(|other| other.0 != x);
        slopes.extend(others.map(|other| (other.1 - y) / (other.0 - x)));
    }
    Spread::of(&slopes).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_numpy() {
        assert_eq!(Spread::of(&[]), None);
        // numpy.percentile([3, 1, 4, 1, 5, 9], [25, 50, 75])
        let spread = Spread::of(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0]).unwrap();
        assert_eq!((spread.lower, spread.median, spread.upper), (1.5, 3.5, 4.75));
        assert_eq!(Spread::of(&[7.0]).unwrap().lower, 7.0);
    }

    #[test]
    fn one_bad_point_does_not_move_a_slope() {
        let mut points: Vec<(f64, f64)> = (0..7).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x))).collect();
        assert_eq!(slope(&points), Some(2.0));
        points[3].1 = 1000.0;
        assert_eq!(slope(&points), Some(2.0));
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
