//! Multiple comparisons: some look like a change by chance.

/// Returns p values after Holm's correction: if those below a level are called changes, the probability that any of them is wrong is at
/// most that level. In the order of `values`.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut corrected = vec![1.0; values.len()];
    let mut largest: f64 = 0.0;
    for (place, &index) in order.iter().enumerate() {
        largest = largest.max(values[index] * (values.len() - place) as f64);
        corrected[index] = largest.min(1.0);
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_r() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
        assert_eq!(holm(&[]), [0.0; 0]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
