//! The largest number of processes alive at one time.

/// Returns the largest number of `spans` (start and exclusive end) that overlap at one time.
pub(super) fn most_at_once(spans: &[(u64, u64)]) -> u64 {
    let mut changes: Vec<(u64, i64)> =
        spans.iter().flat_map(|&(begin, end)| [(begin, 1), (end.max(begin), -1)]).collect();
    // At equal times an end comes first: successive processes of a chain do not overlap.
    changes.sort_unstable();
    let (mut alive, mut most) = (0_i64, 0_i64);
    for (_, change) in changes {
        alive += change;
        most = most.max(alive);
    }
    most.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_are_counted() {
        assert_eq!(most_at_once(&[]), 0);
        assert_eq!(most_at_once(&[(0, 10), (10, 20), (20, 30)]), 1, "one after the other");
        assert_eq!(most_at_once(&[(0, 10), (5, 20), (9, 30), (25, 26)]), 3);
    }
}
