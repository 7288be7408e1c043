//! Address ranges and lookup of those that contain an address.
//!
//! Ranges may overlap, as in damaged or hostile files.

use std::ops::Range;

use crate::dwarf::budget::Budget;

/// Ranges sorted by start.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    start: u64,
    end: u64,
    /// The highest end of this range and those before it.
    reach: u64,
    /// Number of the range.
    number: usize,
}

impl Spans {
    /// Creates it from ranges, numbered in their order.
    pub fn new(ranges: impl Iterator<Item = Range<u64>>) -> Self {
        let span = |(number, range): (usize, Range<u64>)| Span {
            start: range.start,
            end: range.end,
            reach: range.end,
            number,
        };
        let mut spans: Vec<Span> = ranges.enumerate().map(span).collect();
        spans.sort_unstable_by_key(|span| (span.start, span.number));
        let mut reach = 0;
        for span in &mut spans {
            reach = reach.max(span.end);
            span.reach = reach;
        }
        Self { spans }
    }

    /// Returns the start and the end of each range.
    pub fn bounds(&self) -> impl Iterator<Item = u64> {
        self.spans.iter().flat_map(|span| [span.start, span.end])
    }

    /// Returns the numbers and sizes of the ranges that contain `address`, unordered.
    pub fn at(&self, address: u64, budget: &Budget) -> impl Iterator<Item = (usize, u64)> {
        let end = self.spans.partition_point(|span| span.start <= address);
        let reaching =
            self.spans[..end].iter().rev().take_while(move |span| span.reach > address && budget.pay(1));
        let covering = reaching.filter(move |span| span.end > address);
        covering.map(|span| (span.number, span.end - span.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_cover_an_address_are_found_and_no_others() {
        let ranges = [0..10, 5..6, 5..20, 30..40, 7..7, 2..100];
        let spans = Spans::new(ranges.iter().cloned());
        let budget = Budget::default();
        for address in 0..110 {
            let mut found: Vec<usize> = spans.at(address, &budget).map(|(number, _)| number).collect();
            found.sort_unstable();
            let covering = (0..ranges.len()).filter(|&number| ranges[number].contains(&address));
            assert_eq!(found, covering.collect::<Vec<_>>(), "{address}");
        }
        assert_eq!(spans.at(33, &budget).find(|&(number, _)| number == 3), Some((3, 10)));
    }
}
