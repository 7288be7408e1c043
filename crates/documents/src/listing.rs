//! A function's instructions and source lines with their costs.

use plumb_analyze::{Annotation, Doubt, HotBlock, SampledFunction, SourcePlace, View};
use plumb_profile::EventId;
use serde_json::{Value, json};

use crate::code::Annotated;
use crate::source::Sources;

/// Returns the listing of a function.
pub fn document(
    view: &View<'_>,
    event: Option<EventId>,
    function: &SampledFunction,
    annotated: &Annotated,
    sources: &mut Sources,
) -> Value {
    let annotation = &annotated.annotation;
    let profile = view.profile();
    let event = event.map(|event| &profile.events[event]);
    // A script's function has lines alone.
    let count = annotation.rows.len().min(annotation.listing.instructions().len());
    let instructions: Vec<Value> = (0..count).map(|index| instruction(annotated, index)).collect();
    let lines: Vec<Value> = annotation
        .hot_lines()
        .iter()
        .map(|line| {
            json!({
                "function": line.place.function,
                "file": line.place.file,
                "line": line.place.line,
                "text": sources.line(&line.place.file, line.place.line),
                "weight": line.own.weight,
                "samples": line.own.samples,
                "percent_of_function": annotation.share(line.own.weight as f64),
                "percent_of_all": annotation.share_of_whole(line.own.weight as f64),
                "adjusted_weight": line.adjusted,
                "adjusted_percent_of_function": annotation.share(line.adjusted),
                "adjusted_percent_of_all": annotation.share_of_whole(line.adjusted),
                "called_weight": line.called.weight,
                "instructions": line.instructions,
            })
        })
        .collect();
    json!({
        "version": crate::JSON_VERSION,
        "function": function.name,
        "file": function.path,
        "code": annotated.path.display().to_string(),
        "start": hex(annotation.listing.start.0),
        "end": hex(annotation.listing.end.0),
        "event": event.map(|event| profile.strings.get(event.name)),
        "unit": event.map(|event| profile.strings.get(event.unit)),
        "adjusted": annotation.is_adjusted,
        "weight": annotation.own.weight,
        "samples": annotation.own.samples,
        "percent_of_all": annotation.own.percent_of(annotation.whole),
        "whole_weight": annotation.whole.weight,
        "outside_weight": annotation.outside.weight,
        "instructions": instructions,
        "lines": lines,
        "blocks": blocks(annotation),
    })
}

fn blocks(annotation: &Annotation) -> Vec<Value> {
    let block = |block: &HotBlock| {
        json!({
            "first": block.first,
            "last": block.last,
            "weight": block.own.weight,
            "percent_of_function": annotation.share(block.own.weight as f64),
            "adjusted_percent_of_function": annotation.share(block.adjusted),
            "after_branch_percent_of_function": annotation.share(block.after_branch),
        })
    };
    annotation.blocks().iter().map(block).collect()
}

fn instruction(annotated: &Annotated, index: usize) -> Value {
    let annotation = &annotated.annotation;
    let (row, instruction) = (&annotation.rows[index], &annotation.listing.instructions()[index]);
    json!({
        "address": hex(instruction.address.0),
        "length": instruction.length,
        "text": annotated.texts[index],
        "class": instruction.class.words(),
        "block": instruction.block,
        "target": instruction.target.map(|target| hex(target.0)),
        "target_name": instruction.target.and_then(|target| annotated.names.get(&target)),
        "jump_to": annotation.listing.jump(index),
        "weight": row.own.weight,
        "samples": row.own.samples,
        "percent_of_function": annotation.share(row.own.weight as f64),
        "percent_of_all": annotation.share_of_whole(row.own.weight as f64),
        "adjusted_weight": row.adjusted,
        "adjusted_percent_of_function": annotation.share(row.adjusted),
        "adjusted_percent_of_all": annotation.share_of_whole(row.adjusted),
        "behind_percent_of_function": annotation.share(row.behind),
        "doubt": row.doubt.map(Doubt::name),
        "called_weight": row.called.weight,
        "called_percent_of_all": annotation.share_of_whole(row.called.weight as f64),
        "places": row.places.iter().map(place).collect::<Vec<Value>>(),
    })
}

fn place(place: &SourcePlace) -> Value {
    json!({ "function": place.function, "file": place.file, "line": place.line })
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}
