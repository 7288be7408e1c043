//! perf.data as this machine's perf writes it: every record that `perf report --stats` counts is returned, in order.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linux_perf_event_reader::{EventRecord, RecordType};
use plumb_fixtures::{Requirement, skip};
use plumb_formats::perf_data::PerfData;

/// Some 50 ms of work, a few processes, and page faults.
const WORK: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; ls / >/dev/null; ls /usr >/dev/null";

/// Records [`WORK`] with these options. `None`, after printing the reason, if perf is missing or may not record.
fn record(name: &str, options: &[&str]) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}.data", std::process::id()));
    let to_pipe = options.contains(&"-o");
    let mut command = Command::new("perf");
    command.arg("record").args(options);
    if !to_pipe {
        command.arg("-o").arg(&path);
    }
    let out = if to_pipe { std::fs::File::create(&path).unwrap().into() } else { Stdio::null() };
    let status = command.args(["--", "sh", "-c", WORK]).stdout(out).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Some(path),
        Ok(status) => {
            skip(
                Requirement::PerfCommand,
                format_args!("{name}: perf record {} fails here: {status}", options.join(" ")),
            );
            None
        }
        Err(error) => {
            skip(Requirement::PerfCommand, format_args!("{name}: perf can't be run here: {error}"));
            None
        }
    }
}

/// The records read: by type, samples by event, and the number of samples with certain fields.
#[derive(Default, Debug, PartialEq)]
struct Counts {
    types: BTreeMap<&'static str, u64>,
    samples: BTreeMap<String, u64>,
    with_stack: u64,
    with_chain: u64,
    period: u64,
    damaged: u64,
}

fn type_name(kind: RecordType) -> Option<&'static str> {
    Some(match kind {
        RecordType::MMAP => "MMAP",
        RecordType::MMAP2 => "MMAP2",
        RecordType::COMM => "COMM",
        RecordType::FORK => "FORK",
        RecordType::EXIT => "EXIT",
        RecordType::SAMPLE => "SAMPLE",
        _ => return None,
    })
}

fn read(bytes: &[u8]) -> Counts {
    counts(PerfData::open(Cursor::new(bytes)).unwrap())
}

fn counts<R: Read + Seek>(mut input: PerfData<R>) -> Counts {
    let mut counts = Counts::default();
    let mut last = 0;
    while let Some(record) = input.next_record() {
        if let Some(name) = type_name(record.raw.record_type) {
            *counts.types.entry(name).or_default() += 1;
        }
        let event = record.event;
        match record.raw.parse().unwrap() {
            EventRecord::Sample(sample) => {
                let time = sample.timestamp.unwrap();
                assert!(time >= last, "samples are in the order of their time");
                last = time;
                counts.with_stack += u64::from(sample.user_stack.is_some_and(|(stack, _)| !stack.is_empty()));
                counts.with_chain += u64::from(sample.callchain.is_some_and(|chain| !chain.is_empty()));
                counts.period += sample.period.unwrap();
                let name = input.header().events[event].name.clone();
                *counts.samples.entry(name).or_default() += 1;
            }
            EventRecord::Mmap2(mapping) => assert!(!mapping.path.as_slice().is_empty()),
            _ => {}
        }
    }
    counts.damaged = input.loss().damaged_records;
    counts
}

/// The counts of `perf report --stats`: records by type, samples by event.
fn perf_counts(path: &Path) -> Counts {
    let out = Command::new("perf").args(["report", "--stats", "-i"]).arg(path).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let mut counts = Counts::default();
    let mut event = None;
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" stats:").filter(|name| !name.contains("Aggregated")) {
            // Without permission for kernel code perf adds H if no name came, as through a pipe: guests are excluded too.
            let name = name.strip_suffix("uH").map_or(name.to_string(), |name| format!("{name}u"));
            event = Some(name);
        }
        let Some((kind, count)) = line.split_once(" events:") else { continue };
        let count: u64 = count.split_whitespace().next().unwrap().parse().unwrap();
        let known = ["MMAP", "MMAP2", "COMM", "FORK", "EXIT", "SAMPLE"];
        match (&event, known.into_iter().find(|known| *known == kind.trim())) {
            (None, Some(kind)) => {
                counts.types.insert(kind, count);
            }
            (Some(event), Some("SAMPLE")) => {
                counts.samples.insert(event.clone(), count);
            }
            _ => {}
        }
    }
    counts
}

