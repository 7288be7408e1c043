//! Percentages that add up.

/// Returns the share of `whole` of each part in steps of 1/`per_percent` percent, by the largest-remainder method: the shares add up to the rounded share
/// of their sum, so that a table's column does, and each is off by less than one step. Of equal remainders the earlier is rounded up.
pub fn rounded_shares(parts: &[u64], whole: u64, per_percent: u32) -> Vec<u32> {
    if whole == 0 {
        return vec![0; parts.len()];
    }
    let whole = u128::from(whole);
    let scaled = |part: u128| part * 100 * u128::from(per_percent);
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
    use super::rounded_shares;

    #[test]
    fn a_whole_in_parts_makes_100_percent() {
        assert_eq!(rounded_shares(&[1, 1, 1], 3, 100), [3334, 3333, 3333]);
        assert_eq!(rounded_shares(&[1; 7], 7, 100).iter().sum::<u32>(), 10_000);
        assert_eq!(
            rounded_shares(&[u64::MAX / 2, u64::MAX / 2 + 1], u64::MAX, 100).iter().sum::<u32>(),
            10_000
        );
    }

    #[test]
    fn a_part_of_the_whole_makes_its_rounded_share() {
        assert_eq!(rounded_shares(&[1, 1], 3, 100).iter().sum::<u32>(), 6667);
        assert_eq!(rounded_shares(&[0, 0], 3, 100), [0, 0]);
        assert_eq!(rounded_shares(&[], 0, 100), [0; 0]);
        assert_eq!(rounded_shares(&[5], 0, 100), [0]);
    }

    #[test]
    fn steps_may_be_whole_percents() {
        assert_eq!(rounded_shares(&[1, 1, 1], 3, 1), [34, 33, 33]);
        assert_eq!(rounded_shares(&[2, 1], 300, 10).iter().sum::<u32>(), 10);
    }

    #[test]
    fn nothing_gets_no_share() {
        assert_eq!(rounded_shares(&[0, 2, 0, 1], 3, 100), [0, 6667, 0, 3333]);
    }
}
