//! CPU time of instructions of some kind, in the functions whose code was read.

use std::cmp::Reverse;

use super::spent::{Code, Spent};
use crate::annotate::Class;
use crate::cost::Cost;
use crate::explain::ReadCode;
use crate::own_code::NAMED;

impl Code<'_, '_> {
    /// Sums the time of instructions for which `is_one` holds, by their class and their share of the function in
    /// percent, in functions where they have at least `least` percent.
    pub(super) fn instructions(&self, least: f64, is_one: impl Fn(&Class, f64) -> bool) -> Spent {
        self.instructions_of(|_| true, least, is_one)
    }

    /// Sums the time of such instructions, in functions for which `is_whose` holds.
    pub(super) fn instructions_of(
        &self,
        is_whose: impl Fn(&ReadCode<'_>) -> bool,
        least: f64,
        is_one: impl Fn(&Class, f64) -> bool,
    ) -> Spent {
        let mut spent = Spent::default();
        for code in self.read().iter().filter(|code| self.is_meant(code) && is_whose(code)) {
            let annotation = code.annotation;
            let rows = annotation.listing.instructions().iter().zip(&annotation.rows);
            let those = rows.filter(|(one, row)| is_one(&one.class, annotation.share(row.adjusted)));
            let weight: f64 = those.map(|(_, row)| row.adjusted).sum();
            if annotation.share(weight) < least {
                continue;
            }
            let samples = annotation.own.samples as f64 * annotation.share(weight) / 100.0;
            let cost = Cost { weight: weight as u64, samples: samples as u64 };
            spent.cost += cost;
            self.add_function(&mut spent, code, cost);
        }
        spent.functions.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        spent.functions.truncate(NAMED);
        spent
    }
}
