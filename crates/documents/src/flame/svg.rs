//! Draws the flame graph as SVG with `inferno`: every user of flame graphs knows its look, search and zoom.

use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};
use plumb_analyze::{BoxKind, Flame, Label};
use plumb_formats::escape::{is_unsafe, printable};

use super::Facts;

/// Draws the SVG file.
///
/// # Errors
/// `inferno` fails to draw it.
pub fn picture(flame: &Flame<'_>, facts: &Facts) -> io::Result<Vec<u8>> {
    let mut colours = PaletteMap::default();
    for label in &flame.labels {
        // inferno's own root has no name.
        let name = if label.kind == BoxKind::Root { String::new() } else { frame_name(label) };
        colours.insert(name, colour(label));
    }
    let each = flame.weight_of_each();
    let whole = flame.total();
    let narrowest = narrowest(flame.totals().iter().map(|total| total.percent_of(whole)));
    let drawing = Drawing {
        lines: folded(flame, each.is_some()),
        colours,
        title: facts.title.clone(),
        subtitle: [facts.line(), legend(flame)],
        count_name: if each.is_some() { "samples".to_owned() } else { facts.unit.clone() },
        icicle: facts.icicle,
        narrowest,
    };
    drawing.draw()
}

/// The input of inferno.
pub struct Drawing {
    /// Folded stacks.
    pub lines: Vec<String>,
    /// Colours by frame name.
    pub colours: PaletteMap,
    /// Text above the picture.
    pub title: String,
    /// Two lines below the title.
    pub subtitle: [String; 2],
    /// Unit of the weights.
    pub count_name: String,
    /// Whether the root is at the top.
    pub icicle: bool,
    /// Smallest box, in percent of the picture's width.
    pub narrowest: f64,
}

impl Drawing {
    /// Draws the SVG file.
    ///
    /// # Errors
    /// `inferno` fails to draw it.
    pub fn draw(mut self) -> io::Result<Vec<u8>> {
        self.lines.sort_unstable();
        let mut options = Options::default();
        options.title = printable(&self.title).into_owned();
        options.min_width = self.narrowest;
        if self.narrowest > WIDTHS[0] {
            self.subtitle[0] += &format!(", without boxes below {} %", self.narrowest);
        }
        options.subtitle = Some(self.subtitle.each_ref().map(|line| printable(line)).join(LINE_END));
        options.palette_map = Some(&mut self.colours);
        options.bgcolors = Some(BackgroundColor::Flat(GROUND));
        // C++ names end in arguments; functions differ at the beginning.
        options.text_truncate_direction = TextTruncateDirection::Right;
        options.direction = if self.icicle { Direction::Inverted } else { Direction::Straight };
        options.count_name = printable(&self.count_name).into_owned();
        options.name_type = "Function:".to_owned();
        let mut out = Vec::new();
        from_lines(&mut options, self.lines.iter().map(String::as_str), &mut out)?;
        let svg = String::from_utf8(out).map_err(io::Error::other)?;
        Ok(in_two_lines(&svg).unwrap_or(svg).into_bytes())
    }
}

/// A character that no printable text has, between the lines of the subtitle.
const LINE_END: &str = "\u{2028}";

