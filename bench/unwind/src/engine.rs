//! What every engine can do, and the ways in which it is run.

use std::hint::black_box;

use crate::corpus::{Corpus, Sample, Step};

/// How a walk ended, as far as the engine says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum End {
    /// It does not say.
    Unknown,
    /// At the outermost frame.
    Root,
    /// No unwind information.
    NoInfo,
    /// Anything else.
    Other,
}

/// More frames than 32 KiB of stack have.
pub const LIMIT: usize = 4096;

/// An unwinder at work on one corpus.
pub trait Engine {
    /// A sample's registers as the engine wants them: made before anything is counted.
    type Start;

    /// Prepares a sample.
    fn start(&self, sample: &Sample) -> Self::Start;

    /// Finds all callers and keeps them.
    fn walk(&mut self, start: &Self::Start, stack: &[u64]) -> End;

    /// The program counters of the callers that were found last, in this stack, innermost first.
    fn callers(&self, stack: &[u64]) -> impl Iterator<Item = u64>;

    /// Bytes on the heap that were set aside for remembering before the first walk.
    fn made_before(&self) -> usize {
        0
    }

    /// Unwinds one frame as if for the first time, so many times. Not all engines can.
    fn steps(&mut self, _step: &Step, _stack: &[u64], _times: u32) -> bool {
        false
    }
}

/// All samples in order, so many times.
pub fn stream<E: Engine>(corpus: &Corpus, engine: &mut E, times: u32) {
    let starts: Vec<E::Start> = corpus.samples.iter().map(|sample| engine.start(sample)).collect();
    for _ in 0..times {
        for (sample, start) in corpus.samples.iter().zip(&starts) {
            black_box(engine.walk(black_box(start), corpus.stack(sample)));
        }
    }
}

/// Each sample so many times in succession.
pub fn warm<E: Engine>(corpus: &Corpus, engine: &mut E, times: u32) {
    let starts: Vec<E::Start> = corpus.samples.iter().map(|sample| engine.start(sample)).collect();
    for (sample, start) in corpus.samples.iter().zip(&starts) {
        for _ in 0..times {
            black_box(engine.walk(black_box(start), corpus.stack(sample)));
        }
    }
}

/// Each frame that was met for the first time, so many times, with nothing remembered.
pub fn cold<E: Engine>(corpus: &Corpus, engine: &mut E, steps: &[Step], times: u32) -> bool {
    steps.iter().all(|step| {
        let stack = corpus.samples.get(step.sample).map_or(&[][..], |sample| corpus.stack(sample));
        engine.steps(step, stack, times)
    })
}

/// The callers of every sample: a word for their number, one for the end, then their program counters.
pub fn frames<E: Engine>(corpus: &Corpus, engine: &mut E) -> Vec<u64> {
    let mut all = Vec::new();
    for sample in &corpus.samples {
        let start = engine.start(sample);
        let end = engine.walk(&start, corpus.stack(sample));
        let at = all.len();
        all.extend([0, end as u64]);
        all.extend(engine.callers(corpus.stack(sample)));
        all[at] = (all.len() - at - 2) as u64;
    }
    all
}
