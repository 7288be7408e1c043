//! Percentages that add up.

/// Each part's share of `whole` in hundredths of a percent, rounded so that together they make the rounded share of
/// their sum: the column of a table adds up to what its parts are, to 100.00 if they are everything. No share is
/// further from its exact value than 0.01 %. Largest remainders are rounded up; of equal ones the earlier.
pub fn hundredths(parts: &[u64], whole: u64) -> Vec<u32> {
    if whole == 0 {
        return vec![0; parts.len()];
    }
    let whole = u128::from(whole);
    let scaled = |part: u128| part * 10_000;
    let mut shares: Vec<u32> = parts.iter().map(|&part| (scaled(part.into()) / whole) as u32).collect();
    let sum: u128 = parts.iter().map(|&part| u128::from(part)).sum();
    let rounded = (scaled(sum) + whole / 2) / whole;
    let given: u128 = shares.iter().map(|&share| u128::from(share)).sum();
    let missing = rounded.saturating_sub(given) as usize;
    let mut order: Vec<usize> = (0..parts.len()).filter(|&i| parts[i] > 0).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(scaled(parts[i].into()) % whole));
    for &i in order.iter().take(missing) {
        shares[i] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::hundredths;

    #[test]
    fn a_whole_in_parts_makes_100_percent() {
        assert_eq!(hundredths(&[1, 1, 1], 3), [3334, 3333, 3333]);
        assert_eq!(hundredths(&[1; 7], 7).iter().sum::<u32>(), 10_000);
        assert_eq!(hundredths(&[u64::MAX / 2, u64::MAX / 2 + 1], u64::MAX).iter().sum::<u32>(), 10_000);
    }

    #[test]
    fn a_part_of_the_whole_makes_its_rounded_share() {
        assert_eq!(hundredths(&[1, 1], 3).iter().sum::<u32>(), 6667);
        assert_eq!(hundredths(&[0, 0], 3), [0, 0]);
        assert_eq!(hundredths(&[], 0), [0; 0]);
        assert_eq!(hundredths(&[5], 0), [0]);
    }

    #[test]
    fn nothing_gets_no_share() {
        assert_eq!(hundredths(&[0, 2, 0, 1], 3), [0, 6667, 0, 3333]);
    }
}
