//! Encodes a flame graph for the page: one line of JSON with facts and texts, then columns of varints.
//!
//! The decoder is web/src/model/decode.ts; web/testdata/small.payload keeps both in step. A box has
//! one number per column: the number of levels closed before it, its frame, own samples, their weight (left out
//! if all samples weigh the same) and line. Such columns compress to two or three bytes a box.

use std::collections::HashMap;

use plumb_analyze::{BoxKind, Flame, FlameBox, FlameChart, Label};
use serde::Serialize;

use super::Facts;

/// Version of this format. The page rejects others.
pub const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Header<'a> {
    format: u32,
    #[serde(flatten)]
    facts: &'a Facts,
    frames: usize,
    boxes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    each: Option<u64>,
    /// Number of boxes that are too small to be in the picture.
    #[serde(rename = "leftOut", skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    /// Whether boxes are in time order, and two more columns have their start and duration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed: bool,
    strings: Vec<&'a str>,
}

/// Encodes the picture.
///
/// # Errors
/// The header can't be written as JSON.
pub fn encode(flame: &Flame<'_>, facts: &Facts) -> Result<Vec<u8>, serde_json::Error> {
    encoded(flame, facts, false)
}

/// Encodes a flame chart.
///
/// # Errors
/// As [`encode`].
pub fn encode_chart(chart: &FlameChart<'_>, facts: &Facts) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = encoded(&chart.flame, facts, true)?;
    write_column(&mut out, chart.times.iter().map(|time| time.start));
    write_column(&mut out, chart.times.iter().map(|time| time.end.saturating_sub(time.start)));
    Ok(out)
}

fn encoded(flame: &Flame<'_>, facts: &Facts, timed: bool) -> Result<Vec<u8>, serde_json::Error> {
    let frames = Frames::new(&flame.labels);
    let each = flame.weight_of_each();
    let header = Header {
        format: FORMAT,
        facts,
        frames: flame.labels.len(),
        boxes: flame.boxes.len(),
        each,
        left_out: Some(flame.left_out).filter(|&boxes| boxes > 0),
        timed,
        strings: frames.texts,
    };
    // JSON escapes line ends, so the first line end is the header's.
    let mut out = serde_json::to_vec(&header)?;
    out.push(b'\n');
    for column in frames.columns {
        write_column(&mut out, column.into_iter());
    }
    write_boxes(&mut out, &flame.boxes, each.is_none());
    Ok(out)
}

/// The labels of boxes: all texts, and the columns with each label's text indices and kind.
pub struct Frames<'a> {
    /// All texts.
    pub texts: Vec<&'a str>,
    /// Name, file of the code, source file and kind of each label.
    pub columns: [Vec<u64>; 4],
}

impl<'a> Frames<'a> {
    /// Creates it for these labels.
    pub fn new(labels: &'a [Label<'_>]) -> Self {
        let mut texts = Texts::default();
        texts.add("");
        let names = labels.iter().map(|label| texts.add(&label.name)).collect();
        let dsos = labels.iter().map(|label| texts.add(label.dso)).collect();
        let files = labels.iter().map(|label| texts.add(label.file)).collect();
        let kinds = labels.iter().map(|label| number_of(label.kind)).collect();
        Frames { texts: texts.rows, columns: [names, dsos, files, kinds] }
    }
}

fn write_boxes(out: &mut Vec<u8>, boxes: &[FlameBox], with_weights: bool) {
    write_depths(out, boxes.iter().map(|one| one.depth));
    write_column(out, boxes.iter().map(|one| one.label.into()));
    write_column(out, boxes.iter().map(|one| one.own.samples));
    if with_weights {
        write_column(out, boxes.iter().map(|one| one.own.weight));
    }
    write_column(out, boxes.iter().map(|one| one.line.into()));
}

/// Writes the column of depths.
pub fn write_depths(out: &mut Vec<u8>, depths: impl Iterator<Item = u32>) {
    // The box before the first one counts as being above the root.
    let closed = depths.scan(None, |before, depth| {
        let closed = before.map_or(0, |before: u32| u64::from((before + 1).saturating_sub(depth)));
        *before = Some(depth);
        Some(closed)
    });
    write_column(out, closed);
}

/// Returns the page's number of a kind: its index in the list in decode.ts.
fn number_of(kind: BoxKind) -> u64 {
    match kind {
        BoxKind::Root => 0,
        BoxKind::Group => 1,
        BoxKind::Program => 2,
        BoxKind::Inlined => 3,
        BoxKind::Library => 4,
        BoxKind::Jit => 5,
        BoxKind::Kernel => 6,
        BoxKind::Missing => 7,
        BoxKind::Fault => 8,
        BoxKind::Process => 9,
        BoxKind::Interrupt => 10,
    }
}

/// Writes LEB128 numbers: seven bits a byte, the lowest first.
pub fn write_column(out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
    for mut value in values {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
}

/// Texts without duplicates.
#[derive(Default)]
struct Texts<'a> {
    rows: Vec<&'a str>,
    known: HashMap<&'a str, u64>,
}

impl<'a> Texts<'a> {
    fn add(&mut self, text: &'a str) -> u64 {
        let next = self.rows.len() as u64;
        let index = *self.known.entry(text).or_insert(next);
        if index == next {
            self.rows.push(text);
        }
        index
    }
}
