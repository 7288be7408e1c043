//! `plumb top --batch`: a table as plain text each interval, for files, pipes and terminals that can do no more.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cmd::report::table::{self as text, Column, Layout};
use crate::terminal::Output;

use super::live::Live;
use super::state::{State, Tab};
use super::table::Table;
use super::{Args, Left, draw};

/// How long is slept at most: files that the target deletes are opened before.
const STEP: Duration = Duration::from_millis(100);

/// Prints tables until there have been enough, or there is no more to come: of that a last one.
pub(super) fn run(args: &Args, live: &mut Live) -> Result<Left> {
    let mut state = State::new(args.view, args.window);
    state.by_self = args.by_self;
    let mut printed = 0;
    loop {
        let begin = Instant::now();
        let mut end = None;
        while begin.elapsed() < args.interval && end.is_none() {
            end = live.step(STEP.min(args.interval.saturating_sub(begin.elapsed())))?;
        }
        match print(args, live, &state, printed > 0) {
            Err(error) if crate::terminal::is_closed_pipe(&error) => return Ok(Left::Quit),
            other => other?,
        }
        printed += 1;
        if let Some(end) = end {
            return Ok(Left::End(end));
        }
        if args.number.is_some_and(|number| printed >= number) {
            return Ok(Left::Quit);
        }
    }
}

fn print(args: &Args, live: &mut Live, state: &State, is_next: bool) -> Result<()> {
    live.tick();
    let rates = live.rates(state.window);
    let view = live.view(&rates, &state.filter());
    let table = Table::new(&view, &state.filter(), state);
    let mut out = Output::stdout();
    if is_next {
        writeln!(out)?;
    }
    writeln!(out, "# {}", draw::facts(&rates, live.clock_hz(), args.interval).join(", "))?;
    write_table(&table, args, state, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Prints what was on the screen last.
pub(super) fn last(facts: &[String], table: &Table, args: &Args, state: &State) -> Result<()> {
    let mut out = Output::stdout();
    writeln!(out, "# {}", facts.join(", "))?;
    write_table(table, args, state, &mut out)?;
    out.flush()?;
    Ok(())
}

fn write_table(table: &Table, args: &Args, state: &State, out: &mut Output<'_>) -> Result<()> {
    let visible = state.visible(table);
    let rows = if args.rows == 0 { visible.len() } else { args.rows.min(visible.len()) };
    let column = |title, layout| Column { title, layout };
    let is_tree = state.tab == Tab::Stacks;
    let mut columns = Vec::new();
    if state.has_total() {
        columns.push(column("Children", Layout::Number));
    }
    columns.push(column("Self", Layout::Number));
    let (name, place) = state.tab.titles();
    let layout = match state.tab {
        Tab::Symbols => Layout::Function,
        Tab::Stacks => Layout::Word,
        Tab::Executables | Tab::Processes => Layout::Word,
    };
    columns.extend([column(name, layout), column(place, Layout::Path)]);
    let lines: Vec<text::Line> = visible
        .iter()
        .take(rows)
        .filter_map(|&index| table.lines.get(index))
        .map(|line| {
            let mut cells = Vec::new();
            if state.has_total() {
                cells.push(draw::percent(line.total));
            }
            cells.push(draw::percent(line.own));
            let indent = if is_tree { "  ".repeat(line.indent) } else { String::new() };
            cells.push(format!("{indent}{}", line.name));
            cells.push(line.place.clone());
            cells
        })
        .collect();
    text::write(&columns, &lines, false, out)?;
    if visible.len() > rows {
        writeln!(out, "# and {} more rows", visible.len() - rows)?;
    }
    Ok(())
}
