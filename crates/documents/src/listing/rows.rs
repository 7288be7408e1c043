//! The rows of the listing, independent of the output format.

use plumb_analyze::{AnnotatedRow, Annotation, Precision, SourcePlace};

use super::{FunctionListing, LineCosts};

/// Smallest share, in percent of the function, of an instruction that gets a note.
const WORDS: f64 = 1.0;

/// Most inlined calls named at a place: the innermost.
const CALLS: usize = 2;

/// Content of the listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListingStyle {
    /// Instructions alone.
    Instructions,
    /// Source lines alone.
    Lines,
    /// Instructions below their source lines.
    Both,
}

/// The part of the instructions or lines that is shown: the context of hot ones.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct HotContext {
    /// Smallest share of the function of a hot one, in percent; `None`: a default for the length of the function.
    pub min: Option<f64>,
    /// Number of hot ones; `None`: all.
    pub limit: Option<usize>,
}

/// A row of the listing of instructions.
pub enum ListingItem {
    /// A fold of this number of hidden instructions.
    Fold(usize),
    /// Start of inlined code before this instruction, with its calls from the outermost inwards.
    Inlined(usize, Vec<String>),
    /// A source line, before this instruction.
    Source {
        /// Index of the instruction.
        index: usize,
        /// File name and line number.
        place: String,
        /// Text of the line, if known.
        text: String,
    },
    /// An instruction.
    Instruction(usize),
}

/// The rows of the instruction listing, and for each instruction whether it is among them.
pub fn items(
    shown: &mut FunctionListing<'_, '_>,
    context: HotContext,
    style: ListingStyle,
) -> (Vec<ListingItem>, Vec<bool>) {
    let annotated = shown.annotated;
    let visible = annotated.annotation.near_hot(context.min, context.limit);
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
            items.push(ListingItem::Fold(std::mem::take(&mut hidden)));
        }
        if style == ListingStyle::Both && last.is_none_or(|last| last.places != row.places) {
            source(shown, index, row, last, &mut items);
        }
        last = Some(row);
        items.push(ListingItem::Instruction(index));
    }
    if hidden > 0 {
        items.push(ListingItem::Fold(hidden));
    }
    (items, visible)
}

/// The source line of an instruction, preceded by its inlined calls if they differ from those of the instruction before.
fn source(
    shown: &mut FunctionListing<'_, '_>,
    index: usize,
    row: &AnnotatedRow,
    last: Option<&AnnotatedRow>,
    items: &mut Vec<ListingItem>,
) {
    let calls = |row: &AnnotatedRow| {
        let inlined = row.places.len().saturating_sub(1);
        row.places[..inlined].iter().rev().map(|place| place.function.clone()).collect::<Vec<_>>()
    };
    let here = calls(row);
    if !here.is_empty() && last.map(calls).as_ref() != Some(&here) {
        items.push(ListingItem::Inlined(index, innermost(here)));
    }
    let Some(place) = row.places.first().filter(|place| place.line > 0) else { return };
    let is_same = |last: &AnnotatedRow| {
        last.places.first().is_some_and(|last| (last.line, &last.file) == (place.line, &place.file))
    };
    if last.is_some_and(is_same) {
        return;
    }
    let text = shown.sources.line(&place.file, place.line).unwrap_or_default().trim().to_owned();
    items.push(ListingItem::Source { index, place: short(place), text });
}

/// Keeps the innermost calls.
fn innermost(mut calls: Vec<String>) -> Vec<String> {
    if calls.len() > CALLS {
        calls.drain(..calls.len() - CALLS);
        calls.insert(0, "…".into());
    }
    calls
}

/// File name and line number.
pub fn short(place: &SourcePlace) -> String {
    format!("{}:{}", place.file.rsplit('/').next().unwrap_or_default(), place.line)
}

/// The note on an instruction's adjusted weight, or an empty string.
pub fn note(annotation: &Annotation, columns: ListingColumns, row: &AnnotatedRow) -> String {
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

/// The optional columns and the precision of shares. A column that would be empty or repeat another is left out.
#[derive(Clone, Copy)]
pub struct ListingColumns {
    /// Adjusted shares differ from raw ones.
    pub has_adjusted: bool,
    /// The function has callees.
    pub has_called: bool,
    /// Precision of shares of the function.
    pub own: Precision,
    /// Precision of shares of everything.
    pub of_all: Precision,
}

impl ListingColumns {
    /// Chooses the columns for a function.
    pub fn of(shown: &FunctionListing<'_, '_>) -> Self {
        let annotation = &shown.annotated.annotation;
        Self {
            has_adjusted: annotation.is_adjusted,
            has_called: annotation.rows.iter().any(|row| row.called.samples > 0),
            own: Precision::of_part(shown.view, annotation.own),
            of_all: Precision::of(shown.view),
        }
    }
}

/// The cost of a row, in percent.
#[derive(Default)]
pub struct RowFigures {
    /// Share of the function, raw.
    pub own: f64,
    /// Share of the function, adjusted.
    pub adjusted: f64,
    /// Share of everything, raw.
    pub own_of_all: f64,
    /// Share of everything, adjusted.
    pub of_all: f64,
    /// Share of everything spent in callees.
    pub called: f64,
    /// Whether the adjusted share is doubtful.
    pub is_doubtful: bool,
}

impl RowFigures {
    /// RowFigures of an instruction.
    pub fn of(annotation: &Annotation, row: &AnnotatedRow) -> Self {
        Self {
            is_doubtful: row.doubt.is_some(),
            ..Self::of_weights(annotation, row.own.weight, row.adjusted, row.called.weight)
        }
    }

    /// RowFigures of a source line.
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
