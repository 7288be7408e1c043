//! The Mann-Whitney test (Wilcoxon's rank sum): the probability of lists at least this different if both have one distribution.
//!
//! Exact, also with ties: from the distribution of the rank sum over all ways to draw that many ranks (Lehmann, Nonparametrics, 1.4).
//! Elsewhere: the size of the difference.

/// Largest number of measurements, of both lists, for the exact test. Beyond that the normal approximation is as good.
const EXACT: usize = 100;

/// Returns the two-sided p value of two lists; 1 if one is empty.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> f64 {
    if first.is_empty() || second.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(first, second);
    let sum: u64 = ranks[..first.len()].iter().sum();
    if ranks.len() <= EXACT { exact(&ranks, first.len(), sum) } else { normal(&ranks, first.len(), sum) }
}

/// Returns twice the rank of each value, the first list's before the second's: ties share the mean of their ranks.
fn doubled_ranks(first: &[f64], second: &[f64]) -> Vec<u64> {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&one, &other| all[one].total_cmp(&all[other]));
    let mut ranks = vec![0; all.len()];
    let mut begin = 0;
    while begin < order.len() {
        let same = order[begin..].iter().take_while(|&&index| all[index] == all[order[begin]]).count();
        // Tied values have ranks begin + 1 to begin + same: twice their mean.
        let doubled = (2 * begin + same + 1) as u64;
        order[begin..begin + same].iter().for_each(|&index| ranks[index] = doubled);
        begin += same;
    }
    ranks
}

/// Returns the share of all ways to draw `count` ranks whose sum is as far from the mean as `sum`.
fn exact(ranks: &[u64], count: usize, sum: u64) -> f64 {
    let most = ranks.iter().sum::<u64>() as usize;
    // ways[n][s]: the number of ways to draw n ranks with the sum s. Floating-point, because there are up to 10^29.
    let mut ways = vec![vec![0.0_f64; most + 1]; count + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        let rank = rank as usize;
        for drawn in (1..=count).rev() {
            let (fewer, these) = ways.split_at_mut(drawn);
            let fewer = &fewer[drawn - 1];
            these[0][rank..].iter_mut().zip(fewer).for_each(|(these, fewer)| *these += fewer);
        }
    }
    let all: f64 = ways[count].iter().sum();
    let middle = ranks.iter().sum::<u64>() as f64 * count as f64 / ranks.len() as f64;
    let far = (sum as f64 - middle).abs();
    // Equally far from the middle, on either side.
    let as_far = ways[count].iter().enumerate().filter(|(sum, _)| (*sum as f64 - middle).abs() >= far - 1e-6);
    (as_far.map(|(_, ways)| ways).sum::<f64>() / all).min(1.0)
}

fn normal(ranks: &[u64], count: usize, sum: u64) -> f64 {
    let (n, all) = (count as f64, ranks.len() as f64);
    let mean = ranks.iter().sum::<u64>() as f64 / all;
    let variance = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum::<f64>() / (all - 1.0);
    let deviation = (variance * n * (all - n) / all).sqrt();
    if deviation == 0.0 {
        return 1.0;
    }
    // Without ties, sums of doubled ranks differ by 2; the continuity correction is half of that.
    let z = ((sum as f64 - mean * n).abs() - 1.0).max(0.0) / deviation;
    libm::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_that_of_scipy() {
        // scipy.stats.mannwhitneyu(a, b, method="exact"); with ties, by enumerating all ways.
        let close = |first: &[f64], second: &[f64], p: f64| {
            let found = mann_whitney(first, second);
            assert!((found - p).abs() < 1e-9, "{found} of {p}");
            assert!((mann_whitney(second, first) - p).abs() < 1e-9, "either way round");
        };
        close(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1);
        close(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0], 2.0 / 252.0);
        close(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0], 0.7);
        close(&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0], 1.0);
        // 20 ways to draw 3 of the ranks 2, 2, 2, 4.5, 4.5, 6: 14 are as far from the middle, in Python's itertools.
        close(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0], 0.7);
        assert_eq!(mann_whitney(&[], &[1.0]), 1.0);
    }

    #[test]
    fn many_runs_go_over_to_the_normal_distribution_without_a_step() {
        let of = |count: usize| {
            let first: Vec<f64> = (0..count).map(|run| (run * 7919 % 1000) as f64).collect();
            let second: Vec<f64> = (0..count).map(|run| (run * 7907 % 1000) as f64 + 120.0).collect();
            let ranks = doubled_ranks(&first, &second);
            let sum = ranks[..count].iter().sum();
            (exact(&ranks, count, sum), normal(&ranks, count, sum))
        };
        let (exact, normal) = of(50);
        assert!((exact - normal).abs() < 0.003, "{exact} {normal}");
    }
}