/// Records with `options`, and fails unless the counts equal perf's.
fn same_as_perf(name: &str, options: &[&str]) -> Option<Counts> {
    let path = record(name, options)?;
    let (ours, mut perfs) = (read(&std::fs::read(&path).unwrap()), perf_counts(&path));
    std::fs::remove_file(&path).unwrap();
    // A record of a group contains samples of several events; perf counts it once among the records.
    perfs.types.insert("SAMPLE", perfs.samples.values().sum());
    assert_eq!(ours.types, perfs.types, "{name}: records by type");
    assert!(ours.types["SAMPLE"] > 10, "{name}: too few samples to tell anything");
    assert_eq!(ours.damaged, 0, "{name}");
    // Some versions of perf omit events without samples from the list.
    let mut named = perfs.samples;
    named.retain(|_, count| *count > 0);
    assert_eq!(ours.samples, named, "{name}: samples by event");
    Some(ours)
}

#[test]
fn plain() {
    same_as_perf("plain", &["-e", "cpu-clock", "-F", "2000"]);
}

#[test]
fn callchains() {
    if let Some(counts) = same_as_perf("callchains", &["-e", "cpu-clock", "-F", "2000", "-g"]) {
        assert_eq!(counts.with_chain, counts.types["SAMPLE"]);
    }
}

#[test]
fn stack_copies() {
    if let Some(counts) = same_as_perf("stacks", &["-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf"])
    {
        assert!(counts.with_stack > counts.types["SAMPLE"] / 2);
    }
}

#[test]
fn compressed() {
    let options = ["-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf,16384", "-z"];
    if let Some(counts) = same_as_perf("compressed", &options) {
        assert!(counts.with_stack > counts.types["SAMPLE"] / 2);
    }
}

#[test]
fn several_events() {
    let events = "cpu-clock/freq=2000/,context-switches/period=1/,page-faults/period=1/";
    if let Some(counts) = same_as_perf("several", &["-e", events, "-g"]) {
        assert!(counts.samples.len() >= 2, "{counts:?}");
    }
}

#[test]
fn events_that_differ_in_what_they_record() {
    let events = "cpu-clock/freq=2000,call-graph=dwarf/,page-faults/period=1,call-graph=no/";
    if let Some(counts) = same_as_perf("differing", &["-e", events]) {
        assert!(counts.with_stack > 0 && counts.with_stack < counts.types["SAMPLE"]);
    }
}

#[test]
fn a_group_with_counter_values() {
    let options = ["-e", "{cpu-clock,page-faults}:S", "-F", "2000", "--call-graph", "dwarf"];
    if let Some(counts) = same_as_perf("group", &options) {
        assert!(counts.with_stack > counts.types["SAMPLE"] / 2, "the stack is found behind the values");
    }
}

#[test]
fn a_fixed_period_is_every_samples_weight() {
    if let Some(counts) = same_as_perf("fixed", &["-e", "cpu-clock", "-c", "500000"]) {
        assert_eq!(counts.period, 500_000 * counts.types["SAMPLE"]);
    }
}

#[test]
fn build_ids_in_mappings() {
    same_as_perf("buildids", &["-e", "cpu-clock", "-F", "2000", "--buildid-mmap"]);
}

#[test]
fn through_a_pipe() {
    // A frequency for both: perf 6.1 reads no names with terms from a pipe.
    let options = ["-e", "cpu-clock,page-faults", "-F", "2000", "--call-graph", "dwarf", "-o", "-"];
    if let Some(counts) = same_as_perf("pipe", &options) {
        assert!(counts.with_stack > 0 && counts.samples.len() == 2, "{counts:?}");
    }
}

