//! Runs one unwinder over one corpus, so that its instructions can be counted from outside.
//!
//! `convert PERF.DATA CORPUS SAMPLES`, `thin CORPUS SAMPLES CORPUS`, `truth CORPUS`, `tables TIMES CORPUS`, `run ENGINE MODE TIMES CORPUS SAMPLES`, `count CORPUS SAMPLES`,
//! `frames ENGINE CORPUS OUT`, `compare CORPUS FRAMES`. `run.py` calls it and prints the table; what the modes are stands there.

mod compare;
mod convert;
mod corpus;
mod engine;
mod framehop;
mod full;
#[path = "../../../crates/unwind/tests/gimli_rows/mod.rs"]
mod gimli_rows;
mod image;
mod plumb;
#[path = "../../../crates/unwind/tests/reference/mod.rs"]
mod reference;

use std::alloc::System;
use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use plumb_unwind::table::Table;

use crate::corpus::{Corpus, Step};
use crate::engine::Engine;

/// Knows how much is allocated.
#[global_allocator]
static HEAP: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["convert", input, output, most] => {
            println!("{}", convert::convert(Path::new(input), Path::new(output), most.parse()?)?);
            Ok(())
        }
        ["thin", corpus, most, output] => Ok(convert::thin(
            &Corpus::read(Path::new(corpus), usize::MAX)?,
            most.parse()?,
            Path::new(output),
        )?),
        ["tables", times, corpus] => tables(times.parse()?, Path::new(corpus)),
        ["truth", corpus] => truth(Path::new(corpus)),
        ["run", engine, mode, times, corpus, samples] => {
            run(engine, mode, times.parse()?, Path::new(corpus), samples.parse()?)
        }
        ["count", corpus, samples] => count(Path::new(corpus), samples.parse()?),
        ["frames", engine, corpus, output] => frames(engine, Path::new(corpus), Path::new(output)),
        ["compare", corpus, frames] => compare(Path::new(corpus), Path::new(frames)),
        _ => Err("see src/main.rs for what can be asked".into()),
    }
}

fn write_words(path: &Path, words: &[u64]) -> Outcome {
    Ok(std::fs::write(path, bytemuck::cast_slice(words))?)
}

fn read_words(path: &Path) -> Result<Vec<u64>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Writes what gimli finds, and the frames whose address is met for the first time.
fn truth(path: &Path) -> Outcome {
    let corpus = Corpus::read(path, usize::MAX)?;
    let images = image::load_all(&corpus);
    let mut full = full::Full::new(&corpus, &images);
    write_words(&path.with_extension("truth"), &engine::frames(&corpus, &mut full))?;
    let mut known = HashSet::new();
    let mut steps = Vec::new();
    for (number, sample) in corpus.samples.iter().enumerate() {
        full.visited = Some(Vec::new());
        full.walk(&full.start(sample), corpus.stack(sample));
        for (registers, is_return) in full.visited.take().unwrap_or_default() {
            if known.insert((registers.ip(), is_return)) {
                let mut values = std::array::from_fn(|register| registers.get(register as u16).unwrap_or(0));
                // No rule of these programs needs rax; engines need to know where the copy begins.
                values[0] = sample.registers[7];
                let is_known = |register: &u16| registers.get(*register).is_some();
                let known = (0..17).filter(is_known).fold(0, |known, register| known | 1 << register);
                steps.push(Step { sample: number, is_return, known, registers: values });
            }
        }
    }
    Ok(corpus::write_steps(&path.with_extension("steps"), &steps)?)
}

fn run(engine: &str, mode: &str, times: u32, path: &Path, samples: usize) -> Outcome {
    let corpus = Corpus::read(path, samples)?;
    match engine {
        "plumb" => run_with(&corpus, plumb::Plumb::new(&corpus), mode, times, path),
        "plumb-slots" => run_with(&corpus, plumb::Traced::new(&corpus, false), mode, times, path),
        "plumb-tables" => run_with(&corpus, plumb::Traced::new(&corpus, true), mode, times, path),
        "framehop" => run_with(&corpus, framehop::Framehop::new(&corpus), mode, times, path),
        "gimli" => {
            let images = image::load_all(&corpus);
            run_with(&corpus, full::Full::new(&corpus, &images), mode, times, path)
        }
        _ => Err(format!("no engine is called {engine}").into()),
    }
}

