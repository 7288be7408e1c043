//! The differential flame graph: the page of `plumb flame` with two more columns and a mark a box, or an SVG.
//!
//! Boxes are as wide as what was added and what was taken away in them together, so that what vanished stays in sight. The other half
//! of the page's format is in web/src/model; web/testdata/diff.payload holds them together.

use anyhow::Result;
use inferno::flamegraph::color::{Color, PaletteMap};
use plumb_analyze::{BoxKind, DiffBox, DiffFlame, Mark};
use serde::Serialize;

use super::Shown;
use crate::render::change;
use crate::render::flame::svg::{Drawing, clean, narrowest};
use crate::render::flame::{Facts, Format, html};
use plumb_report::flame::payload::{self, Frames, write_column, write_depths};

/// What the page wants to know, beside what it does of any picture.
#[derive(Serialize)]
struct Header<'a> {
    format: u32,
    #[serde(flatten)]
    facts: Facts,
    diff: Sides,
    frames: usize,
    boxes: usize,
    /// There is no column of weights: the page makes them of both sides' columns.
    each: u64,
    strings: Vec<&'a str>,
}

#[derive(Serialize)]
struct Sides {
    names: [String; 2],
    values: [u64; 2],
    per: String,
    rule: &'static str,
}

/// The file's content.
pub(super) fn draw(shown: &Shown<'_, '_>, format: Format) -> Result<Vec<u8>> {
    let flame = DiffFlame::new(shown.diff);
    let facts = facts(shown);
    match format {
        Format::Html => {
            let title = format!("{} · plumb diff", facts.title);
            Ok(html::with_data(&encode(&flame, facts, shown)?, &title)?.into_bytes())
        }
        Format::Svg => svg(&flame, &facts, shown),
    }
}

pub(super) fn facts(shown: &Shown<'_, '_>) -> Facts {
    let [base, new] = names(shown);
    let profiles = || shown.sides.iter().flat_map(|side| side.iter()).map(|one| &one.profile);
    let samples =
        shown.views.iter().flat_map(|side| side.iter()).map(|view| view.samples().len() as u64).sum();
    Facts {
        title: format!("{base} → {new}"),
        samples,
        recorded: profiles().map(|profile| profile.samples.len() as u64).sum(),
        lost: profiles().map(|profile| profile.meta.lost_samples).sum(),
        unit: shown.unit.clone(),
        event: Some(shown.event.clone()),
        recorder: profiles().next().map(|profile| profile.meta.recorder.clone()),
        ..Facts::default()
    }
}

/// What each side is called: the file, and how many there are beside.
fn names(shown: &Shown<'_, '_>) -> [String; 2] {
    shown.sides.map(|side| {
        let first = side.first().map(|one| one.path.display().to_string()).unwrap_or_default();
        if side.len() > 1 { format!("{first} and {} more", side.len() - 1) } else { first }
    })
}

pub(super) fn encode(flame: &DiffFlame<'_>, facts: Facts, shown: &Shown<'_, '_>) -> Result<Vec<u8>> {
    let frames = Frames::new(&flame.labels);
    let header = Header {
        format: payload::FORMAT,
        facts,
        diff: Sides {
            names: names(shown),
            values: shown.diff.whole.value.map(whole_number),
            per: change::per(shown.diff, &shown.event, &shown.unit),
            rule: change::rule(shown.diff),
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
    let alpha = shown.diff.options.alpha;
    write_column(&mut out, boxes.iter().map(|one| number_of(one.change.mark(alpha))));
    Ok(out)
}

/// What a side spent, without fractions of a nanosecond.
fn whole_number(value: f64) -> u64 {
    value.round() as u64
}

/// The page's number of a mark: its place in the list that diff.ts has.
fn number_of(mark: Mark) -> u64 {
    match mark {
        Mark::Noise => 0,
        Mark::More => 1,
        Mark::Less => 2,
        Mark::New => 3,
        Mark::Vanished => 4,
    }
}

/// How wide a box would be without what it called. Where nothing changed at all, all code is shown.
fn widths(boxes: &[DiffBox]) -> Vec<u64> {
    let changes: Vec<u64> = boxes.iter().map(|one| whole_number((one.own[1] - one.own[0]).abs())).collect();
    if changes.iter().any(|&width| width > 0) {
        return changes;
    }
    boxes.iter().map(|one| whole_number(one.own[0].max(one.own[1]))).collect()
}

/// How wide boxes are with what they called.
fn totals(boxes: &[DiffBox], widths: &[u64]) -> Vec<u64> {
    let mut totals = widths.to_vec();
    // Widths of the boxes seen so far that wait for their caller, by depth.
    let mut waiting: Vec<u64> = Vec::new();
    for (one, total) in boxes.iter().zip(&mut totals).rev() {
        let depth = one.depth as usize;
        waiting.resize((depth + 2).max(waiting.len()), 0);
        *total += std::mem::take(&mut waiting[depth + 1]);
        waiting[depth] += *total;
    }
    totals
}

fn svg(flame: &DiffFlame<'_>, facts: &Facts, shown: &Shown<'_, '_>) -> Result<Vec<u8>> {
    let alpha = shown.diff.options.alpha;
    let widths = widths(&flame.boxes);
    let mut colours = PaletteMap::default();
    let mut lines = Vec::new();
    let mut path: Vec<String> = Vec::new();
    for (one, &width) in flame.boxes.iter().zip(&widths) {
        let mark = one.change.mark(alpha);
        let label = &flame.labels[one.label as usize];
        let name = if label.kind == BoxKind::Root { String::new() } else { marked(&label.name, mark) };
        colours.insert(name.clone(), colour(mark));
        if label.kind != BoxKind::Root {
            path.truncate((one.depth as usize).saturating_sub(1));
            path.push(name);
        }
        if width > 0 && !path.is_empty() {
            lines.push(format!("{} {width}", path.join(";")));
        }
    }
    let whole: u64 = widths.iter().sum();
    let drawing = Drawing {
        lines,
        colours,
        title: facts.title.clone(),
        subtitle: format!(
            "{} — as wide as what was added and taken away; red: costs more, blue: costs less, grey: within noise",
            change::whole(shown.diff, &shown.unit)
        ),
        count_name: facts.unit.clone(),
        icicle: false,
        narrowest: narrowest(
            totals(&flame.boxes, &widths).into_iter().map(|width| width as f64 * 100.0 / whole.max(1) as f64),
        ),
    };
    drawing.draw()
}

/// The name with letters that are not seen: they make boxes of one function that are marked differently different for inferno.
fn marked(name: &str, mark: Mark) -> String {
    format!("{}{}", clean(name), "\u{2060}".repeat(number_of(mark) as usize))
}

/// The page's colours, in light.
fn colour(mark: Mark) -> Color {
    let (r, g, b) = match mark {
        Mark::Noise => (222, 224, 227),
        Mark::More => (242, 173, 161),
        Mark::Less => (171, 207, 238),
        Mark::New => (239, 115, 108),
        Mark::Vanished => (113, 167, 234),
    };
    Color { r, g, b }
}