#[test]
fn through_a_pipe_compressed() {
    // perf 6.1 cannot read its own output here, so there is nothing to compare with.
    let options = ["-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf", "-z", "-o", "-"];
    let Some(path) = record("pipe-z", &options) else { return };
    let counts = read(&std::fs::read(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(counts.damaged, 0);
    assert!(counts.types["SAMPLE"] > 10 && counts.with_stack > counts.types["SAMPLE"] / 2, "{counts:?}");
}

/// `perf record --threads` writes a file for each ring, without the ends of rounds.
#[test]
fn a_directory_of_files_merges_by_time() {
    for (name, packed) in [("threads", "--threads"), ("threads-z", "-z")] {
        let options = ["--threads", packed, "-e", "cpu-clock", "-F", "4000", "--call-graph", "dwarf"];
        let Some(path) = record(name, &options) else { return };
        let header = std::fs::File::open(path.join("data")).unwrap();
        let mut input = PerfData::open(header).unwrap();
        assert_eq!(input.header().directory_version, Some(1), "{name}");
        let rings = (0..).map(|number| format!("data.{number}")).take_while(|name| path.join(name).exists());
        let rings: Vec<_> =
            rings.map(|name| (name.clone(), std::fs::File::open(path.join(name)).unwrap())).collect();
        assert!(!rings.is_empty(), "{name}");
        input.add_files(rings).unwrap();
        let (ours, perfs) = (counts(input), perf_counts(&path));
        std::fs::remove_dir_all(&path).unwrap();
        assert!(ours.types["SAMPLE"] > 10, "{name}: {ours:?}");
        assert_eq!(ours.types, perfs.types, "{name}: records by type");
        assert_eq!(ours.samples, perfs.samples, "{name}: samples by event");
        assert_eq!(ours.damaged, 0, "{name}");
    }
}

#[test]
fn the_header_tells_what_perf_tells() {
    let Some(path) = record("header", &["-e", "cpu-clock", "-F", "1234", "-k", "monotonic"]) else { return };
    let input = PerfData::open(std::fs::File::open(&path).unwrap()).unwrap();
    let header = input.header();
    let out = Command::new("perf").args(["report", "--header-only", "-i"]).arg(&path).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let fact = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("# {name}"))).unwrap();
        line.split_once(" : ").unwrap().1.trim().to_string()
    };
    assert_eq!(header.host, fact("hostname"));
    assert_eq!(header.kernel, fact("os release"));
    assert_eq!(header.perf_version, fact("perf version"));
    assert_eq!(header.arch, fact("arch"));
    assert_eq!(header.cpus.to_string(), fact("nrcpus online"));
    assert_eq!(header.command.join(" "), fact("cmdline"));
    assert_eq!(header.events[0].frequency_hz(), Some(1234));
    assert_eq!(header.events[0].unit, "ns");
    assert!(header.clock.is_some());
    let out = Command::new("perf").args(["buildid-list", "-i"]).arg(&path).output().unwrap();
    let perfs = String::from_utf8(out.stdout).unwrap();
    let ours: Vec<String> = header.build_ids.iter().map(|(path, id)| format!("{id} {path}")).collect();
    assert_eq!(ours, perfs.lines().collect::<Vec<_>>());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn cut_off_files_give_what_is_whole() {
    for (name, options) in [
        ("cut", &["-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf"][..]),
        ("cut-pipe", &["-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf", "-o", "-"]),
        ("cut-z", &["-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf", "-z"]),
    ] {
        let Some(path) = record(name, options) else { return };
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let whole = read(&bytes).types["SAMPLE"];
        // Data after the records can be longer than compressed ones. perf_file_header: the position of the data and its
        // size; through a pipe all is data.
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
        let (begin, size) = if name == "cut-pipe" { (0, bytes.len()) } else { (word(40), word(48)) };
        let half = read(&bytes[..begin + size / 2 + 1]);
        assert_eq!(half.damaged, 1, "{name}");
        let left = half.types["SAMPLE"];
        assert!(left > whole / 8 && left < whole, "{name}: {left} of {whole} samples");
    }
}
