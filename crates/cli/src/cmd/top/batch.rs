//! `plumb top --batch`: a plain-text table per interval, for files, pipes and simple terminals.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use plumb_record::{LiveSession, WindowSum};

use crate::browse::state::{State, Tab};
use crate::browse::table::ViewTable;
use crate::render::table::{self as text, Column, Layout};
use crate::terminal::{Output, printable};

use super::facts::facts;
use super::sampling::{self, Answer, NoAnswer, Sampling};
use super::{Args, Left};
use crate::recording::ProgressLine;

/// Prints tables until the requested number is reached or sampling ends, which prints a final table.
pub(super) fn run(args: &Args, live: &mut LiveSession) -> Result<Left> {
    let mut state = State::new(args.view, args.window);
    state.by_self = args.by_self;
    live.wait_for_names();
    let mut printed = 0;
    let result = sampling::run(live, &mut ProgressLine::quiet(), |sampling| {
        print_each(args, &state, &mut printed, &sampling)
    });
    let is_closed = |error: &anyhow::Error| crate::terminal::is_closed_pipe(error);
    let result = match result {
        Ok(left @ (Left::End(_) | Left::TimeUp)) => {
            print(args, &live.sum_of_window(state.window.nanoseconds(), None), &state, printed > 0)
                .map(|()| left)
        }
        other => other,
    };
    match result {
        Err(error) if is_closed(&error) => Ok(Left::Quit),
        other => other,
    }
}

fn print_each(args: &Args, state: &State, printed: &mut u64, sampling: &Sampling) -> Result<()> {
    let mut begin = Instant::now();
    let mut is_asked = false;
    while args.number.is_none_or(|number| *printed < number) {
        let left = args.interval.saturating_sub(begin.elapsed());
        if left.is_zero() && !is_asked {
            (is_asked, begin) = (true, Instant::now());
            sampling.ask_for(state.window, None);
        }
        match sampling.answer(if is_asked { args.interval } else { left }) {
            Ok(Answer::Stretch(stretch)) => {
                is_asked = false;
                print(args, &stretch, state, *printed > 0)?;
                *printed += 1;
            }
            Ok(Answer::Everything(_)) | Err(NoAnswer::Later) => {}
            Err(NoAnswer::Never) => return Ok(()),
        }
    }
    Ok(())
}

fn print(args: &Args, stretch: &WindowSum, state: &State, is_next: bool) -> Result<()> {
    let table = ViewTable::new(&stretch.profile, state);
    let mut out = Output::stdout();
    if is_next {
        writeln!(out)?;
    }
    write_facts(&facts(stretch, args.interval), stretch.coverage_gap.as_deref(), &mut out)?;
    write_table(&table, args, state, &mut out)?;
    out.flush()?;
    Ok(())
}

fn write_facts(facts: &[String], gap: Option<&str>, out: &mut Output<'_>) -> Result<()> {
    writeln!(out, "# {}", facts.join(", "))?;
    gap.into_iter().try_for_each(|gap| writeln!(out, "# {}", printable(gap)))?;
    Ok(())
}

/// Prints the last screen as text.
pub(super) fn last(
    facts: &[String],
    gap: Option<&str>,
    table: &ViewTable,
    args: &Args,
    state: &State,
) -> Result<()> {
    let mut out = Output::stdout();
    write_facts(facts, gap, &mut out)?;
    write_table(table, args, state, &mut out)?;
    out.flush()?;
    Ok(())
}

fn write_table(table: &ViewTable, args: &Args, state: &State, out: &mut Output<'_>) -> Result<()> {
    let visible = state.visible(table);
    let rows = if args.rows == 0 { visible.len() } else { args.rows.min(visible.len()) };
    let column = |title, layout| Column { title, layout };
    let is_tree = state.tab.is_tree();
    let mut columns = Vec::new();
    if state.has_total() {
        columns.push(column("Children", Layout::Number));
    }
    columns.push(column(state.share_title(), Layout::Number));
    let (name, place) = state.tab.titles();
    let layout = match state.tab {
        Tab::Symbols => Layout::Function,
        _ => Layout::Word,
    };
    columns.extend([column(name, layout), column(place, Layout::Path)]);
    let lines: Vec<text::Cells> = visible
        .iter()
        .take(rows)
        .filter_map(|&index| table.lines.get(index))
        .map(|line| {
            let mut cells = Vec::new();
            if state.has_total() {
                cells.push(table.percent(line.total));
            }
            cells.push(table.percent(line.own));
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
