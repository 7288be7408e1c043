//! Mutated inputs for all readers. Whatever the bytes are, the result is a profile with reports, or a one-sentence error. Never a
//! panic, and memory stays bounded by the size of the input.
//!
//! `PLUMB_MUTATIONS` sets their number; the default takes some seconds, with the same inputs every time. To run by hand, with a table of results:
//! `PLUMB_MUTATIONS=100000 cargo test -p plumb --bin plumb mutated -- --nocapture`. `PLUMB_MUTATIONS_OF` restricts it to one format.

mod change;
mod corpus;
mod perf_data;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use plumb_formats::{callgrind, chrome, csv, firefox, folded, native, otlp, pprof, speedscope};
use plumb_profile::Profile;

use change::{Dice, changed};
use corpus::FileFormat;

use crate::cmd;
use crate::terminal::Output;
use crate::words::parsed;

/// Default number of inputs.
const FEW: usize = 1400;
/// Memory limit for each input: readers allow themselves 64 MiB and a small multiple of the input, and a count may become two million samples.
const MOST_KB: u64 = 600 << 10;
/// Larger profiles are read, but no reports are made.
const MOST_SAMPLES: usize = 20_000;

/// Results for the inputs of one format.
#[derive(Default)]
struct Outcome {
    inputs: usize,
    read: usize,
    refused: usize,
    panicked: usize,
    slowest: Duration,
    most_kb: u64,
}

#[test]
fn mutated_inputs_are_read_or_refused() {
    let wanted = std::env::var("PLUMB_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
    let folder = std::env::temp_dir().join(format!("plumb-mutated-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let formats = corpus::all();
    let began = Instant::now();
    println!(
        "| format | inputs | read | refused | panics | slowest | most memory |\n|---|---:|---:|---:|---:|---:|---:|"
    );
    let mut panicked = 0;
    let mut total = 0;
    let only = std::env::var("PLUMB_MUTATIONS_OF").unwrap_or_default();
    for (number, format) in formats.iter().enumerate().filter(|(_, format)| format.name.contains(&only)) {
        let share = wanted / formats.len() + usize::from(number < wanted % formats.len());
        let other = formats[(number + 1) % formats.len()].seeds[0].clone();
        let outcome = run(format, &other, share, number as u64, &folder);
        println!(
            "| {} | {} | {} | {} | {} | {:.1} ms | {:.1} MB |",
            format.name,
            outcome.inputs,
            outcome.read,
            outcome.refused,
            outcome.panicked,
            outcome.slowest.as_secs_f64() * 1e3,
            outcome.most_kb as f64 / 1024.0
        );
        assert!(outcome.most_kb < MOST_KB, "{}: {} kB", format.name, outcome.most_kb);
        panicked += outcome.panicked;
        total += outcome.inputs;
    }
    println!("\n{total} inputs in {:.0} s, {panicked} panics", began.elapsed().as_secs_f64());
    if panicked == 0 {
        fs::remove_dir_all(&folder).unwrap();
    }
    assert_eq!(panicked, 0, "the inputs are in {}", folder.display());
}

fn run(format: &FileFormat, other: &[u8], share: usize, number: u64, folder: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    for round in 0..share {
        let mut dice = Dice(number << 32 | round as u64);
        let seed = &format.seeds[round % format.seeds.len()];
        // The seeds themselves come first: a corpus that is rejected would prove nothing.
        let is_seed = round < format.seeds.len();
        let bytes = if is_seed { seed.clone() } else { changed(seed, other, &mut dice) };
        let bytes = (format.finish)(bytes);
        let before = resident_kb();
        let began = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let profile = (format.read)(&bytes, folder);
            let took = began.elapsed();
            if let Ok(Some(profile)) = &profile {
                report(profile, round);
            }
            (profile.map(|_| ()), took)
        }));
        outcome.inputs += 1;
        let kb = peak_kb().saturating_sub(before);
        outcome.most_kb = outcome.most_kb.max(kb);
        if kb >= MOST_KB {
            println!("{}-{round}: {kb} kB", format.name);
            fs::write(folder.join(format!("large-{round}")), &bytes).unwrap();
        }
        match result {
            Ok((read, took)) => {
                outcome.slowest = outcome.slowest.max(took);
                outcome.read += usize::from(read.is_ok());
                outcome.refused += usize::from(read.is_err());
                assert!(
                    !is_seed || read.is_ok() || format.name.contains("refused"),
                    "{}: {read:?}",
                    format.name
                );
            }
            Err(_) => {
                outcome.panicked += 1;
                let name = format!("{}-{round}", format.name.replace(['/', ' ', ','], "_"));
                println!("panicked: {name}");
                fs::write(folder.join(name), &bytes).unwrap();
            }
        }
    }
    outcome
}

/// Makes one kind of report, in turn: all of them for each input would take long.
fn report(profile: &Profile, round: usize) {
    if profile.samples.len() > MOST_SAMPLES {
        return;
    }
    let mut out = Output::plain(std::io::sink());
    // Success or error, the report must return.
    let _ = match round % 16 {
        0 => cmd::report::write(profile, &parsed("report", &["--full-names"]).unwrap(), &mut out),
        1 => cmd::report::write(profile, &parsed("report", &["--top-down", "--min", "0"]).unwrap(), &mut out),
        2 => cmd::report::write(profile, &parsed("report", &["--json", "--bottom-up"]).unwrap(), &mut out),
        3 => cmd::report::write(
            profile,
            &parsed("report", &["--csv", "-s", "pid,tid,exe,srcline"]).unwrap(),
            &mut out,
        ),
        4 => cmd::explain::write(profile, &parsed("explain", &["--json"]).unwrap(), &mut out),
        5 => cmd::explain::write(profile, &parsed("explain", &["--md"]).unwrap(), &mut out),
        6 => cmd::procs::write(profile, &parsed("procs", &["--json"]).unwrap(), &mut out),
        7 => cmd::script::write(
            profile,
            crate::render::perf_script::Fields::default(),
            &Default::default(),
            &mut out,
        ),
        8 => {
            folded::write(profile, &folded::FoldedOptions { annotate: true, ..Default::default() }, &mut out)
                .map_err(Into::into)
        }
        9 => pprof::write(profile, &mut out).map_err(Into::into),
        10 => speedscope::write(profile, &mut out).map_err(Into::into),
        11 => firefox::write(profile, &mut out).map_err(Into::into),
        12 => chrome::write(profile, &mut out).map_err(Into::into),
        13 => callgrind::write(profile, &mut out).map_err(Into::into),
        14 => otlp::write(profile, &mut out).and_then(|()| csv::write(profile, &mut out)).map_err(Into::into),
        _ => {
            let mut recording = std::io::Cursor::new(Vec::new());
            native::write(profile, &mut recording).unwrap();
            recording.set_position(0);
            let again = native::read(recording).expect("what was read and written can be read");
            assert_eq!(again.samples, profile.samples);
            Ok(())
        }
    };
}

/// Resident memory now, in KB. Also resets the peak.
fn resident_kb() -> u64 {
    let _ = fs::write("/proc/self/clear_refs", "5");
    status_kb("VmRSS:")
}

fn peak_kb() -> u64 {
    status_kb("VmHWM:")
}

fn status_kb(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
