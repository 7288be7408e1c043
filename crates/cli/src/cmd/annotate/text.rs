//! The listing as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Colour};
use anyhow::Result;
use plumb_analyze::{Precision, cut_middle, shorten};
use plumb_documents::listing::FunctionListing;
use plumb_documents::listing::gutter::Gutter;
use plumb_documents::listing::rows::{self, ListingColumns, ListingItem, ListingStyle, RowFigures};

use super::Args;
use crate::render::padding::{left, right};
use crate::render::table::heat;
use crate::terminal::{Output, printable};
use plumb_documents::code::Annotated;

/// Most characters of an inlined function's name.
const NAME: usize = 60;
/// Narrower terminals omit the column of classes and that of raw shares of everything.
const WIDE: usize = 110;
/// Fewest characters for code, however narrow the terminal is.
const NARROWEST: usize = 40;

/// Writes the listing.
pub fn write(shown: &mut FunctionListing<'_, '_>, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let style = args.style(shown.annotated);
    for line in shown.facts() {
        let line = cut_end(&line, out.width.map(|width| width.saturating_sub(2)));
        writeln!(out, "# {}", printable(&line))?;
    }
    writeln!(out, "#")?;
    let columns = TextColumns(ListingColumns::of(shown));
    if style == ListingStyle::Lines {
        source(shown, args, &columns, out)?;
    } else {
        instructions(shown, args, style, &columns, out)?;
    }
    for line in shown.notes() {
        writeln!(out, "# {}", printable(&line))?;
    }
    Ok(())
}

/// The columns of figures, as text.
struct TextColumns(ListingColumns);

impl TextColumns {
    /// Shares of everything follow shares of the function: adjusted ones, and raw ones too where they fit.
    fn titles(&self, out: &Output<'_>) -> String {
        let own = if self.0.has_adjusted && is_wide(out) { "  Of all " } else { "" };
        let adjusted = if self.0.has_adjusted { "  Adjusted " } else { "" };
        let called = if self.0.has_called { "  Called " } else { "" };
        format!("   Self {own}{adjusted}  Of all {called}")
    }

    fn empty(&self, out: &Output<'_>) -> String {
        " ".repeat(self.titles(out).len())
    }

    fn cells(&self, figures: &RowFigures, out: &Output<'_>) -> String {
        let mut text = cell(figures.own, self.0.own, 7, out) + " ";
        if self.0.has_adjusted && is_wide(out) {
            text.push_str(&cell(figures.own_of_all, self.0.of_all, 8, out));
            text.push(' ');
        }
        if self.0.has_adjusted {
            text.push_str(&cell(figures.adjusted, self.0.own, 10, out));
            text.push(if figures.is_doubtful { '~' } else { ' ' });
        }
        text.push_str(&cell(figures.of_all, self.0.of_all, 8, out));
        text.push(' ');
        if self.0.has_called {
            text.push_str(&cell(figures.called, self.0.of_all, 8, out));
            text.push(' ');
        }
        text
    }
}

/// Whether all columns fit.
fn is_wide(out: &Output<'_>) -> bool {
    out.width.is_none_or(|width| width >= WIDE)
}

/// Formats a share; empty if there is none.
fn cell(percent: f64, precision: Precision, width: usize, out: &Output<'_>) -> String {
    if percent <= 0.0 {
        return " ".repeat(width);
    }
    out.styled(heat(percent), &right(&precision.percent(percent), width))
}

fn instructions(
    shown: &mut FunctionListing<'_, '_>,
    args: &Args,
    style: ListingStyle,
    columns: &TextColumns,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let (items, visible) = rows::items(shown, args.context(), style);
    let sheet = Sheet::new(shown.annotated, columns, &visible, out);
    sheet.titles(out)?;
    for item in items {
        match item {
            ListingItem::Fold(1) => writeln!(out, "{} … 1 instruction", columns.empty(out))?,
            ListingItem::Fold(count) => writeln!(out, "{} … {count} instructions", columns.empty(out))?,
            ListingItem::Inlined(index, calls) => {
                let calls: Vec<_> = calls.iter().map(|name| shorten(name, NAME).into_owned()).collect();
                sheet.aside(index, &format!("inlined: {}", calls.join(" → ")), out)?;
            }
            ListingItem::Source { index, place, text } => {
                sheet.aside(index, &format!("{place}  {text}"), out)?
            }
            ListingItem::Instruction(index) => sheet.instruction(index, out)?,
        }
    }
    if sheet.gutter.left_out > 0 {
        writeln!(out, "# {} jumps are not drawn", sheet.gutter.left_out)?;
    }
    Ok(())
}

/// Layout of the instruction rows.
struct Sheet<'a> {
    annotated: &'a Annotated,
    columns: &'a TextColumns,
    gutter: Gutter,
    classes: Vec<String>,
    /// Width of the class column; `None`: classes follow the instructions.
    class_width: Option<usize>,
    /// Number of digits of an address.
    digits: usize,
    /// Width left for the text after the columns, if limited.
    room: Option<usize>,
}

