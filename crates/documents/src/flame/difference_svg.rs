//! A differential flame graph as an SVG.
//!
//! The width of a box is the sum of added and removed weight in it, so that eliminated functions stay visible.

use std::io;

use inferno::flamegraph::color::{Color, PaletteMap};
use plumb_analyze::{BoxKind, DiffBox, DiffFlame, Mark};

use super::Facts;
use super::difference::{number_of, whole_number};
use super::svg::{Drawing, clean, narrowest};

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

/// Draws the graph. `verdict`: the conclusion of the comparison, of which the first part becomes the subtitle.
///
/// # Errors
/// The graph can't be drawn, a fault of plumb.
pub fn draw(flame: &DiffFlame<'_>, facts: &Facts, verdict: &str) -> io::Result<Vec<u8>> {
    // If all changes are within noise, show costs instead.
    let all = !flame.differs();
    let widths = widths(&flame.boxes, all);
    let meaning = match all {
        true => "width: cost on the more expensive side; grey: within noise",
        false => "width: cost added and removed; red: more, blue: less, grey: noise",
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
    let drawing = Drawing {
        lines,
        colours,
        title: facts.title.clone(),
        subtitle: [verdict.split("; ").next().unwrap_or_default().to_owned(), meaning.to_owned()],
        count_name: facts.unit.clone(),
        icicle: false,
        narrowest: narrowest(
            totals(&flame.boxes, &widths).into_iter().map(|width| width as f64 * 100.0 / whole.max(1) as f64),
        ),
    };
    drawing.draw()
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
