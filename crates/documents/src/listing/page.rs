//! The listing as one self-contained HTML page: no script, light or dark as the reader's system is.
//!
//! Invariant: text from a profile or a file is escaped, and the content policy forbids everything but the page's own style.

use maud::PreEscaped;
use plumb_analyze::{Precision, shorten};

use super::FunctionListing;
use super::gutter::Gutter;
use super::rows::{HotContext, ListingColumns, ListingItem, ListingStyle, RowFigures, items, note, short};
use crate::html::{self as frame, escape};

const STYLE: &str = include_str!("page.css");
/// Rows in the list of hottest instructions.
const HOTTEST: usize = 8;
/// Most characters of the function's name in the title.
const TITLE: usize = 100;
/// Most characters of an inlined function's name.
const NAME: usize = 60;

/// The whole page.
pub fn page(shown: &mut FunctionListing<'_, '_>, context: HotContext, style: ListingStyle) -> String {
    let title = escape(&shorten(&shown.function.name, TITLE));
    let mut page = format!("<h1>{title}</h1>\n");
    for fact in shown.facts() {
        page.push_str(&format!("<p class=\"fact\">{}</p>\n", escape(&fact)));
    }
    let mut tables = String::new();
    hottest(shown, style, &mut tables);
    if style != ListingStyle::Instructions {
        source(shown, context, &mut tables);
    }
    if style != ListingStyle::Lines {
        instructions(shown, context, style, &mut tables);
    }
    // The note that explains an empty table comes before the table.
    let gap = shown.gap();
    if let Some(gap) = &gap {
        page.push_str(&format!("<p class=\"gap\">{}</p>\n", escape(gap)));
    }
    page.push_str(&tables);
    let notes = shown.notes_with(None);
    if !notes.is_empty() {
        page.push_str("<h2>Notes</h2>\n<ul>\n");
        notes.iter().for_each(|note| page.push_str(&format!("<li>{}</li>\n", escape(note))));
        page.push_str("</ul>\n");
    }
    let name = shorten(&shown.function.name, TITLE);
    frame::page(&format!("{name} · plumb annotate"), STYLE, &PreEscaped(page)).into_string()
}

/// CSS class of raw figures, which a narrow screen hides where there are adjusted ones.
fn class_of_own(columns: ListingColumns) -> &'static str {
    if columns.has_adjusted { " class=\"raw\"" } else { "" }
}

/// Titles of the figure columns.
fn titles(columns: ListingColumns) -> String {
    let adjusted = if columns.has_adjusted { "<th>Adjusted</th>" } else { "" };
    let called = if columns.has_called { "<th class=\"raw\">Called</th>" } else { "" };
    let raw = class_of_own(columns);
    let own = if columns.has_adjusted { format!("<th{raw}>Of all</th>") } else { String::new() };
    format!("<th{raw}>Self</th>{own}{adjusted}<th>Of all</th>{called}")
}

/// Cells of the figure columns.
fn cells(columns: ListingColumns, figures: &RowFigures) -> String {
    let cell = |percent: f64, precision: Precision, class: &str, mark: &str| {
        if percent <= 0.0 {
            return format!("<td{class}></td>");
        }
        // At most half opaque, so that text stays readable.
        let strength = (percent / 100.0).sqrt() * 0.5;
        format!(
            "<td{class} style=\"background:rgba(var(--heat),{strength:.2})\">{}{mark}</td>",
            precision.percent(percent).replace('<', "&lt;")
        )
    };
    let mut cells = cell(figures.own, columns.own, class_of_own(columns), "");
    if columns.has_adjusted {
        cells += &cell(figures.own_of_all, columns.of_all, class_of_own(columns), "");
        cells += &cell(figures.adjusted, columns.own, "", if figures.is_doubtful { "<i>~</i>" } else { "" });
    }
    cells += &cell(figures.of_all, columns.of_all, "", "");
    if columns.has_called {
        cells += &cell(figures.called, columns.of_all, " class=\"raw\"", "");
    }
    cells
}

