//! A differential flame graph as the bytes that the page reads: those of any flame graph, with two more columns and a mark a box.
//!
//! The other half of this format is in web/src/model; web/testdata/diff.payload holds them together.

use plumb_analyze::{Diff, DiffFlame, Mark};
use serde::Serialize;

use super::Facts;
use super::payload::{self, Frames, write_column, write_depths};
use crate::change;

/// What the page wants to know, beside what it does of any picture.
#[derive(Serialize)]
struct Header<'a> {
    format: u32,
    #[serde(flatten)]
    facts: &'a Facts,
    diff: Sides<'a>,
    frames: usize,
    boxes: usize,
    /// There is no column of weights: the page makes them of both sides' columns.
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

/// Encodes the picture. `names`: what the base and the new side are called.
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

/// What a side spent, without fractions of a nanosecond.
pub fn whole_number(value: f64) -> u64 {
    value.round() as u64
}

/// The page's number of a mark: its place in the list that diff.ts has.
pub fn number_of(mark: Mark) -> u64 {
    match mark {
        Mark::Noise => 0,
        Mark::More => 1,
        Mark::Less => 2,
        Mark::New => 3,
        Mark::Vanished => 4,
    }
}