fn run_with<E: Engine>(corpus: &Corpus, mut engine: E, mode: &str, times: u32, path: &Path) -> Outcome {
    match mode {
        "stream" => engine::stream(corpus, &mut engine, times),
        "warm" => engine::warm(corpus, &mut engine, times),
        "cold" => {
            let steps = corpus::read_steps(&path.with_extension("steps"))?;
            if !engine::cold(corpus, &mut engine, &steps, times) {
                return Err("this engine can't forget".into());
            }
        }
        // What the samples made it keep, without the files' bytes and the list of frames.
        "heap" => {
            let before = HEAP.allocated();
            engine::stream(corpus, &mut engine, times);
            println!("{}", engine.made_before() + HEAP.allocated().saturating_sub(before));
        }
        _ => return Err(format!("no mode is called {mode}").into()),
    }
    Ok(())
}

/// Makes the tables of the files of a corpus so many times. Prints what they come to.
fn tables(times: u32, path: &Path) -> Outcome {
    let corpus = Corpus::read(path, 0)?;
    let modules = plumb::modules(&corpus);
    let frames: usize =
        modules.iter().map(|module| module.sections().eh_frame.as_ref().map_or(0, |f| f.bytes.len())).sum();
    let (mut bytes, mut rows, mut best) = (0, 0, Duration::MAX);
    for _ in 0..times {
        let began = Instant::now();
        let tables: Vec<Table> =
            modules.iter().filter_map(|module| Table::by_length(module).ok()).map(black_box).collect();
        best = best.min(began.elapsed());
        bytes = tables.iter().map(Table::size).sum();
        rows = tables.iter().map(Table::rows).sum();
    }
    println!(
        "{{\"eh_frame\": {frames}, \"bytes\": {bytes}, \"rows\": {rows}, \"seconds\": {}}}",
        best.as_secs_f64()
    );
    Ok(())
}

/// Prints how many frames gimli finds in the first samples, and how many distinct addresses and steps these have.
fn count(path: &Path, samples: usize) -> Outcome {
    let corpus = Corpus::read(path, samples)?;
    let truth = read_words(&path.with_extension("truth"))?;
    let steps = corpus::read_steps(&path.with_extension("steps"))?;
    let steps = steps.iter().filter(|step| step.sample < corpus.samples.len()).count();
    let frames = compare::frames(&truth, corpus.samples.len());
    println!("{{\"frames\": {frames}, \"addresses\": {steps}, \"steps\": {steps}}}");
    Ok(())
}

fn frames(engine: &str, path: &Path, output: &Path) -> Outcome {
    let corpus = Corpus::read(path, usize::MAX)?;
    let words = match engine {
        "plumb" => engine::frames(&corpus, &mut plumb::Plumb::new(&corpus)),
        "plumb-slots" => engine::frames(&corpus, &mut plumb::Traced::new(&corpus, false)),
        "plumb-tables" => engine::frames(&corpus, &mut plumb::Traced::new(&corpus, true)),
        "framehop" => engine::frames(&corpus, &mut framehop::Framehop::new(&corpus)),
        _ => return Err(format!("no engine is called {engine}").into()),
    };
    write_words(output, &words)
}

/// Prints a comparison as JSON.
fn compare(path: &Path, frames: &Path) -> Outcome {
    let corpus = Corpus::read(path, usize::MAX)?;
    let truth = read_words(&path.with_extension("truth"))?;
    let steps = corpus::read_steps(&path.with_extension("steps"))?;
    let outcome = compare::compare(&corpus, &truth, &read_words(frames)?);
    let places: Vec<String> =
        outcome.places.iter().map(|(place, count)| format!("[{place:?}, {count}]")).collect();
    println!(
        "{{\"samples\": {}, \"frames\": {}, \"addresses\": {}, \"different_samples\": {}, \"different_frames\": {}, \
         \"cut_samples\": {}, \"cut_frames\": {}, \"further_samples\": {}, \"further_frames\": {}, \"places\": [{}]}}",
        outcome.samples,
        outcome.frames,
        steps.len(),
        outcome.different_samples,
        outcome.different_frames,
        outcome.cut_samples,
        outcome.cut_frames,
        outcome.further_samples,
        outcome.further_frames,
        places.join(", ")
    );
    Ok(())
}
