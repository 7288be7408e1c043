//! The comparison of two commands, and its conclusion in words.
//!
//! Elsewhere: the table for people (`cli`).

mod says;

use plumb_analyze::{
    CONFIDENCE, CommandComparison, ComparedFigure, Comparison, Conclusion, Diff, DiffRow, Verdict,
};

use crate::change::{ChangeDocument, ChangedRow};
pub use says::says;

document! {
    /// The conclusion, the method and all figures.
    pub struct CompareDocument<'c> as "CommandComparison" of (
        comparison: &'c CommandComparison,
        sides: [ComparedCommand<'c>; 2],
        profile: Option<ProfileChanges<'c>>,
    ) {
        version: u32 = crate::JSON_VERSION,
        sides: [ComparedCommand<'c>; 2] = sides,
        runs: u32 = comparison.runs,
        alpha: f64 = comparison.alpha,
        same_within: f64 = comparison.same,
        confidence: f64 = CONFIDENCE,
        figures: Vec<FigureRow<'c>> = comparison.figures.iter().map(FigureRow::new).collect(),
        profile: Option<ProfileChanges<'c>> = profile,
        verdict: &'static str = match comparison.conclusion() {
            Conclusion::Faster => "faster",
            Conclusion::Slower => "slower",
            Conclusion::Mixed => "mixed",
            Conclusion::Same => "same",
            Conclusion::AtMost(_) | Conclusion::CantTell => "can't tell",
        },
        says: String = says(comparison),
    }
}

document! {
    /// A command, and the variables that are set for it.
    pub struct ComparedCommand<'c> as "ComparedCommand" of (name: &'c str, command: &'c str, environment: &'c [String]) {
        name: &'c str = name,
        command: &'c str = command,
        environment: &'c [String] = environment,
    }
}

document! {
    /// A figure: medians, the values of all runs, and their comparison.
    struct FigureRow<'c> as "ComparedFigure" of (figure: &'c ComparedFigure) {
        name: &'static str = figure.name,
        median: [f64; 2] = [0, 1].map(|side| figure.median(side)),
        values: &'c [Vec<f64>; 2] = &figure.values,
        comparison: Option<FigureChange> = figure.comparison.map(|comparison| FigureChange::new(comparison, figure)),
    }
}

document! {
    /// B as a multiple of A.
    struct FigureChange as "FigureChange" of (comparison: Comparison, figure: &ComparedFigure) {
        ratio: f64 = comparison.ratio.value,
        low: f64 = comparison.ratio.low,
        high: f64 = comparison.ratio.high,
        confidence: f64 = comparison.ratio.confidence,
        p: f64 = comparison.p,
        p_holm: f64 = figure.p,
        detectable: f64 = comparison.detectable,
        verdict: &'static str = match figure.verdict {
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::Same => "same",
            Verdict::CantTell => "can't tell",
        },
        better: Option<bool> = figure.is_better(),
    }
}

document! {
    /// Changes between sampled runs: sampling rate, total, and the rows that changed.
    pub struct ProfileChanges<'d> as "ProfileChanges" of (
        frequency: u32,
        causes: (&'d Diff<'_, '_>, Vec<&'d DiffRow>),
        functions: (&'d Diff<'_, '_>, Vec<&'d DiffRow>),
    ) {
        frequency: u32 = frequency,
        all: ChangeDocument = ChangeDocument::new(&functions.0.whole, functions.0.options.alpha),
        causes: Vec<ChangedRow<'d>> = rows(causes),
        functions: Vec<ChangedRow<'d>> = rows(functions),
    }
}

fn rows<'d>((diff, rows): (&'d Diff<'_, '_>, Vec<&'d DiffRow>)) -> Vec<ChangedRow<'d>> {
    rows.into_iter().map(|row| ChangedRow::new(row, diff)).collect()
}
