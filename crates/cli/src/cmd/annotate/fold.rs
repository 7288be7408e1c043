//! Which instructions are shown: all, or what is near those that matter.

use plumb_analyze::Annotation;

/// Instructions that are shown before and behind one that matters.
const CONTEXT: usize = 4;
/// Functions of more instructions are folded where nobody says otherwise.
const LONG: usize = 400;
/// What matters in these, in percent of the function.
const LEAST: f64 = 0.1;

/// For each instruction whether it is shown. `min` is in percent of the function, `limit` a number of instructions.
pub fn shown(annotation: &Annotation, min: Option<f64>, limit: Option<usize>) -> Vec<bool> {
    let count = annotation.rows.len();
    let min = min.unwrap_or(if limit.is_none() && count > LONG { LEAST } else { 0.0 });
    let hot = annotation.hot_instructions();
    let hottest = &hot[..limit.unwrap_or(hot.len()).min(hot.len())];
    if min <= 0.0 && limit.is_none() {
        return vec![true; count];
    }
    let mut matters = vec![false; count];
    hottest.iter().for_each(|&index| matters[index] = true);
    let mut shown = vec![false; count];
    for (index, row) in annotation.rows.iter().enumerate() {
        // What landed counts too: nothing of the raw column is to be lost.
        let share = annotation.share(row.adjusted.max(row.own.weight as f64));
        if matters[index] && share >= min || limit.is_none() && share >= min && share > 0.0 {
            let end = (index + CONTEXT + 1).min(count);
            shown[index.saturating_sub(CONTEXT)..end].fill(true);
        }
    }
    shown
}
