//! Latency heat map: the number of calls per latency in each interval of time. As time passes intervals are merged,
//! so their number is bounded.

/// Most intervals; even.
const COLUMNS: usize = 256;
/// Initial length of an interval: a sixteenth of a millisecond.
const FIRST_NS: u64 = 1_000_000 / 16;
/// Lower bounds of the rows within each power of ten of nanoseconds.
const STEPS: [u64; 3] = [1, 2, 5];

/// Counts of calls by time and latency.
#[derive(Clone, Debug)]
pub struct Heat {
    column_ns: u64,
    columns: Vec<Vec<u64>>,
}

impl Default for Heat {
    fn default() -> Self {
        Self { column_ns: FIRST_NS, columns: Vec::new() }
    }
}

impl Heat {
    /// Counts a call that began `since_ns` after the start.
    pub fn add(&mut self, since_ns: u64, latency_ns: u64) {
        while since_ns / self.column_ns >= COLUMNS as u64 {
            self.halve();
        }
        let column = (since_ns / self.column_ns) as usize;
        if self.columns.len() <= column {
            self.columns.resize(column + 1, Vec::new());
        }
        let (row, column) = (row(latency_ns), &mut self.columns[column]);
        if column.len() <= row {
            column.resize(row + 1, 0);
        }
        column[row] += 1;
    }

    /// Merges each pair of adjacent intervals.
    fn halve(&mut self) {
        self.column_ns = self.column_ns.saturating_mul(2);
        self.columns = self.columns.chunks(2).map(summed).collect();
    }

    /// Returns the length of a column in nanoseconds, and the rows from the longest latencies to the shortest, with at most `width` columns.
    /// A row is the lower bound of its latencies and its calls by column.
    pub fn rows(&self, width: usize) -> (u64, Vec<(u64, Vec<u64>)>) {
        let together = self.columns.len().div_ceil(width.max(1)).max(1);
        let columns: Vec<Vec<u64>> = self.columns.chunks(together).map(summed).collect();
        let used = |column: &Vec<u64>| column.iter().position(|&count| count > 0);
        let first = columns.iter().filter_map(used).min().unwrap_or(0);
        let last = columns.iter().map(Vec::len).max().unwrap_or(0);
        let of = |row: usize| columns.iter().map(|column| column.get(row).copied().unwrap_or(0)).collect();
        let rows = (first..last).rev().map(|row| (begin(row), of(row))).collect();
        (self.column_ns.saturating_mul(together as u64), rows)
    }
}

fn summed(columns: &[Vec<u64>]) -> Vec<u64> {
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    (0..rows).map(|row| columns.iter().filter_map(|column| column.get(row)).sum()).collect()
}

/// Row of a latency.
fn row(ns: u64) -> usize {
    let power = ns.max(1).ilog10();
    let unit = 10_u64.pow(power);
    let step = STEPS.iter().rposition(|&step| ns.max(1) / unit >= step).unwrap_or(0);
    power as usize * STEPS.len() + step
}

/// Lower bound of a row, in nanoseconds.
fn begin(row: usize) -> u64 {
    10_u64.saturating_pow((row / STEPS.len()) as u32).saturating_mul(STEPS[row % STEPS.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_at_one_two_and_five() {
        for (ns, first) in
            [(0, 1), (1, 1), (4, 2), (5, 5), (9, 5), (10, 10), (199_999, 100_000), (200_000, 200_000)]
        {
            assert_eq!(begin(row(ns)), first, "{ns}");
        }
        assert_eq!(begin(row(u64::MAX)), 10_000_000_000_000_000_000);
    }

    #[test]
    fn no_call_is_lost_as_time_goes_on() {
        let mut heat = Heat::default();
        for number in 0..10_000_u64 {
            heat.add(number * 100_000, 1000 + number % 2 * 1_000_000);
        }
        let (column_ns, rows) = heat.rows(60);
        assert_eq!(rows.iter().flat_map(|(_, counts)| counts).sum::<u64>(), 10_000);
        assert!(rows.iter().all(|(_, counts)| counts.len() <= 60));
        assert_eq!((rows[0].0, rows[rows.len() - 1].0), (1_000_000, 1000));
        let columns = rows[0].1.len() as u64;
        assert!(column_ns * columns >= 999_900_000 && column_ns * (columns - 1) <= 1_000_000_000);
        // All columns but the last, which is incomplete, have about the same count.
        let column = |index: usize| rows.iter().map(|(_, counts)| counts[index]).sum::<u64>();
        assert!(column(0).abs_diff(column(columns as usize / 2)) <= 1);
        heat.add(u64::MAX, u64::MAX);
        assert_eq!(Heat::default().rows(10).1.len(), 0);
    }
}
