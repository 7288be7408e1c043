//! What the listing is made of, whatever it is written as.

use plumb_analyze::{AnnotatedRow, Annotation, SourcePlace};

use super::lines::LineCosts;
use super::{Args, Shown, Style, fold};
use crate::render::precision::Precision;

/// Shares from which on something is said of an instruction, in percent of the function.
const WORDS: f64 = 1.0;

/// Inlined calls that are named at a place; of deeper ones the innermost.
const CALLS: usize = 2;

/// A row of the listing of instructions.
pub enum Item {
    /// So many instructions are not shown.
    Fold(usize),
    /// What follows was inlined, calls from the outermost inwards; before this instruction.
    Inlined(usize, Vec<String>),
    /// A source line; before this instruction.
    Source { index: usize, place: String, text: String },
    /// An instruction.
    Instruction(usize),
}

/// The rows of the listing of instructions, and for each instruction whether it is among them.
pub fn items(shown: &mut Shown<'_, '_>, args: &Args, style: Style) -> (Vec<Item>, Vec<bool>) {
    let annotated = shown.annotated;
    let visible = fold::shown(&annotated.annotation, args.min, args.limit);
    let mut items = Vec::new();
    let mut last: Option<&AnnotatedRow> = None;
    let mut hidden = 0;
    for (index, row) in annotated.annotation.rows.iter().enumerate() {
        if !visible[index] {
            hidden += 1;
            last = None;
            continue;
        }
        if hidden > 0 {
            items.push(Item::Fold(std::mem::take(&mut hidden)));
        }
        if style == Style::Both && last.is_none_or(|last| last.places != row.places) {
            source(shown, index, row, last, &mut items);
        }
        last = Some(row);
        items.push(Item::Instruction(index));
    }
    if hidden > 0 {
        items.push(Item::Fold(hidden));
    }
    (items, visible)
}

/// The source line of an instruction, below the inlined calls that it is in if they are others than those of the one before.
fn source(
    shown: &mut Shown<'_, '_>,
    index: usize,
    row: &AnnotatedRow,
    last: Option<&AnnotatedRow>,
    items: &mut Vec<Item>,
) {
    let calls = |row: &AnnotatedRow| {
        let inlined = row.places.len().saturating_sub(1);
        row.places[..inlined].iter().rev().map(|place| place.function.clone()).collect::<Vec<_>>()
    };
    let here = calls(row);
    if !here.is_empty() && last.map(calls).as_ref() != Some(&here) {
        items.push(Item::Inlined(index, innermost(here)));
    }
    let Some(place) = row.places.first().filter(|place| place.line > 0) else { return };
    let is_same = |last: &AnnotatedRow| {
        last.places.first().is_some_and(|last| (last.line, &last.file) == (place.line, &place.file))
    };
    if last.is_some_and(is_same) {
        return;
    }
    let text = shown.sources.line(&place.file, place.line).unwrap_or_default().trim().to_owned();
    items.push(Item::Source { index, place: short(place), text });
}

/// The innermost calls of many.
fn innermost(mut calls: Vec<String>) -> Vec<String> {
    if calls.len() > CALLS {
        calls.drain(..calls.len() - CALLS);
        calls.insert(0, "…".into());
    }
    calls
}

/// The line with the last part of its file's path.
pub fn short(place: &SourcePlace) -> String {
    format!("{}:{}", place.file.rsplit('/').next().unwrap_or_default(), place.line)
}

/// What is to be said of an instruction's adjusted weight; empty if nothing.
pub fn note(annotation: &Annotation, columns: Columns, row: &AnnotatedRow) -> String {
    if annotation.share(row.adjusted) < WORDS {
        return String::new();
    }
    let behind = annotation.share(row.behind);
    match row.doubt {
        Some(doubt) => doubt.text().into(),
        None if behind >= WORDS => format!("{} was in line behind it", columns.own.percent(behind)),
        None => String::new(),
    }
}

/// Which columns of figures there are besides those of samples as they landed and of everything: none is empty, or what another says.
#[derive(Clone, Copy)]
pub struct Columns {
    /// Adjusted shares differ from those of samples as they landed.
    pub has_adjusted: bool,
    /// Something is called from the function.
    pub has_called: bool,
    /// How shares of the function are written.
    pub own: Precision,
    /// How shares of everything are written.
    pub of_all: Precision,
}

impl Columns {
    /// Those of a function.
    pub fn of(shown: &Shown<'_, '_>) -> Self {
        let annotation = &shown.annotated.annotation;
        Self {
            has_adjusted: annotation.is_adjusted,
            has_called: annotation.rows.iter().any(|row| row.called.samples > 0),
            own: Precision::of_part(shown.view, annotation.own),
            of_all: Precision::of(shown.view),
        }
    }
}

/// What a row costs, in percent.
#[derive(Default)]
pub struct Figures {
    /// Of the function, as samples landed.
    pub own: f64,
    /// Of the function, adjusted.
    pub adjusted: f64,
    /// Of everything, as samples landed.
    pub own_of_all: f64,
    /// Of everything, adjusted.
    pub of_all: f64,
    /// Of everything, in what was called.
    pub called: f64,
    /// Whether the adjusted share is to be read with care.
    pub is_doubtful: bool,
}

impl Figures {
    /// Of an instruction.
    pub fn of(annotation: &Annotation, row: &AnnotatedRow) -> Self {
        Self {
            is_doubtful: row.doubt.is_some(),
            ..Self::of_weights(annotation, row.own.weight, row.adjusted, row.called.weight)
        }
    }

    /// Of a source line.
    pub fn of_line(annotation: &Annotation, costs: &LineCosts) -> Self {
        Self::of_weights(annotation, costs.own, costs.adjusted, costs.called)
    }

    fn of_weights(annotation: &Annotation, own: u64, adjusted: f64, called: u64) -> Self {
        Self {
            own: annotation.share(own as f64),
            adjusted: annotation.share(adjusted),
            own_of_all: annotation.share_of_whole(own as f64),
            of_all: annotation.share_of_whole(adjusted),
            called: annotation.share_of_whole(called as f64),
            is_doubtful: false,
        }
    }
}
