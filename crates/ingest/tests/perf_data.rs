//! perf's recordings of small programs without frame pointers, read through `Ingest`. The expected stacks
//! follow from the programs: the calls, and, from the stack pointer, the depth.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use linux_perf_data::{PerfFileReader, PerfFileRecord};
use linux_perf_event_reader::EventRecord;
use plumb_fixtures::{Requirement, compiles, skip};
use plumb_ingest::{Filter, Ingest, Source, Statistics};
use plumb_profile::{Found, FrameKind, Profile, StackId};

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plumb-perf-data-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The ingested recording, and the user stack pointers of its samples by time.
struct Read {
    profile: Profile,
    statistics: Statistics,
    stack_pointers: HashMap<u64, u64>,
    symbols: Vec<(u64, String)>,
}

/// Compiles, records and reads a program; `None` with a notice if perf or cc is missing or fails.
/// `graph` is the value of perf's `--call-graph`.
fn record(folder: &Folder, source: &str, graph: &str, arguments: &[&str]) -> Option<Read> {
    let (code, program, data) = (folder.0.join("p.c"), folder.0.join("p"), folder.0.join("perf.data"));
    std::fs::write(&code, source).unwrap();
    let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-inline", "-o"];
    if !compiles(Command::new("cc").args(flags).args([&program, &code])) {
        return None;
    }
    let events = ["-q", "-F", "999", "-e", "cpu-clock", "--call-graph", graph, "-o"];
    let perf = Command::new("perf")
        .arg("record")
        .args(events)
        .arg(&data)
        .arg("--")
        .arg(&program)
        .args(arguments)
        .output();
    match perf {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            skip(
                Requirement::PerfCommand,
                format_args!("perf can't record: {}", String::from_utf8_lossy(&output.stderr)),
            );
            return None;
        }
        Err(error) => {
            skip(Requirement::PerfCommand, format_args!("perf does not run: {error}"));
            return None;
        }
    }
    Some(read(&data, &program))
}

fn read(data: &Path, program: &Path) -> Read {
    let reader = BufReader::new(File::open(data).unwrap());
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(reader).unwrap();
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let mut stack_pointers = HashMap::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        if let EventRecord::Sample(sample) = record.parse().unwrap()
            && let (Some(time), Some(registers)) = (sample.timestamp, &sample.user_regs)
        {
            stack_pointers.insert(time, registers.get(7).unwrap());
        }
        ingest.record(event, &record);
    }
    let (profile, statistics) = ingest.finish();
    Read { profile, statistics, stack_pointers, symbols: symbols(program) }
}

/// Functions of the program by address, from nm.
fn symbols(program: &Path) -> Vec<(u64, String)> {
    let output = Command::new("nm").arg("-n").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        let (kind, name) = rest.split_once(' ')?;
        (kind == "t" || kind == "T").then_some(())?;
        Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

impl Read {
    /// The functions of a stack that are the program's, innermost first.
    fn functions(&self, stack: Option<StackId>) -> Vec<&str> {
        let of_program = self.profile.frames_of(stack).filter_map(|id| {
            let frame = self.profile.frames[id];
            let path = self.profile.strings.get(self.profile.dsos[frame.dso?].path);
            if frame.kind != FrameKind::User || !path.ends_with("/p") {
                return None;
            }
            let after = self.symbols.partition_point(|(start, _)| *start <= frame.lookup().0);
            Some(self.symbols[after - 1].1.as_str())
        });
        of_program.collect()
    }
}

const CHAIN: &str = "
    #include <stdlib.h>
    volatile unsigned long sink;
    int leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink = sink * 3 + i; return 1; }
    int inner(unsigned long n) { return leaf(n) + 1; }
    int compare(const void *a, const void *b) { (void)a; (void)b; return inner(300) & 0; }
    int outer(void) { int x[64] = {0}; qsort(x, 64, sizeof *x, compare); return x[0] + 1; }
    int main(void) { for (int i = 0; i < 2500; i++) sink += outer(); return 0; }
";