fn table(page: &mut String, title: &str, columns: &str, rows: &str) {
    page.push_str(&format!(
        "<h2>{title}</h2>\n<div class=\"scroll\"><table>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    ));
}

/// The hottest instructions, each with a link to its row.
fn hottest(shown: &FunctionListing<'_, '_>, style: ListingStyle, page: &mut String) {
    let annotated = shown.annotated;
    // An interpreted function has only lines.
    if annotated.texts.is_empty() {
        return;
    }
    let annotation = &annotated.annotation;
    let columns = ListingColumns::of(shown);
    let mut rows = String::new();
    for index in annotation.hot_instructions().into_iter().take(HOTTEST) {
        let row = &annotation.rows[index];
        let place = row.places.first().filter(|place| place.line > 0).map(short).unwrap_or_default();
        let text = escape(&annotated.texts[index]);
        let text =
            if style == ListingStyle::Lines { text } else { format!("<a href=\"#i{index}\">{text}</a>") };
        let class = annotation.listing.instructions()[index].class.words().join(" ");
        let note = note(annotation, columns, row);
        rows.push_str(&format!(
            "<tr>{}<td class=\"class\">{class}</td><td class=\"text\">{text} <i>{note}</i></td><td class=\"text\">{}</td></tr>\n",
            cells(columns, &RowFigures::of(annotation, row)),
            escape(&place)
        ));
    }
    // A function that only calls others has no rows.
    if rows.is_empty() {
        return;
    }
    let titles = format!(
        "{}<th class=\"text class\">Class</th><th class=\"text\">Instruction</th><th class=\"text\">Line</th>",
        titles(columns)
    );
    table(page, "Hottest instructions", &titles, &rows);
}

fn source(shown: &mut FunctionListing<'_, '_>, context: HotContext, page: &mut String) {
    let (files, without) = shown.files(context.min.unwrap_or(0.0), context.limit);
    let annotation = &shown.annotated.annotation;
    let columns = ListingColumns::of(shown);
    let empty = cells(columns, &RowFigures::default());
    let mut rows = String::new();
    for file in files {
        let path = escape(&file.path);
        rows.push_str(&format!("<tr class=\"source\">{empty}<td></td><td class=\"text\">{path}</td></tr>\n"));
        let mut before = None;
        for line in file.lines {
            if before.is_some_and(|before| before + 1 != line.number) {
                rows.push_str(&format!("<tr>{empty}<td class=\"address\">…</td><td></td></tr>\n"));
            }
            before = Some(line.number);
            let costs =
                line.costs.as_ref().map(|costs| cells(columns, &RowFigures::of_line(annotation, costs)));
            rows.push_str(&format!(
                "<tr>{}<td class=\"address\">{}</td><td class=\"text\">{}</td></tr>\n",
                costs.unwrap_or_else(|| empty.clone()),
                line.number,
                escape(line.text.trim_end())
            ));
        }
    }
    if without.own > 0 || without.adjusted > 0.0 {
        let costs = cells(columns, &RowFigures::of_line(annotation, &without));
        rows.push_str(&format!(
            "<tr>{costs}<td></td><td class=\"text\">code without a source line</td></tr>\n"
        ));
    }
    let titles = format!("{}<th>Line</th><th class=\"text\">Source</th>", titles(columns));
    table(page, "Source lines", &titles, &rows);
}

fn instructions(
    shown: &mut FunctionListing<'_, '_>,
    context: HotContext,
    style: ListingStyle,
    page: &mut String,
) {
    let (items, visible) = items(shown, context, style);
    let annotated = shown.annotated;
    let annotation = &annotated.annotation;
    let listing = &annotation.listing;
    let gutter = Gutter::new(listing, |from, to| visible[from] || visible[to]);
    let mut rows = String::new();
    let columns = ListingColumns::of(shown);
    let aside = format!("{}<td class=\"class\"></td><td></td>", cells(columns, &RowFigures::default()));
    for item in items {
        match item {
            ListingItem::Fold(count) => {
                rows.push_str(&format!("<tr>{aside}<td class=\"text\">… {count} instructions</td></tr>\n"));
            }
            ListingItem::Inlined(index, calls) => {
                let calls: Vec<_> = calls.iter().map(|name| shorten(name, NAME).into_owned()).collect();
                let calls = escape(&calls.join(" → "));
                let before = gutter.before(index);
                rows.push_str(&format!(
                    "<tr class=\"source\">{aside}<td class=\"text\">{before} inlined: {calls}</td></tr>\n"
                ));
            }
            ListingItem::Source { index, place, text } => {
                let (before, place, text) = (gutter.before(index), escape(&place), escape(&text));
                rows.push_str(&format!(
                    "<tr class=\"source\">{aside}<td class=\"text\">{before} {place}  {text}</td></tr>\n"
                ));
            }
            ListingItem::Instruction(index) => {
                let (row, instruction) = (&annotation.rows[index], &listing.instructions()[index]);
                let is_first = index == 0 || listing.instructions()[index - 1].block != instruction.block;
                let note = note(annotation, columns, row);
                let text = escape(&annotated.texts[index]);
                let text = match listing.jump(index) {
                    Some(to) if visible[to] => format!("<a href=\"#i{to}\">{text}</a>"),
                    _ => text,
                };
                rows.push_str(&format!(
                    "<tr id=\"i{index}\"{}>{}<td class=\"class\">{}</td><td class=\"address\">{:x}</td>\
                     <td class=\"text\">{} {text}  <i>{note}</i></td></tr>\n",
                    if is_first { " class=\"block\"" } else { "" },
                    cells(columns, &RowFigures::of(annotation, row)),
                    instruction.class.words().join(" "),
                    instruction.address.0,
                    gutter.at(index),
                ));
            }
        }
    }
    let titles = format!(
        "{}<th class=\"text class\">Class</th><th>Address</th><th class=\"text\">Instruction</th>",
        titles(columns)
    );
    table(page, "Instructions", &titles, &rows);
}
