//! Latencies over time, drawn with characters.

use std::fmt::Write as _;

use plumb_syscalls::Heat;
use serde_json::{Value, json};

use super::time;

/// From none to most.
const SHADES: [char; 5] = [' ', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
/// What stands before a row, and the least that is left for it.
const MARGIN: usize = 24;
const LEAST: usize = 20;
/// The resolution of the picture in JSON.
const COLUMNS: usize = 128;

/// As text.
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

/// Darker by the logarithm: a few slow calls among many fast ones are what is looked for.
fn shade(count: u64, most: u64) -> char {
    if count == 0 {
        return SHADES[0];
    }
    let steps = SHADES.len() - 1;
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    SHADES[((share * steps as f64).ceil() as usize).clamp(1, steps)]
}

/// As JSON.
pub(super) fn json(heat: &Heat) -> Value {
    let (column_ns, rows) = heat.rows(COLUMNS);
    let rows: Vec<Value> =
        rows.iter().map(|(from, counts)| json!({ "from_ns": from, "calls": counts })).collect();
    json!({ "version": plumb_report::JSON_VERSION, "column_ns": column_ns, "rows": rows })
}
