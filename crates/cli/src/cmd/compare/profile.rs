//! `--profile`: where the time changed, and the functions that explain the change.
//!
//! Both are found in separate runs, which alternate like the measured ones: recording adds overhead, which must not be compared.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use plumb_analyze::{By, Diff, DiffOptions, DiffRow, Filter, Mark, View, is_clock, shorten};
use plumb_profile::Profile;

use super::side::Side;
use super::{Args, output, prints, progress, side_of};
use crate::args::RecordArgs;
use crate::exit::Exit;
use crate::recording::{record_profile, request_of_command};
use crate::render::change;
use crate::render::markdown::{cell_code, escape};
use crate::render::padding::{self, left, right};
use crate::terminal::{Output, printable};
use plumb_documents::compare::ProfileChanges;
use plumb_syscalls::Abi;

/// Samples per second: runs may be short, and the error falls with the square root of the number of samples.
const FREQUENCY: u32 = 1999;
/// Most functions shown.
const MOST: usize = 15;

/// The profiles of A and B.
pub(super) struct Profiles([Vec<Profile>; 2]);

/// Records each side as often as it was measured.
pub(super) fn record(sides: &[Side; 2], args: &Args) -> Result<Profiles> {
    let mut profiles = Profiles([Vec::new(), Vec::new()]);
    let rounds = 2 * args.runs;
    for turn in 0..rounds {
        let side = side_of(turn);
        progress(&format!("profiled run {} of {rounds}: {}", turn + 1, sides[side].name));
        let recording = RecordArgs { frequency: Some(FREQUENCY), ..RecordArgs::default() };
        let request = request_of_command(&sides[side].launch, &recording).printing(prints::unread(args));
        let failed = || format!("--profile: {} failed: {}", sides[side].name, sides[side].text);
        let (profile, exit) = record_profile(&request, None, None).with_context(failed)?;
        ensure!(exit == Exit::Success || args.ignore_failure, "{}", failed());
        profiles.0[side].push(profile);
    }
    progress("");
    Ok(profiles)
}

/// The differences between the profiles.
pub(super) struct Explained<'a, 'p> {
    /// By kernel activity, with user code as one row.
    causes: Diff<'a, 'p>,
    functions: Diff<'a, 'p>,
}

impl Profiles {
    /// Compares the profiles and passes the result to `then`.
    pub fn explain<T>(&self, args: &Args, then: impl FnOnce(&Explained<'_, '_>) -> T) -> T {
        let views = self.0.each_ref().map(|side| side.iter().map(view).collect::<Vec<_>>());
        let abi = self.0[0].first().and_then(|profile| Abi::of_machine(&profile.meta.arch));
        let diff = |by: By| {
            let options = DiffOptions { by, alpha: args.alpha, ..DiffOptions::default() };
            Diff::new(&views[0], &views[1], options, |number| plumb_syscalls::name(abi?, number))
        };
        then(&Explained { causes: diff(By::Syscall), functions: diff(By::Function) })
    }
}

/// A view of one event: of several, the one that counts CPU time.
fn view(profile: &Profile) -> View<'_> {
    let clock = profile.events.iter().find(|(_, event)| is_clock(profile.strings.get(event.name)));
    View::new(profile, &Filter { event: clock.map(|(id, _)| id), ..Filter::default() })
}

/// The significant rows, most significant first.
fn rows<'d>(diff: &'d Diff<'_, '_>) -> impl Iterator<Item = &'d DiffRow> {
    diff.rows.iter().filter(|row| row.change.mark(diff.options.alpha) != Mark::Noise).take(MOST)
}

/// A row's cells: change, change in percent, share of the whole change, before, after, note.
fn cells(row: &DiffRow, diff: &Diff<'_, '_>) -> [String; 6] {
    let change = &row.change;
    let all = diff.whole.difference();
    let part = if diff.whole.mark(diff.options.alpha) == Mark::Noise || all == 0.0 {
        "-".to_owned()
    } else {
        format!("{:.1}%", change.difference() / all * 100.0)
    };
    [
        change::signed(change.difference(), "ns"),
        change::relative(change),
        part,
        change::value(change.value[0], "ns"),
        change::value(change.value[1], "ns"),
        change::note(row, diff),
    ]
}

