//! JFR files written by async-profiler and the JDK, compared with the output of the JDK's own command `jfr`; and hostile files.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_fixtures::{JfrChunk, Requirement, jfr_with_contexts, needs};
use plumb_formats::foreign::{self, ForeignError};
use plumb_formats::jfr::{self, JfrEvent};
use plumb_profile::Profile;
use serde_json::Value;

/// Made by async-profiler 4.0: `event=cpu,alloc=64m,lock=1ms,wall=50ms,interval=10ms,jfropts=14` of a class file of the program below, whose
/// lines are one less.
const ASYNC: &[u8] = include_bytes!("../data/async-profiler-4.0.jfr");

const PROGRAM: &str = r#"
public class Load {
    static Object[] kept = new Object[64];
    static final Object LOCK = new Object();
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static void allocate(int n) { for (int i = 0; i < n; i++) kept[i % kept.length] = new byte[4096]; }
    static void contend() throws Exception { for (int i = 0; i < 3; i++) synchronized (LOCK) { Thread.sleep(20); } }
    public static void main(String[] a) throws Exception {
        Thread other = new Thread(() -> { try { contend(); } catch (Exception e) {} }, "contender");
        other.start();
        contend();
        java.util.concurrent.locks.LockSupport.parkNanos(30_000_000L);
        long end = System.nanoTime() + 500_000_000L, sum = 0;
        while (System.nanoTime() < end) { sum += fib(27); allocate(2000); }
        other.join();
        System.out.println(sum);
    }
}
"#;

/// By event: the number of samples and their total weight.
fn sums(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for sample in profile.samples.iter() {
        let event = &profile.events[sample.event];
        let name = format!("{} {}", profile.strings.get(event.name), profile.strings.get(event.unit));
        let sum: &mut (u64, u64) = sums.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + sample.weight);
    }
    sums
}

/// An event's samples by thread and stack, from the leaf: `class.method:line`.
fn stacks(profile: &Profile, event: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for sample in profile.samples.iter() {
        if profile.strings.get(profile.events[sample.event].name) != event {
            continue;
        }
        let frames = profile.frames_of(sample.stack).map(|id| {
            match (profile.frames[id].cut(), profile.symbols.of(id)) {
                (Some(cut), _) => format!("[{}]", cut.text()),
                (None, lines) => {
                    let function = profile.symbols.functions[lines[0].function].name;
                    format!("{}:{}", profile.strings.get(function), lines[0].line)
                }
            }
        });
        let thread = profile.strings.get(profile.threads[sample.thread].comm);
        *stacks.entry(format!("{thread}|{}", frames.collect::<Vec<_>>().join(";"))).or_default() += 1;
    }
    stacks
}

/// Returns the events of a type from `jfr print --json`.
fn printed(file: &Path, event: &str) -> Vec<Value> {
    let output = Command::new("jfr")
        .args(["print", "--json", "--stack-depth", "64", "--events", event])
        .arg(file)
        .output()
        .unwrap();
    let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let Value::Array(events) = all["recording"]["events"].take() else { panic!("{event}") };
    events.into_iter().map(|mut event| event["values"].take()).collect()
}

/// Converts the output of `jfr` to the form of [`stacks`]. Native frames have a library here instead of a class.
fn printed_stacks(events: &[Value], thread: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for event in events {
        let trace = &event["stackTrace"];
        let mut frames: Vec<String> =
            trace["frames"].as_array().map_or(&[][..], |all| all).iter().map(frame).collect();
        if trace["truncated"] == true {
            frames.push("[frame limit reached]".into());
        }
        let name = |key: &str| event[thread][key].as_str().filter(|name| !name.is_empty());
        let thread = name("javaName").or(name("osName")).unwrap_or_default();
        *stacks.entry(format!("{thread}|{}", frames.join(";"))).or_default() += 1;
    }
    stacks
}

fn frame(frame: &Value) -> String {
    let class = frame["method"]["type"]["name"].as_str().unwrap_or_default().replace('/', ".");
    let class = class.split_inclusive("$$Lambda").next().unwrap_or_default();
    let class = class.split("+0x").next().unwrap().split(".0x").next().unwrap();
    let name = frame["method"]["name"].as_str().unwrap_or_default();
    let is_library = class.contains(".so") || class.starts_with("[");
    let name = if !is_library && !class.is_empty() { format!("{class}.{name}") } else { name.to_owned() };
    let line = frame["lineNumber"].as_i64().filter(|&line| line > 0).unwrap_or(0);
    format!("{name}:{line}")
}

