//! Compares the frames that an engine found with gimli's.

use std::collections::BTreeMap;

use crate::corpus::Corpus;
use crate::engine::End;

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    pub samples: usize,
    /// Frames that gimli found, the sampled ones included.
    pub frames: usize,
    /// Samples with other callers, where gimli reached the outermost frame or lacked information.
    pub different_samples: usize,
    /// Frames from where the callers differ, the longer chain's.
    pub different_frames: usize,
    /// The same of samples whose copied stack ends before gimli is done: `different_*` have only the others.
    pub cut_samples: usize,
    /// And their frames.
    pub cut_frames: usize,
    /// Samples where gimli ends without information and the engine agrees so far and goes on.
    pub further_samples: usize,
    /// The frames that it finds there.
    pub further_frames: usize,
    /// Where callers first differ: how often.
    pub places: BTreeMap<String, usize>,
}

/// One sample's callers and end.
struct Chain<'a> {
    end: u64,
    callers: &'a [u64],
}

fn chains(mut words: &[u64]) -> impl Iterator<Item = Chain<'_>> {
    std::iter::from_fn(move || {
        let (&[count, end], rest) = words.split_first_chunk()?;
        let (callers, rest) = rest.split_at_checked(count as usize)?;
        words = rest;
        Some(Chain { end, callers })
    })
}

/// How many frames the first `samples` have, the sampled ones included.
pub fn frames(truth: &[u64], samples: usize) -> usize {
    chains(truth).take(samples).map(|chain| chain.callers.len() + 1).sum()
}

/// A place in a file, which goes by its name alone.
fn place(corpus: &Corpus, pc: u64) -> String {
    let index = corpus.mappings.partition_point(|mapping| mapping.range.end <= pc);
    match corpus.mappings.get(index).filter(|mapping| mapping.range.start <= pc) {
        Some(mapping) => {
            let name = mapping.path.rsplit('/').next().unwrap_or_default();
            format!("{name}+{:#x}", pc.wrapping_sub(mapping.bias))
        }
        None => format!("{pc:#x}, not mapped"),
    }
}

/// Compares; `truth` and `found` are words as `engine::frames` makes them.
pub fn compare(corpus: &Corpus, truth: &[u64], found: &[u64]) -> Outcome {
    let mut outcome = Outcome::default();
    for ((sample, truth), found) in corpus.samples.iter().zip(chains(truth)).zip(chains(found)) {
        outcome.samples += 1;
        outcome.frames += truth.callers.len() + 1;
        if truth.callers == found.callers {
            continue;
        }
        let same = truth.callers.iter().zip(found.callers).take_while(|(a, b)| a == b).count();
        let rest = truth.callers.len().max(found.callers.len()) - same;
        let pc = match same.checked_sub(1) {
            Some(last) => truth.callers[last].wrapping_sub(1),
            None => sample.registers[16],
        };
        let is_further = same == truth.callers.len() && truth.end == End::NoInfo as u64;
        if is_further {
            outcome.further_samples += 1;
            outcome.further_frames += rest;
        } else if truth.end == End::Other as u64 {
            outcome.cut_samples += 1;
            outcome.cut_frames += rest;
        } else {
            outcome.different_samples += 1;
            outcome.different_frames += rest;
        }
        let how = match (same == truth.callers.len(), same == found.callers.len()) {
            (true, _) if is_further => "goes on without information",
            (true, _) => "goes on where gimli fails",
            (_, true) => "stops",
            _ => "another caller",
        };
        *outcome.places.entry(format!("{how} at {}", place(corpus, pc))).or_default() += 1;
    }
    outcome
}
