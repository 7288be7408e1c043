//! Times `plumb annotate` after the recording is loaded, step by step, for its hottest functions: best and median of several times.
//!
//! `cargo run --release -p plumb --example annotate_cost -- RECORDING [FUNCTIONS]`
//!
//! `valgrind --tool=callgrind` counts instructions: of `annotate_cost RECORDING FUNCTIONS TIMES`, which annotates the last of so
//! many functions so many times and does nothing else, two counts differ by what the additional times take.

use std::cell::RefCell;
use std::fs::File;
use std::time::Instant;

use plumb_analyze::{Filter, Listing, SampledFunction, View, sampled};
use plumb_profile::{Address, Profile};
use plumb_symbolize::{Binary, Options};

const TIMES: usize = 21;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: annotate_cost RECORDING [FUNCTIONS [TIMES]]")?;
    let count: usize = arguments.next().map_or(Ok(10), |count| count.parse())?;
    let times: Option<usize> = arguments.next().map(|times| times.parse()).transpose()?;
    let mut profile = plumb_formats::native::read(File::open(file)?)?;
    plumb_symbolize::make_readable(&mut profile);
    let view = View::new(&profile, &Filter::default());
    let options = Options::default();
    let functions = sampled(&view, None, None);
    let user = functions.iter().filter(|function| Binary::open(&profile, function.dso, &options).is_ok());
    if let Some(times) = times {
        let function = user.take(count).last().ok_or("no function can be annotated")?;
        for _ in 0..times {
            std::hint::black_box(plumb_documents::code::annotate(&view, function, &options)?);
        }
        return Ok(());
    }
    println!("{} samples; milliseconds, best / median of {TIMES}", profile.samples.len());
    println!(
        "| function | file | instructions | file opened, bytes | decode | samples, skid, text | lines | all |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for function in user.take(count) {
        row(&profile, &view, function, &options)?;
    }
    Ok(())
}

fn row(
    profile: &Profile,
    view: &View<'_>,
    function: &SampledFunction,
    options: &Options,
) -> Result<(), Box<dyn std::error::Error>> {
    let open = || Binary::open(profile, function.dso, options);
    let code = open()?.code(function.address)?;
    let opened: Vec<_> = (0..TIMES).map(|_| open()).collect::<Result<_, _>>()?;
    let opened = RefCell::new(opened);
    let decode = || Listing::decode(code.start, &code.bytes, code.set);
    let listing = decode();
    let addresses: Vec<Address> = listing.instructions().iter().map(|i| i.address).collect();
    let samples = || {
        let annotation = plumb_analyze::Annotation::new(view, function, listing.clone(), Vec::new());
        annotation.listing.texts(&Default::default())
    };
    let file = function.path.rsplit('/').next().unwrap_or_default();
    println!(
        "| {} | {file} | {} | {} | {} | {} | {} | {} |",
        plumb_analyze::shorten(&function.name, 40),
        addresses.len(),
        timed(|| open().and_then(|mut binary| binary.code(function.address))),
        timed(decode),
        timed(samples),
        // Each file is asked once, as by the command.
        timed(|| opened.borrow_mut().pop().map(|mut binary| binary.places(&addresses))),
        timed(|| plumb_documents::code::annotate(view, function, options)),
    );
    Ok(())
}

fn timed<T>(work: impl Fn() -> T) -> String {
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    format!("{:.2} / {:.2}", times[0], times[TIMES / 2])
}
