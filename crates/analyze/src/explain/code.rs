//! The instructions that take the time of hot functions.
//!
//! Weights are adjusted for skid ([`Annotation`]). A class is what an instruction may have waited for, not a
//! measurement.

use plumb_profile::AddressSpace;

use crate::annotate::{Annotation, Doubt, SampledFunction, sampled};
use crate::share::{Sampling, Share};
use crate::view::View;

/// Least share of the total, in percent, for a function's code to be read.
const LEAST_PERCENT: f64 = 1.0;
/// Largest number of functions whose code is read.
const MOST: usize = 6;
/// Largest number of instructions reported per function.
const MOST_INSTRUCTIONS: usize = 5;
/// Least share of the function, in percent, for an instruction to be reported.
const LEAST_OF_FUNCTION: f64 = 3.0;

/// A function whose code was read, with its annotated instructions.
#[derive(Clone, Copy)]
pub struct ReadCode<'a> {
    /// The function.
    pub function: &'a SampledFunction,
    /// Annotated instructions of the function.
    pub annotation: &'a Annotation,
}

/// A function's time by instruction.
#[derive(Clone, Debug)]
pub struct HotCode {
    /// The function's share of the total.
    pub share: Share,
    /// The instructions with the most time, heaviest first.
    pub instructions: Vec<HotInstruction>,
    /// Share of the function, in percent, of the instructions of each class, by the words of the class, largest first. An
    /// instruction may have several words.
    pub classes: Vec<(&'static str, f64)>,
}

/// An instruction with a significant share of the time.
#[derive(Clone, Copy, Debug)]
pub struct HotInstruction {
    /// Index in the function's listing.
    pub index: usize,
    /// Share of the function, in percent.
    pub of_function: f64,
    /// Share of the total: `of_function` times the function's share.
    pub share: Share,
    /// The reason why the weight is uncertain.
    pub doubt: Option<Doubt>,
}

/// Returns the functions whose code is worth reading, most expensive first.
pub fn worth_reading(view: &View<'_>) -> Vec<SampledFunction> {
    let mut functions = sampled(view, None, None);
    // Code without addresses cannot be assigned to a function.
    let has_address =
        |function: &SampledFunction| view.profile().dsos[function.dso].addresses != AddressSpace::Line;
    functions
        .retain(|function| has_address(function) && function.own.percent_of(view.whole()) >= LEAST_PERCENT);
    functions.truncate(MOST);
    functions
}

pub(super) fn hot_code(code: &ReadCode<'_>, sampling: &Sampling) -> HotCode {
    let annotation = code.annotation;
    let hot = annotation.hot_instructions().into_iter().map(|index| {
        let row = &annotation.rows[index];
        let of_function = annotation.share(row.adjusted);
        let share = sampling.at(annotation.share_of_whole(row.adjusted));
        HotInstruction { index, of_function, share, doubt: row.doubt }
    });
    let instructions =
        hot.take_while(|one| one.of_function >= LEAST_OF_FUNCTION).take(MOST_INSTRUCTIONS).collect();
    HotCode { share: sampling.share(annotation.own), instructions, classes: classes(annotation) }
}

fn classes(annotation: &Annotation) -> Vec<(&'static str, f64)> {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for (instruction, row) in annotation.listing.instructions().iter().zip(&annotation.rows) {
        let share = annotation.share(row.adjusted);
        for word in instruction.class.words().into_iter().filter(|_| share > 0.0) {
            match sums.iter_mut().find(|(known, _)| *known == word) {
                Some((_, sum)) => *sum += share,
                None => sums.push((word, share)),
            }
        }
    }
    sums.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
    sums
}