const HEAD: [&str; 6] = ["Change", "relative", "of all change", "A", "B", "Note"];

/// Rank of each column. A narrow terminal drops columns with the highest rank first.
const RANKS: [u8; 7] = [0, 1, 2, 3, 3, 0, 0];

/// Writes the differences as text.
pub(super) fn text(explained: &Explained<'_, '_>, args: &Args, out: &mut Output<'_>) -> Result<()> {
    writeln!(out)?;
    for line in padding::fold(&introduction(&explained.functions, args), out.width.unwrap_or(usize::MAX), 2) {
        writeln!(out, "{line}")?;
    }
    for (diff, title) in explained.tables() {
        let lines: Vec<([String; 6], String)> =
            rows(diff).map(|row| (cells(row, diff), change::title(&row.subject, diff))).collect();
        if lines.is_empty() {
            continue;
        }
        let mut widths = HEAD.map(|title| title.len());
        for (cells, _) in &lines {
            widths
                .iter_mut()
                .zip(cells)
                .for_each(|(width, cell)| *width = (*width).max(padding::width(cell)));
        }
        let name = lines.iter().map(|(_, title)| padding::width(title)).max().unwrap_or(0).min(24);
        let stay =
            padding::that_fit(&[&widths[..], &[name]].concat(), &RANKS, out.width.unwrap_or(usize::MAX));
        let head = (HEAD.map(str::to_owned), title.to_owned());
        for (cells, title) in [&head].into_iter().chain(&lines) {
            let mut line = String::new();
            let cells = cells.iter().zip(widths).enumerate().filter(|(index, _)| stay[*index]);
            for (index, (cell, width)) in cells {
                line.push_str("  ");
                line.push_str(&if index == 5 { left(cell, width) } else { right(cell, width) });
            }
            let room =
                out.width.map_or(usize::MAX, |width| width.saturating_sub(padding::width(&line) + 2).max(12));
            writeln!(out, "{line}  {}", printable(&shorten(title, room)))?;
        }
        output::not_shown(&HEAD, &stay, out)?;
    }
    Ok(())
}

/// Writes the differences as Markdown.
pub(super) fn markdown(explained: &Explained<'_, '_>, args: &Args, out: &mut Output<'_>) -> Result<()> {
    writeln!(out, "\n{}", escape(&introduction(&explained.functions, args)))?;
    for (diff, title) in explained.tables() {
        writeln!(out, "\n| {title} | {} |\n|---|---:|---:|---:|---:|---:|---|", HEAD.join(" | "))?;
        for row in rows(diff) {
            let title = change::title(&row.subject, diff);
            let cells = cells(row, diff).map(|cell| escape(&cell));
            writeln!(out, "| {} | {} |", cell_code(title.trim_start_matches("[.] ")), cells.join(" | "))?;
        }
    }
    Ok(())
}

/// The differences in JSON.
pub(super) fn changes<'d>(explained: &'d Explained<'_, '_>) -> ProfileChanges<'d> {
    let [causes, functions] =
        [&explained.causes, &explained.functions].map(|diff| (diff, rows(diff).collect()));
    ProfileChanges::new(FREQUENCY, causes, functions)
}

impl<'a, 'p> Explained<'a, 'p> {
    fn tables(&self) -> [(&Diff<'a, 'p>, &'static str); 2] {
        [(&self.causes, "Cause"), (&self.functions, "Function")]
    }
}

fn introduction(diff: &Diff<'_, '_>, args: &Args) -> String {
    let of = format!("{} more runs of each, sampled {FREQUENCY} times a second", args.runs);
    let count = rows(diff).count();
    if count > 0 {
        return format!("Rows that explain the change, by processor time of a run ({of}):");
    }
    let least = change::detectable(diff).map(|text| format!("; {text}")).unwrap_or_default();
    format!("No function changed by more than runs differ ({of}){least}")
}
