//! Chooses the instructions to show: all, or those near the costly ones.

use super::Annotation;

/// Instructions shown before and after a costly one.
const CONTEXT: usize = 4;
/// Functions with more instructions are folded by default.
const LONG: usize = 400;
/// Smallest share of a costly instruction in folded functions, in percent of the function.
const LEAST: f64 = 0.1;

impl Annotation {
    /// Returns for each instruction whether it is shown. `min` is in percent of the function, `limit` a number of instructions.
    pub fn near_hot(&self, min: Option<f64>, limit: Option<usize>) -> Vec<bool> {
        let count = self.rows.len();
        let min = min.unwrap_or(if limit.is_none() && count > LONG { LEAST } else { 0.0 });
        let hot = self.hot_instructions();
        let hottest = &hot[..limit.unwrap_or(hot.len()).min(hot.len())];
        if min <= 0.0 && limit.is_none() {
            return vec![true; count];
        }
        let mut matters = vec![false; count];
        hottest.iter().for_each(|&index| matters[index] = true);
        let mut shown = vec![false; count];
        for (index, row) in self.rows.iter().enumerate() {
            // Samples as they landed count too, so that no figure of the raw column is lost.
            let share = self.share(row.adjusted.max(row.own.weight as f64));
            if matters[index] && share >= min || limit.is_none() && share >= min && share > 0.0 {
                let end = (index + CONTEXT + 1).min(count);
                shown[index.saturating_sub(CONTEXT)..end].fill(true);
            }
        }
        shown
    }
}
