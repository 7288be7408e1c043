//! Output of calls: lines as they arrive, or tables at the end.

use std::io::Write;

use anyhow::Result;
use plumb_call_watch::{DescriptorLinks, learn};
use plumb_documents::json;
use plumb_documents::trace::DroppedCalls;
use plumb_process::usage::monotonic_ns;
use plumb_profile::Profile;
use plumb_syscalls::{Descriptors, SystemCall};

use super::select::Selection;
use super::stacks::{CallLine, Held};
use super::summaries::{Tables, Wanted};
use super::{Args, line, stacks};
use crate::terminal::Output;

/// Width of charts if the terminal's is unknown.
const WIDTH: usize = 100;

/// State of the output.
pub(super) struct Shown {
    out: Output<'static>,
    selection: Selection,
    descriptors: Descriptors,
    /// `None`: lines are printed.
    tables: Option<Tables>,
    /// Lines waiting for their stacks; `None`: lines are printed without stacks.
    held: Option<Vec<Held>>,
    is_json: bool,
    min_ns: u64,
    begin_ns: u64,
    /// Number of dropped calls that were reported.
    dropped: u64,
    /// Number of dropped calls, including those recorded only for descriptors.
    missed: u64,
}

impl Shown {
    /// Looks up the open files of these processes. Times count from now.
    pub fn new(args: &Args, wanted: Wanted, selection: Selection, pids: &[u32]) -> Self {
        let mut descriptors = Descriptors::new(Box::<DescriptorLinks>::default());
        if wanted.looks_at_arguments() {
            let mut asked = DescriptorLinks::default();
            pids.iter().for_each(|&pid| learn(&mut descriptors, &mut asked, pid));
        }
        let begin_ns = monotonic_ns();
        Self {
            out: Output::shared_stdout(),
            selection,
            descriptors,
            tables: wanted.any().then(|| Tables::new(wanted, begin_ns)),
            held: args.stack.then(Vec::new),
            is_json: args.json,
            min_ns: args.min_time,
            begin_ns,
            dropped: 0,
            missed: 0,
        }
    }

    /// Handles a call.
    pub fn show(&mut self, call: &SystemCall<'_>) -> Result<()> {
        let signature = self.selection.signature(call.abi, call.number);
        // The kernel's filter does not subtract the tracing overhead.
        let is_shown = call.is_shown && call.latency_ns().unwrap_or(0) >= self.min_ns;
        if !is_shown {
            self.descriptors.apply(call, signature);
            return Ok(());
        }
        if let Some(tables) = &mut self.tables {
            tables.add(call, signature, &mut self.descriptors);
            return Ok(());
        }
        let (descriptors, begin_ns) = (&mut self.descriptors, self.begin_ns);
        let line = match self.is_json {
            true => CallLine::Json(line::json(call, signature, descriptors, begin_ns).into()),
            false => CallLine::Text(line::text(call, signature, descriptors, begin_ns)),
        };
        match &mut self.held {
            Some(held) => held.push(Held::new(call, line)),
            None => line.write(&mut self.out)?,
        }
        Ok(())
    }

    /// Flushes the output, and reports the number of calls dropped so far. `missed` includes calls recorded only for descriptors.
    pub fn flush(&mut self, dropped: u64, missed: u64) -> Result<()> {
        if missed > self.missed {
            self.descriptors.forget();
            self.missed = missed;
        }
        if dropped > self.dropped && self.tables.is_none() {
            let more = dropped - self.dropped;
            match self.is_json {
                true => json::write(&DroppedCalls::new(more), &mut self.out)?,
                false => writeln!(self.out, "... {more} calls dropped ...")?,
            }
            self.dropped = dropped;
        }
        self.out.flush()?;
        Ok(())
    }

    /// Writes the tables, or the lines waiting for stacks, which are in `profile`.
    pub fn finish(&mut self, profile: Option<&Profile>) -> Result<()> {
        if let (Some(held), Some(profile)) = (&mut self.held, profile) {
            stacks::write(held, profile, &mut self.out)?;
        }
        if let Some(tables) = &mut self.tables {
            let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
            match self.is_json {
                true => tables.json(&mut self.out)?,
                false => self.out.write_all(tables.text(width).as_bytes())?,
            }
        }
        self.out.flush()?;
        Ok(())
    }
}