/// Prints only the first stack that differs: all of them are long.
fn assert_same(read: &BTreeMap<String, u64>, printed: &BTreeMap<String, u64>, event: &str) {
    let differs = read.keys().chain(printed.keys()).find(|stack| read.get(*stack) != printed.get(*stack));
    let counts = differs.map(|stack| (stack, read.get(stack), printed.get(stack)));
    assert_eq!(counts, None, "{event}: stack, times read, times printed");
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("jfr-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn async_profilers_file_has_every_kind_of_sample() {
    let profile = foreign::read(ASYNC).unwrap();
    // The counts are those of `jfr summary`; the weights are counts of intervals, and sums of the fields that `jfr print` shows.
    let wanted = [
        ("alloc-in-new-tlab bytes", (25, 1_677_721_600)),
        ("cpu-clock ns", (40, 40 * 10_000_000)),
        ("monitor-enter ns", (2, 101_414_611)),
        ("wall ns", (121, 290 * 50_000_000)),
    ];
    assert_eq!(sums(&profile), wanted.map(|(name, sum)| (name.to_owned(), sum)).into());
    assert_eq!(profile.meta.recorder, "async-profiler 4.0");
    let first = profile.events.rows()[0].name;
    assert_eq!(profile.strings.get(first), "cpu-clock", "commands show the first event");
    // The frequency is that of one event of four.
    assert_eq!(profile.meta.frequency_hz, None);
    assert_eq!(profile.meta.command, ["java", "Load"]);
    let contention = stacks(&profile, "monitor-enter");
    let of_main = contention.keys().any(|stack| stack.contains("Load.contend:6;Load.main:10"));
    assert!(of_main && contention.keys().any(|stack| stack.starts_with("contender|")), "{contention:?}");
    // Times increase through the recording.
    let times: Vec<u64> = profile.samples.iter().map(|sample| sample.time_ns).collect();
    assert!(times.is_sorted() && times[times.len() - 1] <= profile.meta.duration_ns + 100_000_000);
    assert!(times[times.len() - 1] - times[0] > profile.meta.duration_ns / 2, "{times:?}");
}

#[test]
fn async_profilers_stacks_are_those_that_jfr_prints() {
    if !needs(Requirement::Java) {
        return;
    }
    let file = folder("async").join("x.jfr");
    std::fs::write(&file, ASYNC).unwrap();
    let profile = foreign::read(ASYNC).unwrap();
    for (name, event, thread) in [
        ("cpu-clock", "jdk.ExecutionSample", "sampledThread"),
        ("wall", "profiler.WallClockSample", "sampledThread"),
        ("alloc-in-new-tlab", "jdk.ObjectAllocationInNewTLAB", "eventThread"),
        ("monitor-enter", "jdk.JavaMonitorEnter", "eventThread"),
    ] {
        assert_same(&stacks(&profile, name), &printed_stacks(&printed(&file, event), thread), event);
    }
}

#[test]
fn the_jdks_file_has_the_samples_that_jfr_prints() {
    if !needs(Requirement::Java) {
        return;
    }
    let folder = folder("jdk");
    let (source, file) = (folder.join("Load.java"), folder.join("x.jfr"));
    std::fs::write(&source, PROGRAM).unwrap();
    let start = format!("-XX:StartFlightRecording=settings=profile,filename={}", file.display());
    let ran = Command::new("java").arg(start).arg(&source).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let profile = foreign::read(&std::fs::read(&file).unwrap()).unwrap();
    let sums = sums(&profile);
    for (name, unit, event, thread) in [
        ("cpu-clock", "ns", "jdk.ExecutionSample", "sampledThread"),
        ("native-method", "ns", "jdk.NativeMethodSample", "sampledThread"),
        ("alloc-sample", "bytes", "jdk.ObjectAllocationSample", "eventThread"),
        ("monitor-enter", "ns", "jdk.JavaMonitorEnter", "eventThread"),
        ("thread-park", "ns", "jdk.ThreadPark", "eventThread"),
    ] {
        let events = printed(&file, event);
        assert_same(&stacks(&profile, name), &printed_stacks(&events, thread), event);
        let (count, weight) = sums.get(&format!("{name} {unit}")).copied().unwrap_or_default();
        assert_eq!(count, events.len() as u64, "{event}");
        let printed: u64 = events.iter().map(|event| event["weight"].as_u64().unwrap_or(0)).sum();
        assert!(name != "alloc-sample" || weight == printed, "{weight} {printed}");
    }
    let (samples, weight) = sums["cpu-clock ns"];
    // The `profile` settings sample every 10 ms.
    assert_eq!(weight, samples * 10_000_000);
    assert!(
        stacks(&profile, "cpu-clock")
            .keys()
            .any(|stack| stack.starts_with("main|") && stack.contains("Load.main:"))
    );
    // The program parks for 30 ms.
    assert!(sums["thread-park ns"].1 >= 30_000_000, "{sums:?}");
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn contexts_are_told() {
    let file = jfr_with_contexts().event(30, &[5, 1, 1, 1, 9]).event(31, &[6, 1000, 1, 1, 0]).finish();
    let recording = jfr::decode(&file, 2).unwrap();
    let told: Vec<_> = recording.samples.iter().map(|one| (one.kind, one.context, one.weight)).collect();
    assert_eq!(told, [(JfrEvent::Cpu, 9, 1), (JfrEvent::MonitorEnter, 0, 1000)]);
    assert_eq!(
        stacks(&recording.profile, "monitor-enter"),
        [("worker|Load.work:11;Load.run:7".into(), 1)].into()
    );
    // No setting has the sampling period.
    assert!(sums(&recording.profile).contains_key("samples "));
    let error = jfr::decode(&file, 1).err().unwrap();
    assert!(error.to_string().contains("more than 1 samples"), "{error}");
}

#[test]
fn a_file_that_is_cut_off_keeps_its_whole_chunks() {
    let whole = sums(&foreign::read(ASYNC).unwrap());
    let twice = [ASYNC, ASYNC].concat();
    let doubled = sums(&foreign::read(&twice).unwrap());
    assert!(doubled.iter().all(|(name, sum)| (sum.0, sum.1) == (2 * whole[name].0, 2 * whole[name].1)));
    let cut = foreign::read(&twice[..twice.len() - 7]).unwrap();
    assert_eq!((sums(&cut), cut.meta.damaged_records), (whole, 1));
    let error = foreign::read(&ASYNC[..ASYNC.len() - 7]).unwrap_err();
    assert!(matches!(error, ForeignError::Jfr { .. }) && error.to_string().contains("cut off"), "{error}");
}

/// A sample of a type whose field has type 10.
fn with_type(chunk: JfrChunk) -> Vec<u8> {
    chunk
        .class(1, "long", &[])
        .class(30, "jdk.ExecutionSample", &[("startTime", 1, false, false), ("state", 10, false, true)])
        .event(30, &[1, 1_000, 1, 1])
        .finish()
}

#[test]
fn types_and_counts_that_never_end_are_refused() {
    let chunk = JfrChunk::default;
    let own = with_type(chunk().class(10, "a", &[("a", 10, false, false)]));
    let many = with_type(chunk().class(10, "a", &[("a", 10, false, true)]));
    let empty = with_type(chunk().class(10, "a", &[]));
    let none = with_type(chunk());
    for (file, wanted) in [
        (own, "more than the bytes"),
        (many, "more than the bytes"),
        (empty, "more than the bytes"),
        (none, "more than the bytes"),
    ] {
        let error = foreign::read(&file).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let nested = chunk()
        .class(10, "a", &[("a", 10, false, false)])
        .class(30, "jdk.ExecutionSample", &[("a", 10, false, false)])
        .event(30, &[1])
        .finish();
    assert!(foreign::read(&nested).unwrap_err().to_string().contains("nest too deep"));
    let empty = chunk()
        .class(10, "a", &[])
        .class(30, "jdk.ExecutionSample", &[("a", 10, false, false)])
        .event(30, &[1])
        .finish();
    assert!(foreign::read(&empty).unwrap_err().to_string().contains("0 fields"));
    let unfinished = [&ASYNC[..8], &[0; 60]].concat();
    assert!(foreign::read(&unfinished).unwrap_err().to_string().contains("not finished"));
}
