//! The comparison as a file: the HTML page, opened on it, or a differential flame graph as an SVG.
//!
//! The width of a box is the sum of added and removed weight in it, so that eliminated functions stay visible.

use anyhow::{Context, Result};
use inferno::flamegraph::color::{Color, PaletteMap};
use plumb_analyze::{BoxKind, DiffBox, DiffFlame, Mark};
use plumb_documents::answers::{LoadedRecording, NamedFiles};
use plumb_documents::change::{ComparedNames, ComparedSide, ComparedSides};
use plumb_documents::flame::difference::{self, number_of, whole_number};
use plumb_documents::flame::svg::{Drawing, clean, narrowest};
use plumb_documents::page_file;
use serde_json::Value;

use super::Shown;
use crate::loaded;
use crate::render::change as words;
use crate::render::flame::{Facts, FlameFormat};

/// The file's content.
pub(super) fn draw(shown: &Shown<'_, '_>, format: FlameFormat) -> Result<Vec<u8>> {
    match format {
        FlameFormat::Html => page(shown),
        FlameFormat::Svg => svg(&DiffFlame::new(shown.diff), &facts(shown), shown),
    }
}

/// The page of the first recording of each side, opened on the comparison of all of them.
fn page(shown: &Shown<'_, '_>) -> Result<Vec<u8>> {
    let facts = facts(shown);
    let [base, new] = shown.sides;
    let first = new.first().into_iter().chain(base.first());
    let recordings: Vec<LoadedRecording> =
        first.map(|one| loaded::recording(&one.path.display().to_string(), one.profile.clone())).collect();
    let mut packet = page_file::packet(&recordings, "diff", NamedFiles::Read);
    packet.lead.title = Some(facts.title.clone());
    for (id, one) in new.first().into_iter().chain(base.first()).enumerate() {
        let event = one.filter.event.map(|event| one.profile.strings.get(one.profile.events[event].name));
        let typed = shown.args.filters.parameters();
        let parameters = match event.filter(|_| typed.get("event").is_none() && one.profile.events.len() > 1)
        {
            Some(event) => typed.with("event", event),
            None => typed,
        };
        page_file::ask_views(&mut packet, &recordings, id, &parameters);
        packet.ask((&recordings, id), "/flame", &parameters, &[]);
    }
    packet.put(0, "/diff", serde_json::to_vec(&document(shown)?)?);
    packet.put(0, "/diff/flame", difference::encode(shown.diff, &facts, &names(shown))?);
    Ok(page_file::page(packet, &format!("{} · plumb diff", facts.title))?)
}

/// The data for the page's table.
fn document(shown: &Shown<'_, '_>) -> Result<Value> {
    let names = names(shown);
    let side = |side: usize| {
        let parts = || shown.views[side].iter().map(|view| view.part());
        let (samples, weight) =
            (parts().map(|part| part.samples).sum(), parts().map(|part| part.weight).sum());
        ComparedSide { name: &names[side], samples, weight }
    };
    let sides = ComparedNames { base: side(0), new: side(1), rows_left_out: shown.rest().0 };
    Ok(serde_json::to_value(shown.document(ComparedSides::Names(sides)))?)
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

/// The name of each side: its first file, and the number of further ones.
pub(super) fn names(shown: &Shown<'_, '_>) -> [String; 2] {
    shown.sides.map(|side| {
        let first = side.first().map(|one| one.path.display().to_string()).unwrap_or_default();
        if side.len() > 1 { format!("{first} and {} more", side.len() - 1) } else { first }
    })
}

/// Self width of each box: its change, or if `all` the larger of its two costs.
fn widths(boxes: &[DiffBox], all: bool) -> Vec<u64> {
    let width = |[base, new]: [f64; 2]| if all { base.max(new) } else { (new - base).abs() };
    boxes.iter().map(|one| whole_number(width(one.own))).collect()
}

/// Total width of each box, callees included.
fn totals(boxes: &[DiffBox], widths: &[u64]) -> Vec<u64> {
    let mut totals = widths.to_vec();
    // Widths of boxes that wait for their caller, by depth.
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
    // If all changes are within noise, show costs instead.
    let all = !flame.differs();
    let widths = widths(&flame.boxes, all);
    let meaning = match all {
        true => "width: cost on the more expensive side; grey: within noise",
        false => {
            "width: cost added plus cost removed; red: more expensive, blue: cheaper, grey: within noise"
        }
    };
    let mut colours = PaletteMap::default();
    let mut lines = Vec::new();
    let mut path: Vec<String> = Vec::new();
    for (one, &width) in flame.boxes.iter().zip(&widths) {
        let mark = one.mark;
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
    let verdict = words::verdict(shown.diff, &shown.event, &shown.unit);
    let drawing = Drawing {
        lines,
        colours,
        title: facts.title.clone(),
        // The subtitle has only one line.
        subtitle: format!("{} — {meaning}", verdict.split("; ").next().unwrap_or_default()),
        count_name: facts.unit.clone(),
        icicle: false,
        narrowest: narrowest(
            totals(&flame.boxes, &widths).into_iter().map(|width| width as f64 * 100.0 / whole.max(1) as f64),
        ),
    };
    drawing.draw().context("drawing the SVG")
}

/// The name with invisible characters appended, so that inferno keeps boxes of one function with different marks apart.
fn marked(name: &str, mark: Mark) -> String {
    format!("{}{}", clean(name), "\u{2060}".repeat(number_of(mark) as usize))
}

/// The page's colours in its light theme.
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
