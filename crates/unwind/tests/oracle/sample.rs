//! Stops a program at intervals and compares the unwinder with gimli, which evaluates all registers.
//!
//! Without a shadow stack, this works for programs that are too large to be stepped: compilers, and interpreters with
//! JIT code.

use std::io;
use std::process::Command;
use std::time::Duration;

use plumb_unwind::{Cache, End, walk};

use super::maps::Maps;
use super::ptrace::{PageStore, Pages, Stop, Tracee};
use crate::reference;

/// Maximum number of frames. No stack in these programs is deeper.
const LIMIT: usize = 10_000;

/// Results of a program.
#[derive(Default)]
pub struct Report {
    pub samples: u64,
    /// Number of samples with the same callers and end as gimli's.
    pub equal: u64,
    /// Number of samples where gimli ends for lack of information, and the unwinder agrees up to there and continues.
    pub further: u64,
    /// Number of samples where the unwinder reached the outermost frame.
    pub rooted: u64,
    pub frames: u64,
    pub different: Vec<String>,
}

/// Samples `command` at intervals until it ends or there are `most` samples.
pub fn sample(command: &mut Command, most: u64) -> io::Result<Report> {
    let mut tracee = Tracee::start(command)?;
    tracee.trace_threads(false)?;
    let mut maps = Maps::default();
    let mut cache = Cache::default();
    let mut pages = PageStore::default();
    let mut frames = Vec::new();
    let mut report = Report::default();
    let mut pending = 0;
    while report.samples < most {
        // Uneven intervals, so that they do not match the period of the program.
        let time = Duration::from_micros(300 + report.samples * 7919 % 1700);
        match tracee.run_for(time, std::mem::take(&mut pending))? {
            Stop::Ended(_) => break,
            Stop::Signal(libc::SIGSTOP) | Stop::Step | Stop::Exec | Stop::Thread => {}
            Stop::Signal(signal) => {
                pending = signal;
                continue;
            }
        }
        for range in maps.refresh(&tracee) {
            cache.invalidate(range);
        }
        let start = tracee.registers()?;
        let mut memory = Pages::new(&tracee, &mut pages, start.sp());
        let end = walk(&maps, &mut memory, &mut cache, &start, LIMIT, &mut frames);
        let (reference, reference_end) = reference::walk(&maps, &mut memory, &start, LIMIT);
        let ours: Vec<u64> = frames.iter().skip(1).map(|frame| frame.pc.0).collect();
        report.samples += 1;
        report.frames += frames.len() as u64;
        report.rooted += u64::from(end == End::Root);
        if ours == reference && (end == End::Root) == (reference_end == reference::End::Root) {
            report.equal += 1;
        } else if ours.starts_with(&reference) && reference_end == reference::End::NoRow {
            report.further += 1;
        } else {
            let same = ours.iter().zip(&reference).take_while(|(a, b)| a == b).count();
            let at = if same == 0 { start.ip() } else { ours[same - 1] - 1 };
            report.different.push(format!(
                "after {same} callers at {}: {} callers then {end:?}, gimli {} then {reference_end:?}",
                maps.describe(at),
                ours.len(),
                reference.len()
            ));
        }
    }
    Ok(report)
}
