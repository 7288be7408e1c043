//! Encodes a differential flame graph for the page: the format of any flame graph, with two more columns and a mark per box.
//!
//! The decoder is in web/src/model; web/testdata/diff.payload keeps both in step.

use plumb_analyze::{Diff, DiffFlame, Mark};
use serde::Serialize;

use super::Facts;
use super::payload::{self, Frames, write_column, write_depths};
use crate::change;

/// Facts for the page in addition to those of any picture.
#[derive(Serialize)]
struct Header<'a> {
    format: u32,
    #[serde(flatten)]
    facts: &'a Facts,
    diff: Sides<'a>,
    frames: usize,
    boxes: usize,
    /// 0: no column of weights follows; the page computes them from both sides' columns.
    each: u64,
    strings: Vec<&'a str>,
}

#[derive(Serialize)]
struct Sides<'a> {
    names: &'a [String; 2],
    values: [u64; 2],
    per: String,
    rule: &'static str,
}

/// Encodes the picture. `names` are those of the base and the new side.
///
/// # Errors
/// The header can't be written as JSON.
pub fn encode(diff: &Diff<'_, '_>, facts: &Facts, names: &[String; 2]) -> Result<Vec<u8>, serde_json::Error> {
    let flame = DiffFlame::new(diff);
    let frames = Frames::new(&flame.labels);
    let header = Header {
        format: payload::FORMAT,
        facts,
        diff: Sides {
            names,
            values: diff.whole.value.map(whole_number),
            per: change::per(diff, facts.event.as_deref().unwrap_or_default(), &facts.unit),
            rule: change::rule(diff),
        },
        frames: flame.labels.len(),
        boxes: flame.boxes.len(),
        each: 0,
        strings: frames.texts,
    };
    // JSON escapes line ends, so the first line end is the header's.
    let mut out = serde_json::to_vec(&header)?;
    out.push(b'\n');
    for column in frames.columns {
        write_column(&mut out, column.into_iter());
    }
    let boxes = &flame.boxes;
    write_depths(&mut out, boxes.iter().map(|one| one.depth));
    write_column(&mut out, boxes.iter().map(|one| one.label.into()));
    write_column(&mut out, boxes.iter().map(|one| one.samples));
    write_column(&mut out, boxes.iter().map(|one| one.line.into()));
    for side in [0, 1] {
        write_column(&mut out, boxes.iter().map(|one| whole_number(one.own[side])));
    }
    write_column(&mut out, boxes.iter().map(|one| number_of(one.mark)));
    Ok(out)
}

/// Rounds a side's cost to whole units.
pub fn whole_number(value: f64) -> u64 {
    value.round() as u64
}

/// Returns the page's number of a mark: its index in the list in diff.ts.
pub fn number_of(mark: Mark) -> u64 {
    match mark {
        Mark::Noise => 0,
        Mark::More => 1,
        Mark::Less => 2,
        Mark::New => 3,
        Mark::Vanished => 4,
    }
}
