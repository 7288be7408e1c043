//! Reads a perf.data file through `Ingest` and prints what came out: for measuring (`valgrind --tool=callgrind`)
//! and for looking at single stacks.
//!
//! `ingest FILE [--stacks]`

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use linux_perf_data::{PerfFileReader, PerfFileRecord};
use plumb_ingest::{Filter, Ingest, Source, Statistics};
use plumb_profile::{FrameKind, Profile};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let (profile, statistics) = read(&path)?;
    println!("{statistics:#?}");
    println!("{} frames, {} stack nodes", profile.frames.len(), profile.stacks.len());
    println!(
        "{} processes, {} threads, {} mappings",
        profile.processes.len(),
        profile.threads.len(),
        profile.mappings.len()
    );
    if arguments.next().as_deref() == Some("--stacks") {
        print_stacks(&profile);
    }
    Ok(())
}

fn read(path: &str) -> Result<(Profile, Statistics), Box<dyn Error>> {
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(BufReader::new(File::open(path)?))?;
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        if let PerfFileRecord::EventRecord { record, .. } = record {
            ingest.record(event, &record);
        }
    }
    Ok(ingest.finish())
}

fn print_stacks(profile: &Profile) {
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let process = &profile.processes[thread.process];
        println!("{} {}/{} {}", profile.strings.get(thread.comm), process.pid, thread.tid, sample.time_ns);
        for id in profile.frames_of(sample.stack) {
            let frame = profile.frames[id];
            let dso = frame.dso.map_or("?", |dso| profile.strings.get(profile.dsos[dso].path));
            match frame.kind {
                FrameKind::Truncation(cut) => println!("  -- {} ({dso})", cut.text()),
                _ => println!("  {:x} {dso} {:?}", frame.address.0, frame.found),
            }
        }
    }
}
