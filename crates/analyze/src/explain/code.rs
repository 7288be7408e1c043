//! The instructions that hold the time of hot functions.
//!
//! Weights are adjusted for where a timer's samples land ([`Annotation`]). A class says what an instruction may have waited for; it is no
//! measurement.

use plumb_profile::AddressSpace;

use crate::annotate::{Annotation, Doubt, SampledFunction, sampled};
use crate::share::{Sampling, Share};
use crate::view::View;

/// Functions whose code is worth reading have this share of all at least, in percent.
const LEAST_PERCENT: f64 = 1.0;
/// So many functions' code is read at most.
const MOST: usize = 6;
/// Instructions of one function that are named at most.
const MOST_INSTRUCTIONS: usize = 5;
/// They hold this share of their function at least, in percent.
const LEAST_OF_FUNCTION: f64 = 3.0;

/// A function whose code was read, with the samples beside its instructions.
#[derive(Clone, Copy)]
pub struct ReadCode<'a> {
    /// The function.
    pub function: &'a SampledFunction,
    /// Its instructions.
    pub annotation: &'a Annotation,
}

/// What a function's time went into, by its instructions.
#[derive(Clone, Debug)]
pub struct HotCode {
    /// Share of the function in all.
    pub share: Share,
    /// The instructions with the most time, heaviest first.
    pub instructions: Vec<HotInstruction>,
    /// Share of the function that instructions of each class hold, in percent, by the class' words; those with more first. An
    /// instruction may have several words.
    pub classes: Vec<(&'static str, f64)>,
}

/// An instruction that holds time.
#[derive(Clone, Copy, Debug)]
pub struct HotInstruction {
    /// Its number in the function's listing.
    pub index: usize,
    /// Share of the function, in percent.
    pub of_function: f64,
    /// Share of all: of the function times the function's.
    pub share: Share,
    /// Why that is to be read with care.
    pub doubt: Option<Doubt>,
}

/// The functions whose code is to be read, those with more time first.
pub fn worth_reading(view: &View<'_>) -> Vec<SampledFunction> {
    let mut functions = sampled(view, None, None);
    // Of what has no address it isn't even known which function it is.
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
