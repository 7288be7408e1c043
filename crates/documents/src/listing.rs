//! A function's instructions and source lines with their costs.

pub mod choice;
mod gaps;
pub mod gutter;
pub mod page;
mod remarks;
pub mod rows;
mod source_lines;

use plumb_analyze::{Annotation, Doubt, Filter, HotBlock, HotLine, SampledFunction, SourcePlace, View};
use plumb_profile::EventId;

use crate::code::Annotated;
use crate::source::Sources;

pub use source_lines::{FileLines, LineCosts, SourceLine};

/// An annotated function, with what it was annotated from.
pub struct FunctionListing<'a, 'p> {
    /// The samples.
    pub view: &'a View<'p>,
    /// The selection of the samples.
    pub filter: &'a Filter,
    /// The function.
    pub function: &'a SampledFunction,
    /// The code of the function.
    pub annotated: &'a Annotated,
    /// Texts of its lines.
    pub sources: Sources,
}

document! {
    /// The listing of a function, with the samples of an event.
    pub struct ListingDocument as "FunctionListing" of (
        view: &View<'_>,
        event: Option<EventId>,
        function: &SampledFunction,
        annotated: &Annotated,
        sources: &mut Sources,
    ) {
        version: u32 = crate::JSON_VERSION,
        function: String = function.name.clone(),
        file: String = function.path.clone(),
        code: String = annotated.path.display().to_string(),
        start: String = hex(annotated.annotation.listing.start.0),
        end: String = hex(annotated.annotation.listing.end.0),
        event: Option<String> =
            event.map(|event| view.profile().strings.get(view.profile().events[event].name).to_owned()),
        unit: Option<String> =
            event.map(|event| view.profile().strings.get(view.profile().events[event].unit).to_owned()),
        adjusted: bool = annotated.annotation.is_adjusted,
        weight: u64 = annotated.annotation.own.weight,
        samples: u64 = annotated.annotation.own.samples,
        percent_of_all: f64 = annotated.annotation.own.percent_of(annotated.annotation.whole),
        whole_weight: u64 = annotated.annotation.whole.weight,
        outside_weight: u64 = annotated.annotation.outside.weight,
        instructions: Vec<ListedInstruction> = instructions(annotated),
        lines: Vec<ListedLine> = (annotated.annotation.hot_lines().iter())
            .map(|line| ListedLine::new(&annotated.annotation, line, sources))
            .collect(),
        blocks: Vec<ListedBlock> =
            annotated.annotation.blocks().iter().map(|block| ListedBlock::new(&annotated.annotation, block)).collect(),
        /// Missing parts, and caveats.
        pub notes: Vec<String> = Vec::new(),
    }
}

document! {
    struct ListedLine as "ListedLine" of (annotation: &Annotation, line: &HotLine, sources: &mut Sources) {
        #[serde(flatten)]
        place: PlaceJson = PlaceJson::new(&line.place),
        text: Option<String> = sources.line(&line.place.file, line.place.line).map(str::to_owned),
        weight: u64 = line.own.weight,
        samples: u64 = line.own.samples,
        percent_of_function: f64 = annotation.share(line.own.weight as f64),
        percent_of_all: f64 = annotation.share_of_whole(line.own.weight as f64),
        adjusted_weight: f64 = line.adjusted,
        adjusted_percent_of_function: f64 = annotation.share(line.adjusted),
        adjusted_percent_of_all: f64 = annotation.share_of_whole(line.adjusted),
        called_weight: u64 = line.called.weight,
        instructions: Vec<usize> = line.instructions.clone(),
    }
}

document! {
    struct ListedBlock as "ListedBlock" of (annotation: &Annotation, block: &HotBlock) {
        first: usize = block.first,
        last: usize = block.last,
        weight: u64 = block.own.weight,
        percent_of_function: f64 = annotation.share(block.own.weight as f64),
        adjusted_percent_of_function: f64 = annotation.share(block.adjusted),
        after_branch_percent_of_function: f64 = annotation.share(block.after_branch),
    }
}

document! {
    struct PlaceJson as "SourcePlace" of (place: &SourcePlace) {
        function: String = place.function.clone(),
        file: String = place.file.clone(),
        line: u32 = place.line,
    }
}

document! {
    struct ListedInstruction as "ListedInstruction" of (annotated: &Annotated, index: usize) {
        address: String = hex(annotated.annotation.listing.instructions()[index].address.0),
        length: u8 = annotated.annotation.listing.instructions()[index].length,
        text: String = annotated.texts[index].clone(),
        class: Vec<&'static str> = annotated.annotation.listing.instructions()[index].class.words(),
        block: usize = annotated.annotation.listing.instructions()[index].block,
        target: Option<String> =
            annotated.annotation.listing.instructions()[index].target.map(|target| hex(target.0)),
        target_name: Option<String> = annotated.annotation.listing.instructions()[index]
            .target
            .and_then(|target| annotated.names.get(&target).cloned()),
        jump_to: Option<usize> = annotated.annotation.listing.jump(index),
        #[serde(flatten)]
        costs: InstructionCosts = InstructionCosts::new(&annotated.annotation, index),
        places: Vec<PlaceJson> = annotated.annotation.rows[index].places.iter().map(PlaceJson::new).collect(),
    }
}

document! {
    struct InstructionCosts as "InstructionCosts" of (annotation: &Annotation, index: usize) {
        weight: u64 = annotation.rows[index].own.weight,
        samples: u64 = annotation.rows[index].own.samples,
        percent_of_function: f64 = annotation.share(annotation.rows[index].own.weight as f64),
        percent_of_all: f64 = annotation.share_of_whole(annotation.rows[index].own.weight as f64),
        adjusted_weight: f64 = annotation.rows[index].adjusted,
        adjusted_percent_of_function: f64 = annotation.share(annotation.rows[index].adjusted),
        adjusted_percent_of_all: f64 = annotation.share_of_whole(annotation.rows[index].adjusted),
        behind_percent_of_function: f64 = annotation.share(annotation.rows[index].behind),
        doubt: Option<&'static str> = annotation.rows[index].doubt.map(Doubt::name),
        called_weight: u64 = annotation.rows[index].called.weight,
        called_percent_of_all: f64 = annotation.share_of_whole(annotation.rows[index].called.weight as f64),
    }
}

/// Returns the instructions; a script's function has lines alone.
fn instructions(annotated: &Annotated) -> Vec<ListedInstruction> {
    let annotation = &annotated.annotation;
    let count = annotation.rows.len().min(annotation.listing.instructions().len());
    (0..count).map(|index| ListedInstruction::new(annotated, index)).collect()
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}
