//! perf.data into a profile: `formats` hands out the records, `capture-perf` makes a profile of them.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use anyhow::{Context, Result, bail};
use plumb_formats::perf_data::{Header, Loss, PerfData};
use plumb_ingest::{Filter, Ingest, Source};
use plumb_profile::{EventId, Profile};

use super::directory::{self, RingFiles};
use crate::terminal::say;

/// Reads the perf.data file `input`, called `name` in messages. `symfs`: the directory with the files of the recorded machine.
pub fn read<R: Read + Seek>(input: R, name: &str, symfs: Option<&Path>) -> Result<Profile> {
    let input = PerfData::open(input).with_context(|| name.to_string())?;
    if input.header().directory_version.is_some_and(|version| version > 0) {
        bail!(
            "{name}: only the header of a directory of `perf record --threads`: its samples are in files data.0, data.1, … of the directory; \
             name the whole directory"
        );
    }
    ingested(input, name, symfs, Vec::new())
}

/// Reads `input`, the file `data` of a directory of perf, and the files with samples beside it.
pub fn read_in_directory(input: File, path: &Path, name: &str, symfs: Option<&Path>) -> Result<Profile> {
    let mut input = PerfData::open(input).with_context(|| name.to_string())?;
    let header = input.header();
    let has_samples = match header.directory_version {
        Some(version @ 2..) => {
            bail!("{name}: version {version} of perf's directories; plumb reads versions 0 and 1")
        }
        Some(version) => version == 1,
        // A recorder that was killed wrote no facts at all.
        None => header.perf_version.is_empty(),
    };
    let mut warnings = Vec::new();
    if has_samples {
        let RingFiles { files, missing } = directory::ring_files(path)?;
        if let Some(first) = missing.first() {
            let count = missing.len();
            warnings.push(format!(
                "{count} of the directory's files are missing (the first is data.{first}): samples of some processors are not in this profile"
            ));
        }
        input.add_files(files).with_context(|| name.to_string())?;
    }
    ingested(input, name, symfs, warnings)
}

/// Makes a profile of all records; the warnings are printed and kept in it.
fn ingested<R: Read + Seek>(
    mut input: PerfData<R>,
    name: &str,
    symfs: Option<&Path>,
    warnings: Vec<String>,
) -> Result<Profile> {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    ingest.recorded_on("", symfs);
    for (path, id) in &input.header().build_ids {
        ingest.build_id(path.as_bytes(), id.bytes());
    }
    let mut events: Vec<EventId> = Vec::new();
    loop {
        // A pipe says it late, in a record of its own.
        if ingest.profile().meta.arch.is_empty() && !input.header().arch.is_empty() {
            ingest.recorded_on(&input.header().arch, symfs);
        }
        let Some(record) = input.next_record() else { break };
        for event in &record.events[events.len()..] {
            events.push(ingest.add_event(&event.name, &event.unit));
        }
        ingest.record(events[record.event], &record.raw);
    }
    let (mut profile, statistics) = ingest.finish();
    check_sum(&profile, name)?;
    for warning in warnings {
        say!("{name}: {warning}");
        profile.meta.warnings.push(warning);
    }
    warn(name, input.loss());
    tell(&mut profile, input.header());
    profile.meta.lost_samples = statistics.lost_samples;
    profile.meta.damaged_records = input.loss().damaged_records + statistics.damaged_records;
    if statistics.deferred_missing > 0 {
        profile.meta.warnings.push(format!(
            "the user stacks of {} samples were deferred and are not in the file: recording ended, or their threads did, before the kernel \
             walked them",
            statistics.deferred_missing
        ));
    }
    if statistics.lost_records > 0 {
        profile.meta.warnings.push(format!(
            "{} records of mappings or processes were lost while recording: some frames may be without a file",
            statistics.lost_records
        ));
    }
    Ok(profile)
}

/// Fails if the sum of all weights overflows.
fn check_sum(profile: &Profile, name: &str) -> Result<()> {
    let mut total = 0_u64;
    for (number, sample) in profile.samples.iter().enumerate() {
        let Some(sum) = total.checked_add(sample.weight) else {
            bail!(
                "{name}: sample {number}, at {} ns, weighs {}: with that the sum of all is more than 2^64 - 1, which nothing can have measured",
                sample.time_ns,
                sample.weight
            );
        };
        total = sum;
    }
    Ok(())
}

/// Fills in the facts, and the times from the samples.
fn tell(profile: &mut Profile, header: &Header) {
    let times = || profile.samples.iter().map(|sample| sample.time_ns);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let warnings = std::mem::take(&mut profile.meta.warnings);
    profile.meta = header.meta();
    profile.meta.warnings = warnings;
    profile.meta.start_ns = first;
    profile.meta.duration_ns = last - first;
    profile.meta.start_unix_ns = header.unix_ns(first).unwrap_or(0);
}

fn warn(name: &str, loss: &Loss) {
    for warning in &loss.warnings {
        say!("{name}: {warning}");
    }
    if loss.more_warnings > 0 {
        say!("{name}: and {} more like these", loss.more_warnings);
    }
    match loss.damaged_records {
        0 => {}
        1 => say!("{name}: one damaged record was left out"),
        count => say!("{name}: {count} damaged records were left out"),
    }
}
