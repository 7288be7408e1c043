//! Heat map of wait durations: the number of waits by start time and by duration, with two rows per doubling of the duration.
//!
//! Invariant: each sample is in one cell. Does not handle samples that represent several waits, of which only the sum is known.

use plumb_analyze::View;

/// Waits shorter than this are in the first row.
const SHORTEST_NS: u64 = 1_000;
/// Number of rows per doubling of the duration.
const ROWS_PER_DOUBLING: f64 = 2.0;

/// Numbers of waits by start and duration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitsMap {
    /// Length of a column.
    pub column_ns: u64,
    /// The shortest wait of each row; the next row's is the exclusive end.
    pub rows: Vec<u64>,
    /// Counts by column and row, shortest first.
    pub columns: Vec<Vec<u64>>,
}

impl WaitsMap {
    /// Creates the map of samples given as start time relative to the recording's start, and duration.
    pub fn new(samples: &[(u64, u64)], columns: usize) -> Self {
        let columns = columns.max(1);
        let last = samples.iter().map(|&(time, _)| time).max().unwrap_or(0);
        let column_ns = (last + 1).div_ceil(columns as u64).max(1);
        let longest = samples.iter().map(|&(_, ns)| row_of(ns)).max().unwrap_or(0);
        let shortest = samples.iter().map(|&(_, ns)| row_of(ns)).min().unwrap_or(0);
        let mut map = Self {
            column_ns,
            rows: (shortest..=longest).map(least_of).collect(),
            columns: vec![vec![0; longest - shortest + 1]; columns],
        };
        for &(time, ns) in samples {
            map.columns[(time / column_ns) as usize][row_of(ns) - shortest] += 1;
        }
        map
    }

    /// Creates the map of a view's samples.
    pub fn of_view(view: &View<'_>, columns: usize) -> Self {
        let start = view.profile().meta.start_ns;
        let samples: Vec<(u64, u64)> = view
            .samples()
            .map(|kept| (kept.sample.time_ns.saturating_sub(start), kept.sample.weight))
            .collect();
        Self::new(&samples, columns)
    }
}

fn row_of(ns: u64) -> usize {
    let doublings = (ns.max(SHORTEST_NS) as f64 / SHORTEST_NS as f64).log2();
    // A row's lower bound is in that row, regardless of rounding in the logarithm.
    let row = (doublings * ROWS_PER_DOUBLING).round() as usize;
    if least_of(row) > ns.max(SHORTEST_NS) { row - 1 } else { row }
}

fn least_of(row: usize) -> u64 {
    (SHORTEST_NS as f64 * 2f64.powf(row as f64 / ROWS_PER_DOUBLING)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_by_time_and_by_length() {
        let second = 1_000_000_000;
        let map =
            WaitsMap::new(&[(0, 1_000_000), (second, 1_000_000), (second, 4_000_000), (3 * second, 10)], 4);
        assert_eq!(map.columns.iter().flatten().sum::<u64>(), 4);
        let cell = |ns: u64| map.rows.iter().rposition(|&from| from <= ns.max(map.rows[0])).unwrap();
        let [short, long, least] = [1_000_000, 4_000_000, 10].map(cell);
        assert_eq!(long - short, 4, "{:?}", map.rows);
        assert_eq!((map.columns[0][short], map.columns[1][short], map.columns[1][long]), (1, 1, 1));
        assert_eq!((map.columns[3][least], least), (1, 0));
        for row in 0..60 {
            assert_eq!(row_of(least_of(row)), row);
        }
    }

    #[test]
    fn nothing_is_a_map_too() {
        let map = WaitsMap::new(&[], 0);
        assert_eq!((map.columns.len(), map.rows.len()), (1, 1));
        let far = WaitsMap::new(&[(u64::MAX - 1, u64::MAX)], 600);
        assert_eq!(far.columns.iter().flatten().sum::<u64>(), 1);
    }
}
