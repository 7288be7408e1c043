//! Rows of a table that a query needs, as ranges.

use std::ops::Range;

/// Rows between two needed ones that are read along with them: skipping them would take as long.
const GAP: usize = 64;

/// Ascending, disjoint ranges of rows.
pub(crate) struct RowRanges(Vec<Range<usize>>);

impl RowRanges {
    /// All rows of a table.
    pub fn all(rows: usize) -> Self {
        Self(std::iter::once(0..rows).collect())
    }

    /// Ascending ranges, with adjacent ones joined.
    pub fn joined(all: impl Iterator<Item = Range<usize>>) -> Self {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for range in all {
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        Self(ranges)
    }

    /// The rows with these ascending numbers, and some between them.
    pub fn covering(numbers: impl Iterator<Item = usize>) -> Self {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(last) if number < last.end + GAP => last.end = last.end.max(number + 1),
                _ => ranges.push(number..number + 1),
            }
        }
        Self(ranges)
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    /// The number of each row.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.0.iter().flat_map(Clone::clone)
    }

    /// The parts of the ranges among the `rows` rows from `first`, counted from there.
    pub fn within(&self, first: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
        let begin = self.0.partition_point(|range| range.end <= first);
        let last = first.saturating_add(rows);
        let inside = self.0[begin..].iter().take_while(move |range| range.start < last);
        inside
            .map(move |range| range.start.max(first) - first..range.end.min(last) - first)
            .filter(|range| !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_rows_are_read_at_once_and_groups_get_their_part() {
        let ranges = RowRanges::covering([3, 4, 10, 100, 101].into_iter());
        assert_eq!(ranges.0, [3..11, 100..102]);
        assert_eq!(ranges.count(), 10);
        assert_eq!(ranges.rows().last(), Some(101));
        let parts = |first, rows| ranges.within(first, rows).collect::<Vec<_>>();
        assert_eq!(parts(0, 50), std::slice::from_ref(&(3..11)));
        assert_eq!(parts(5, 96), [0..6, 95..96]);
        assert_eq!(parts(101, 50), std::slice::from_ref(&(0..1)));
        assert!(parts(200, 50).is_empty());
    }
}
