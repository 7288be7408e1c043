//! `plumb compare`: is one command faster than another, by how much, and how sure is that?
//!
//! Runs alternate, A B B A, so that disturbances of the machine affect both. A difference that chance explains as well is
//! not reported. Elsewhere: running and counting (capture-perf), statistics (analyze).

mod args;
mod figures;
mod limit;
mod output;
mod prints;
mod profile;
mod side;
mod table;

#[cfg(test)]
mod tests;

use std::io::{IsTerminal, stderr};

use anyhow::{Result, bail};
use plumb_capture_api::StatCounters;
use plumb_capture_bpf::Stat;
use plumb_capture_perf::try_counters;
use plumb_process::Host;
use plumb_stat_runner::{RunStats, StatRunner};

use crate::exit::Exit;
use crate::recording::notice;
use crate::terminal::{Output, finish, say, status};
pub use args::Args;
use figures::Figures;
use profile::Explained;
use side::Side;

/// Runs `plumb compare`.
pub fn run(args: Args) -> Result<Exit> {
    let sides = Side::both(&args.commands, &args.variables)?;
    if let Some(warning) = figures::too_few(&args, try_counters(&Host::read()).is_ok()) {
        say!("{warning}");
    }
    let mut figures = Figures::default();
    if args.warmup > 0 {
        figures.calls = warm_up(&sides, &args)?;
    }
    let mut tally = StatRunner::new(watcher(false), notice::say)?;
    let rounds = 2 * args.runs;
    for turn in 0..rounds {
        let side = side_of(turn);
        progress(&format!("run {} of {rounds}: {}", turn + 1, sides[side].name));
        let (run, printed) = one(&mut tally, &sides[side], &args)?;
        let is_interrupted = run.interrupted;
        figures.add(side, run, printed.as_deref().map(|text| metric(text, &args)).transpose()?);
        if is_interrupted {
            bail!("interrupted after {} of {rounds} runs: no verdict", turn + 1);
        }
    }
    progress("");
    drop(tally);
    let compared = figures.compare(&args);
    let profiles = args.profile.then(|| profile::record(&sides, &args)).transpose()?;
    let write = |explained: Option<&Explained<'_, '_>>| {
        let mut out = Output::stdout();
        finish(match (args.json, args.md) {
            (true, _) => output::json(&compared, explained, &sides, &mut out),
            (_, true) => output::markdown(&compared, explained, &sides, &args, &mut out),
            _ => output::text(&compared, explained, &sides, &args, &mut out),
        })
    };
    match profiles {
        Some(profiles) => profiles.explain(&args, |explained| write(Some(explained)))?,
        None => write(None)?,
    };
    let exceeded = args.fail_on.iter().filter(|limit| limit.is_exceeded(&compared)).inspect(|limit| {
        say!("regression limit exceeded: {limit}");
    });
    Ok(if exceeded.count() > 0 { Exit::LimitExceeded } else { Exit::Success })
}

/// The side of a turn: A B, B A, A B ...
fn side_of(turn: u32) -> usize {
    usize::from(turn.div_ceil(2) % 2 == 1)
}

/// Runs each side a few times as a warm-up. Returns the number of system calls in the last of these runs.
fn warm_up(sides: &[Side; 2], args: &Args) -> Result<[Option<u64>; 2]> {
    let mut tally = StatRunner::new(watcher(true), notice::say)?;
    let mut calls = [None; 2];
    for round in 0..args.warmup {
        for (side, calls) in sides.iter().zip(&mut calls) {
            progress(&format!("warm-up {} of {}: {}", round + 1, args.warmup, side.name));
            let (run, _) = one(&mut tally, side, args)?;
            *calls = run.seen.and_then(|seen| seen.calls);
            if run.interrupted {
                bail!("interrupted in the warm-up");
            }
        }
    }
    Ok(calls)
}

/// The kernel counters, if they are available.
fn watcher(calls: bool) -> Option<Box<dyn StatCounters>> {
    Stat::load(calls).ok().map(|stat| Box::new(stat) as _)
}

/// Runs a side once. Also returns its output, if that is needed.
fn one(tally: &mut StatRunner, side: &Side, args: &Args) -> Result<(RunStats, Option<String>)> {
    let prints = prints::prints(args)?;
    let run = tally.run(&side.launch, &prints)?;
    let exit = Exit::of_status(run.status);
    if exit != Exit::Success && !args.ignore_failure {
        bail!("{} failed with status {}: {} (--ignore-failure goes on)", side.name, exit.code(), side.text);
    }
    Ok((run, prints::text(&prints)?))
}

/// Parses the number that a command printed.
fn metric(text: &str, args: &Args) -> Result<f64> {
    let Some(expression) = args.metric.as_ref().or(args.metric_less.as_ref()) else { bail!("no metric") };
    let Some(found) = expression.captures(text) else {
        bail!("--metric: nothing that the command printed matches {expression}");
    };
    let number = found.get(1).or(found.get(0)).map_or("", |found| found.as_str());
    let plain: String = number.chars().filter(|&c| c != ',' && c != '_').collect();
    match plain.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => bail!(
            "--metric: {number:?} is no number above 0: put the number in a group, as in '([0-9.]+) ops/s'"
        ),
    }
}

/// Shows a progress line that the next one overwrites, if standard error is a terminal.
fn progress(text: &str) {
    if stderr().is_terminal() {
        status(text);
    }
}
