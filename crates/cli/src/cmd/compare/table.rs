//! The rows of the result as text.

use plumb_analyze::{CommandComparison, ComparedFigure, Verdict};
use plumb_documents::percent::percent;

use super::figures;
use crate::render::metric;

/// A row: title, A, B, ratio, interval, p, and what that means.
pub(super) type Row = [String; 7];

/// The heads of the columns.
pub(super) const HEAD: [&str; 7] = ["", "A", "B", "B / A", "95% interval", "p", "Verdict"];

/// The row of a figure.
pub(super) fn row(one: &ComparedFigure, compared: &CommandComparison) -> Row {
    let (a, b) = (one.median(0), one.median(1));
    let [a_text, b_text] = [a, b].map(|value| metric::text(figures::unit(one.name), value));
    let plain = if a > 0.0 { format!("{:.3}", b / a) } else { "-".into() };
    let mut row = [one.title.into(), a_text, b_text, plain, String::new(), String::new(), String::new()];
    if let Some(comparison) = one.comparison {
        let ratio = comparison.ratio;
        row[3] = format!("{:.3}", ratio.value);
        row[4] = format!("{:.3} .. {:.3}", ratio.low, ratio.high);
        row[5] = if one.p < 0.0001 { "<0.0001".into() } else { format!("{:.4}", one.p) };
        row[6] = match (one.verdict, one.is_better()) {
            (_, Some(true)) => "better".into(),
            (_, Some(false)) => "worse".into(),
            (Verdict::Same, None) => "same".into(),
            _ => compared.bound(one).map_or(String::new(), |most| format!("±{}", percent(most))),
        };
    }
    row
}
