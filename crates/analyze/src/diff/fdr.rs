//! Multiple testing: among many rows some differ by chance.

/// Returns p values after the Benjamini-Hochberg correction with weights (Genovese, Roeder and Wasserman 2006): of the rows whose corrected
/// value is at most a level, the expected share of false discoveries is at most that level. A row's weight must not depend on how much its
/// sides differ. In the order of `values`.
pub(super) fn corrected(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let whole: f64 = weights.iter().sum();
    // Normalizes weights to a mean of 1; a row of weight 0 is never significant.
    let weighted: Vec<f64> = values
        .iter()
        .zip(weights)
        .map(|(p, weight)| match weight * values.len() as f64 / whole {
            mean if mean > 0.0 => p / mean,
            _ => f64::INFINITY,
        })
        .collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| weighted[one].total_cmp(&weighted[other]));
    let mut corrected = vec![1.0; values.len()];
    let mut least: f64 = 1.0;
    for (place, &index) in order.iter().enumerate().rev() {
        least = least.min(weighted[index] * values.len() as f64 / (place + 1) as f64);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], wanted: &[f64]) {
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
    }

    #[test]
    fn equal_weights_give_the_values_of_scipy() {
        // scipy.stats.false_discovery_control([0.01, 0.04, 0.03, 0.005, 0.9])
        let p = [0.01, 0.04, 0.03, 0.005, 0.9];
        close(&corrected(&p, &[0.2; 5]), &[0.025, 0.05, 0.05, 0.025, 0.9]);
        close(&corrected(&p, &[7.0; 5]), &[0.025, 0.05, 0.05, 0.025, 0.9]);
        close(&corrected(&[], &[]), &[]);
    }

    #[test]
    fn a_row_is_held_to_its_part_of_the_level() {
        // Weights of mean 1 are 1.6 and 0.4; false_discovery_control([0.02 / 1.6, 0.02 / 0.4]).
        close(&corrected(&[0.02, 0.02], &[0.8, 0.2]), &[0.025, 0.05]);
        close(&corrected(&[0.001, 0.001], &[1.0, 0.0]), &[0.001, 1.0]);
    }
}