impl<'a> Sheet<'a> {
    fn new(annotated: &'a Annotated, columns: &'a TextColumns, visible: &[bool], out: &Output<'_>) -> Self {
        let listing = &annotated.annotation.listing;
        let classes: Vec<String> = listing.instructions().iter().map(|i| i.class.words().join(" ")).collect();
        let widest = classes.iter().map(String::len).max().unwrap_or(0).max("Class".len());
        let is_wide = is_wide(out);
        let taken = columns.titles(out).len() + if is_wide { widest + 3 } else { 1 };
        Self {
            annotated,
            columns,
            gutter: Gutter::new(listing, |from, to| visible[from] || visible[to]),
            classes,
            class_width: is_wide.then_some(widest),
            digits: format!("{:x}", listing.end.0).len(),
            room: out.width.map(|width| width.saturating_sub(taken).max(NARROWEST)),
        }
    }

    fn titles(&self, out: &mut Output<'_>) -> io::Result<()> {
        let class = self.class_width.map_or(String::new(), |width| left("Class", width) + "  ");
        writeln!(out, "#{} {class}Address and instruction", &self.columns.titles(out)[1..])
    }

    /// A line of text beside the code, before instruction `index`.
    fn aside(&self, index: usize, text: &str, out: &mut Output<'_>) -> io::Result<()> {
        let class = self.class_width.map_or(0, |width| width + 2);
        let gutter = format!("{}{}", " ".repeat(self.digits + 2), self.gutter.before(index));
        let room = self.room.map(|room| room.saturating_sub(gutter.chars().count() + 1).max(NARROWEST / 2));
        let text = cut_end(&printable(text), room);
        let text = out.styled(AnsiColor::Blue.on_default(), text.trim_end());
        writeln!(out, "{} {}{gutter} {text}", self.columns.empty(out), " ".repeat(class))
    }

    fn instruction(&self, index: usize, out: &mut Output<'_>) -> io::Result<()> {
        let annotation = &self.annotated.annotation;
        let row = &annotation.rows[index];
        let cyan = AnsiColor::Cyan.on_default();
        let (class, mut note) = match self.class_width {
            Some(width) => (out.styled(cyan, &left(&self.classes[index], width)) + "  ", String::new()),
            None => (String::new(), self.classes[index].clone()),
        };
        let more = rows::note(annotation, self.columns.0, row);
        if !more.is_empty() {
            note = if note.is_empty() { more } else { format!("{note}; {more}") };
        }
        let address = format!("{:x}", annotation.listing.instructions()[index].address.0);
        let mut text = format!(
            "{address:>digits$}: {} {}",
            self.gutter.at(index),
            printable(&self.annotated.texts[index]),
            digits = self.digits
        );
        if !note.is_empty() {
            text.push_str(&format!("    ; {note}"));
        }
        let cells = self.columns.cells(&RowFigures::of(annotation, row), out);
        writeln!(out, "{cells} {class}{}", cut_end(&text, self.room))
    }
}

/// Truncates the text at the end to `room` characters, if limited.
fn cut_end(text: &str, room: Option<usize>) -> String {
    match room {
        Some(room) if text.chars().count() > room => {
            text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
        }
        _ => text.into(),
    }
}

fn source(
    shown: &mut FunctionListing<'_, '_>,
    args: &Args,
    columns: &TextColumns,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let (files, without) = shown.files(args.min.unwrap_or(0.0), args.limit);
    let annotation = &shown.annotated.annotation;
    writeln!(out, "#{}   Line  Source", &columns.titles(out)[1..])?;
    for file in files {
        let room = out.width.map(|width| width.saturating_sub(columns.titles(out).len() + 2).max(20));
        let path = room.map_or(file.path.clone(), |room| cut_middle(&file.path, room));
        writeln!(out, "{} {}", columns.empty(out), out.styled(Colour::new().bold(), &printable(&path)))?;
        let mut before = None;
        for line in file.lines {
            if before.is_some_and(|before| before + 1 != line.number) {
                writeln!(out, "{}      …", columns.empty(out))?;
            }
            before = Some(line.number);
            let cells =
                line.costs.as_ref().map(|costs| columns.cells(&RowFigures::of_line(annotation, costs), out));
            let text = cut_end(&line.text, room.map(|room| room.saturating_sub(8)));
            let cells = cells.unwrap_or_else(|| columns.empty(out));
            writeln!(out, "{cells} {:>6}  {}", line.number, printable(&text).trim_end())?;
        }
    }
    if without.own > 0 || without.adjusted > 0.0 {
        let cells = columns.cells(&RowFigures::of_line(annotation, &without), out);
        writeln!(out, "{cells}         code without a source line")?;
    }
    Ok(())
}