#[test]
fn stacks_reach_the_root_through_the_known_callers() {
    let folder = Folder::new("chain");
    let Some(read) = record(&folder, CHAIN, "dwarf,8192", &[]) else { return };
    assert!(read.statistics.samples > 25, "{:?}", read.statistics);
    let mut in_leaf = 0;
    for sample in read.profile.samples.iter() {
        let functions = read.functions(sample.stack);
        if functions.first() != Some(&"leaf") {
            continue;
        }
        in_leaf += 1;
        assert_eq!(functions, ["leaf", "inner", "compare", "outer", "main", "_start"]);
        assert!(read.profile.is_complete(sample.stack.unwrap()));
    }
    assert!(in_leaf * 2 > read.statistics.samples, "{in_leaf} of {:?}", read.statistics);
    assert_eq!(read.statistics.cut.values().sum::<u64>(), 0, "{:?}", read.statistics.cut);
    let sample = read.profile.samples.get(0).unwrap();
    assert_eq!(read.profile.strings.get(read.profile.threads[sample.thread].comm), "p");
    let process = &read.profile.processes[read.profile.threads[sample.thread].process];
    assert!(read.profile.strings.get(process.exe).ends_with("/p"));
    assert!(read.profile.mappings.iter().all(|mapping| mapping.start < mapping.end));
    assert!(!read.profile.mappings.is_empty());
}

#[test]
fn chains_of_frame_pointers_that_miss_callers_are_not_called_complete() {
    let folder = Folder::new("fp");
    let Some(read) = record(&folder, CHAIN, "fp", &[]) else { return };
    let mut in_leaf = 0;
    for sample in read.profile.samples.iter() {
        if read.functions(sample.stack).first() == Some(&"leaf") {
            in_leaf += 1;
            assert!(!read.profile.is_complete(sample.stack.unwrap()), "{:?}", read.functions(sample.stack));
        }
    }
    assert!(in_leaf * 2 > read.statistics.samples, "{in_leaf} of {:?}", read.statistics);
}

const DEEP: &str = "
    volatile unsigned long sink;
    unsigned long work(unsigned long x, int n) { for (int i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 7; } return x; }
    unsigned long descend(int d, unsigned long x) {
        volatile unsigned char pad[200];
        pad[d % 200] = x;
        x = work(x, 300);
        if (d > 0) x = descend(d - 1, x) + pad[d % 7];
        else x = work(x, 50000 + (x & 0x1ffff));
        return x ^ pad[d % 200];
    }
    int main(void) { for (int i = 0; i < 5000; i++) sink = descend(1000, sink + i); return 0; }
";

/// With frames of one size, the stack pointer gives their number.
#[test]
fn stitched_stacks_are_as_deep_as_the_stack_pointer_says() {
    let folder = Folder::new("deep");
    let Some(read) = record(&folder, DEEP, "dwarf,16384", &[]) else { return };
    let mut depths = Vec::new();
    let mut stitched = 0;
    for sample in read.profile.samples.iter() {
        let functions = read.functions(sample.stack);
        let complete = sample.stack.is_some_and(|stack| read.profile.is_complete(stack));
        // In other functions, the stack pointer has another meaning.
        if !complete || functions.first() != Some(&"work") {
            continue;
        }
        let mut frames = read.profile.frames_of(sample.stack).map(|id| read.profile.frames[id]);
        stitched += usize::from(frames.any(|frame| frame.found == Found::Stitched));
        let descents = functions.iter().filter(|&&name| name == "descend").count();
        assert_eq!(functions.len(), descents + 3, "work, the descent, main and _start: {functions:?}");
        depths.push((descents as u64, read.stack_pointers[&sample.time_ns]));
    }
    let &(base_depth, base) = depths.iter().min().expect("some stack is complete");
    let (deepest, lowest) = *depths.iter().max().unwrap();
    let size = (base - lowest) / (deepest - base_depth);
    for (depth, stack_pointer) in &depths {
        assert_eq!(base - stack_pointer, (depth - base_depth) * size, "depth {depth}");
    }
    assert_eq!(deepest, 1001);
    let share = depths.len() as f64 / read.statistics.samples as f64;
    println!("complete: {:.1}% of {}, {stitched} of them stitched", 100.0 * share, read.statistics.samples);
    assert!(stitched > 0 && share > 0.6, "{share} of {:?}", read.statistics);
}
