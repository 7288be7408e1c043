//! `plumb query series`: a row for each group, with its sum, its share and its course over time.

use std::io::Write;

use anyhow::Result;
use plumb_server::{Point, Series};

use crate::render::duration::time;
use crate::render::table::BARS;
use crate::terminal::printable;

/// Columns of the picture.
const COLUMNS: usize = 30;

/// The sum over time.
pub(super) fn sum(row: &Series) -> f64 {
    row.points.iter().map(|point| point.value).sum()
}

/// The values of the labels that rows are grouped by.
pub(super) fn name(row: &Series) -> String {
    let labels: Vec<&str> = row.labels.iter().map(|label| &*label.value).collect();
    if labels.is_empty() { "[no label]".to_owned() } else { labels.join(", ") }
}

/// The sum of all rows.
pub(super) fn sum_of(rows: &[Series]) -> f64 {
    rows.iter().map(sum).sum()
}

/// Prints rows of a profile type, the largest first, with their shares of `total`.
pub(super) fn show(rows: &[Series], kind: &str, total: f64, out: &mut impl Write) -> Result<()> {
    let times = || rows.iter().flat_map(|row| &row.points).map(|point| point.timestamp);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let is_time = kind.split(':').nth(2) == Some("nanoseconds");
    writeln!(out, "{:>10} {:>7}  {:COLUMNS$}  group", "sum", "share", "over time")?;
    for row in rows {
        let value = match is_time {
            true => time(sum(row)),
            false => format!("{:.0}", sum(row)),
        };
        let name = name(row);
        let share = 100.0 * sum(row) / total.max(1.0);
        writeln!(out, "{value:>10} {share:>6.1}%  {}  {}", bars(&row.points, first, last), printable(&name))?;
    }
    Ok(())
}

/// Sums over time as bars, the highest of the row as high as a line.
fn bars(points: &[Point], first: i64, last: i64) -> String {
    let mut sums = [0.0; COLUMNS];
    let span = last.saturating_sub(first).max(1);
    for point in points {
        let place = point.timestamp.saturating_sub(first).saturating_mul(COLUMNS as i64 - 1) / span;
        sums[usize::try_from(place).unwrap_or(0).min(COLUMNS - 1)] += point.value;
    }
    let most = sums.iter().copied().fold(0.0, f64::max);
    let bar = |sum: f64| match sum > 0.0 {
        true => BARS[((sum / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => ' ',
    };
    sums.into_iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_sums_shares_and_bars() {
        let rows: Vec<Series> = serde_json::from_str(
            r#"[{"labels":[{"name":"service_name","value":"api"}],"points":[{"value":3e9,"timestamp":"1000"},{"value":6e9,"timestamp":"61000"}]},
                {"points":[{"value":1e9,"timestamp":"1000"}]}]"#,
        )
        .unwrap();
        let mut out = Vec::new();
        show(&rows, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", sum_of(&rows), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("90.0%") && lines[1].ends_with("█  api"), "{text}");
        assert!(
            lines[1].contains('▄') && lines[2].contains("10.0%") && lines[2].ends_with("[no label]"),
            "{text}"
        );
        let mut out = Vec::new();
        show(&rows[..1], "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 18e9, &mut out).unwrap();
        assert!(
            String::from_utf8(out).unwrap().contains(" 50.0% "),
            "rows that are left out have their shares"
        );
    }
}
