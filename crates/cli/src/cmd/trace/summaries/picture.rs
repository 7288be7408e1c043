//! The heat map of latencies over time, in characters.

use std::fmt::Write as _;

use plumb_syscalls::Heat;

use super::time;

/// Shades for increasing numbers of calls.
const SHADES: [char; 5] = [' ', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
/// Width of the row labels, and the smallest width left for the row.
const MARGIN: usize = 24;
const LEAST: usize = 20;

/// The heat map as text.
pub(super) fn text(heat: &Heat, width: usize) -> String {
    let (column_ns, rows) = heat.rows(width.saturating_sub(MARGIN).max(LEAST));
    let Some(columns) = rows.first().map(|(_, counts)| counts.len()) else { return "no calls\n".to_owned() };
    let most = rows.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0);
    let mut out = format!("{:>12} {:>9}  each column {}\n", "latency from", "calls", time(column_ns));
    for (from, counts) in &rows {
        let sum: u64 = counts.iter().sum();
        let shades: String = counts.iter().map(|&count| shade(count, most)).collect();
        let _ = writeln!(out, "{:>12} {sum:>9} {}", time(*from), shades.trim_end());
    }
    let end = time(column_ns.saturating_mul(columns as u64));
    let _ = writeln!(out, "{:>22} 0{end:>width$}", "", width = columns.saturating_sub(1));
    out
}

/// Logarithmic, so that a few slow calls among many fast ones are visible.
fn shade(count: u64, most: u64) -> char {
    if count == 0 {
        return SHADES[0];
    }
    let steps = SHADES.len() - 1;
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    SHADES[((share * steps as f64).ceil() as usize).clamp(1, steps)]
}