/// Divides the subtitle, for which inferno has one line, into two, which together would be wider than the picture. `None` if it is not as expected.
fn in_two_lines(svg: &str) -> Option<String> {
    let (head, rest) = svg.split_once(r#"id="subtitle" x="50.0000%" y="48.00">"#)?;
    let (first, rest) = rest.split_once(LINE_END)?;
    let (second, rest) = rest.split_once("</text>")?;
    Some(format!(
        r#"{head}id="subtitle" x="50.0000%" y="41.00">{first}<tspan x="50.0000%" y="55.00">{second}</tspan></text>{rest}"#
    ))
}

/// Background colour.
const GROUND: Color = Color { r: 251, g: 250, b: 248 };

/// Largest number of boxes in an SVG: every box slows viewers down.
const MOST_BOXES: usize = 10_000;

/// Widths, in percent of the picture, below which boxes may be left out.
const WIDTHS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/// Returns the smallest of these widths for which boxes of the given widths, in percent, are not too many for an SVG.
pub fn narrowest(widths: impl Iterator<Item = f64>) -> f64 {
    let widths: Vec<f64> = widths.collect();
    let wide = |least: f64| widths.iter().filter(|&&width| width >= least).count();
    WIDTHS.into_iter().find(|&least| wide(least) <= MOST_BOXES).unwrap_or(WIDTHS[WIDTHS.len() - 1])
}

/// Returns the folded stacks.
fn folded(flame: &Flame<'_>, count_samples: bool) -> Vec<String> {
    let mut lines = Vec::new();
    flame.for_each_stack(|path, own| {
        let names: Vec<String> = path.iter().map(|label| frame_name(label)).collect();
        let cost = if count_samples { own.samples } else { own.weight };
        lines.push(format!("{} {cost}", names.join(";")));
    });
    lines
}

/// Returns the name with inferno's suffix for its kind, which is not shown but distinguishes names of different kinds. A
/// semicolon would end the frame, a control character the line.
fn frame_name(label: &Label<'_>) -> String {
    let mark = match label.kind {
        BoxKind::Kernel => "_[k]",
        // inferno has no further suffix: an invisible character distinguishes these names.
        BoxKind::Fault => "\u{2060}_[k]",
        BoxKind::Process => "\u{2060}\u{2060}_[k]",
        BoxKind::Interrupt => "\u{2060}\u{2060}\u{2060}_[k]",
        BoxKind::Inlined => "_[i]",
        BoxKind::Jit => "_[j]",
        BoxKind::Library => "_[w]",
        BoxKind::Root | BoxKind::Group | BoxKind::Program | BoxKind::Missing => "",
    };
    format!("{}{mark}", clean(&label.name))
}

/// Removes characters that would end the frame or line.
pub fn clean(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| {
            if c == ';' {
                ':'
            } else if is_unsafe(c) {
                ' '
            } else {
                c
            }
        })
        .collect();
    clean.trim().to_owned()
}

/// Returns the colour of a kind as on the page: a base, and the variation by name.
fn colour(label: &Label<'_>) -> Color {
    let (r, g, b) = match label.kind {
        BoxKind::Root | BoxKind::Group => (214, 218, 226),
        BoxKind::Program => (244, 184, 133),
        BoxKind::Inlined => (243, 223, 143),
        BoxKind::Library => (154, 208, 188),
        BoxKind::Jit => (219, 190, 227),
        BoxKind::Kernel => (172, 201, 236),
        BoxKind::Fault => (240, 170, 178),
        BoxKind::Process => (190, 182, 238),
        BoxKind::Interrupt => (150, 214, 224),
        BoxKind::Missing => (212, 212, 212),
    };
    let plain = matches!(label.kind, BoxKind::Root | BoxKind::Missing);
    let lift = if plain { 0 } else { i16::from((hash(&label.name) % 25) as u8) - 12 };
    let shade = |channel: u8| (i16::from(channel) + lift).clamp(0, 255) as u8;
    Color { r: shade(r), g: shade(g), b: shade(b) }
}

/// FNV-1a: a name has the same shade in every picture.
fn hash(text: &str) -> u32 {
    text.bytes().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

/// Returns the legend of colours, for the kinds that occur.
fn legend(flame: &Flame<'_>) -> String {
    let names = [
        (BoxKind::Program, "orange: program"),
        (BoxKind::Inlined, "yellow: inlined call"),
        (BoxKind::Library, "green: library"),
        (BoxKind::Jit, "violet: JIT code"),
        (BoxKind::Kernel, "blue: kernel"),
        (BoxKind::Fault, "red: page faults"),
        (BoxKind::Process, "purple: fork, exec, exit"),
        (BoxKind::Interrupt, "cyan: interrupts"),
        (BoxKind::Missing, "grey: callers missing"),
    ];
    let present = |kind| flame.labels.iter().any(|label| label.kind == kind);
    let shown: Vec<&str> = names.iter().filter(|&&(kind, _)| present(kind)).map(|&(_, text)| text).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subtitle_has_two_lines() {
        let drawing = Drawing {
            lines: vec!["main;work 7".to_owned()],
            colours: PaletteMap::default(),
            title: "program".to_owned(),
            subtitle: ["a < b".to_owned(), "orange: \u{2028}program".to_owned()],
            count_name: "samples".to_owned(),
            icicle: false,
            narrowest: WIDTHS[0],
        };
        let svg = String::from_utf8(drawing.draw().unwrap()).unwrap();
        let lines = r#"y="41.00">a &lt; b<tspan x="50.0000%" y="55.00">orange: "#;
        assert!(svg.contains(lines) && !svg.contains('\u{2028}'), "{svg}");
    }
}
