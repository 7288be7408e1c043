//! `plumb explain`: each rule on code holds for a program with the habit, and not for one without; the report is the same in every
//! format.
//!
//! Needs perf_event_open and a C++ compiler; without them, a test prints so and is skipped.

use crate::spun;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{PoisonError, RwLock};

use crate::spun::{compiled, may_record, plumb, plumb_among_variables, succeeds};
use plumb_fixtures::{Requirement, compiles, needs};
use serde_json::Value;

/// CPU time of each program in milliseconds: more if the first was too short for a rule to hold.
const LASTS: [&str; 2] = ["400", "2000"];

/// A directory with the program, compiled with and without optimization.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explain-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/hot_habits.cpp");
    for (level, program) in [("-O2", "hot_habits"), ("-O0", "slow_habits")] {
        let options = ["-std=c++17", level, "-g", "-pthread", "-o"];
        let mut compiler = Command::new("c++");
        if !compiles(compiler.args(options).arg(folder.join(program)).arg(source).arg("-ldl")) {
            return None;
        }
    }
    if !may_record() {
        return None;
    }
    Some(folder)
}

/// Tracing system calls slows all processes: the test that measures the overhead in reports runs alone.
static WATCHING: RwLock<()> = RwLock::new(());

fn explained(folder: &Path, command: &[&str]) -> Value {
    let _among_others = WATCHING.read().unwrap_or_else(PoisonError::into_inner);
    explained_now(folder, command)
}

fn explained_now(folder: &Path, command: &[&str]) -> Value {
    let output = plumb(folder, &[&["explain", "--json", "--"], command].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn rules(report: &Value) -> Vec<&str> {
    let causes = report["causes"]["code"].as_array().expect("there is a list");
    causes.iter().map(|cause| cause["rule"].as_str().expect("it has a name")).collect()
}

/// Runs the programs of these rules.
fn hold(name: &str, tried: &[&str]) {
    let Some(folder) = folder(name) else { return };
    for rule in tried {
        let mut said = Vec::new();
        let is_seen = LASTS.iter().any(|lasts| {
            let bad = explained(&folder, &["./hot_habits", rule, "bad", lasts]);
            said.push(bad["causes"].to_string() + &bad["functions"].to_string());
            rules(&bad).contains(rule)
        });
        assert!(is_seen, "{rule} is not seen: {said:?}");
        let good = explained(&folder, &["./hot_habits", rule, "good", LASTS[0]]);
        assert!(!rules(&good).contains(rule), "{rule} is seen where it isn't: {}", good["causes"]);
    }
}

#[test]
fn memory_and_text() {
    hold("memory", &["getenv-hot", "allocation", "copying", "string-scan", "hashing"]);
    // Most of this program's time is the kernel's.
    if spun::sees_kernel() {
        hold("first-touch", &["first-touch"]);
        hold("thread-start", &["thread-start"]);
    }
}

#[test]
fn algorithms() {
    hold("algorithms", &["sorting", "regex-compile", "formatting", "logging", "exceptions"]);
}

#[test]
fn sharing_and_others() {
    hold("others", &["locks", "reference-counts", "clock-reads", "random-numbers", "dynamic-linking"]);
}

#[test]
fn instructions() {
    if !needs(Requirement::Machine) {
        return;
    }
    hold("instructions", &["division", "atomics", "cache-miss", "stack-traffic"]);
}

#[test]
fn jumps_and_forwarding() {
    if !needs(Requirement::Machine) {
        return;
    }
    hold("jumps", &["virtual-calls", "interpreter-dispatch", "store-forwarding"]);
}

/// A program compiled without optimization is distinguished from the same one compiled with it.
#[test]
fn an_unoptimised_build_is_told() {
    if !needs(Requirement::Machine) {
        return;
    }
    let Some(folder) = folder("unoptimised") else { return };
    let slow = explained(&folder, &["./slow_habits", "sorting", "bad", LASTS[1]]);
    assert!(rules(&slow).contains(&"unoptimised-build"), "{}", slow["causes"]);
    assert!(
        !rules(&slow).contains(&"stack-traffic"),
        "that is what such a build is made of: {}",
        slow["causes"]
    );
    let quick = explained(&folder, &["./hot_habits", "sorting", "bad", LASTS[1]]);
    assert!(!rules(&quick).contains(&"unoptimised-build"), "{}", quick["causes"]);
}

/// An allocator that reads the environment each time, and the same that reads it once: the report names the cause and its caller, then that it
/// is gone and what remains, and the instruction that delays a lookup with its share of everything.
#[test]
fn a_fixed_cause_is_gone_and_what_it_hid_is_named() {
    let Some(folder) = folder("pool") else { return };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/diff/pool.c");
    for (name, option) in [("before", "-UFIXED"), ("after", "-DFIXED")] {
        let program = folder.join(name);
        let compiled = Command::new("cc").args(["-O2", "-g", option, "-o"]).arg(program).arg(source).status();
        assert!(compiled.is_ok_and(|status| status.success()), "a C++ compiler brings one for C");
    }
    let report = |program: &str| {
        let ignored = ["--ignore", "^_*(rand|random|random_r)$"];
        let options = [&["explain", "--json", "-F", "2999"], &ignored[..], &["--", program, "12000000"]];
        let output = plumb_among_variables(&folder, &options.concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        report
    };
    let (before, after) = (report("./before"), report("./after"));
    assert!(
        before["left_out"]["percent"].as_f64() > Some(2.0),
        "rand() is the benchmark's: {}",
        before["left_out"]
    );
    let first = &before["verdict"]["above"][0];
    assert_eq!(
        (&first["kind"], &first["name"]),
        (&"code".into(), &"getenv-hot".into()),
        "{}",
        before["verdict"]
    );
    let causes = before["causes"]["code"].as_array().expect("there is a list");
    let cause = causes.iter().find(|cause| cause["rule"] == "getenv-hot").expect("it is in the verdict");
    let callers = cause["callers"].to_string();
    assert!(callers.contains("is_traced") || callers.contains("pool_alloc"), "{callers}");

    assert!(!rules(&after).contains(&"getenv-hot"), "{}", after["causes"]);
    let above = after["verdict"]["above"].to_string();
    assert!(above.contains("mid_lookup"), "{above}");
    let share = |report: &Value, name: &str| {
        let functions = report["functions"].as_array().expect("there is a list");
        let found = functions.iter().find(|function| function["function"] == name);
        found.map_or(0.0, |function| function["self"]["percent"].as_f64().expect("a number"))
    };
    assert!(share(&before, "pool_alloc") > 0.0 && share(&after, "pool_alloc") > 0.0);
    assert!(share(&after, "mid_lookup") > share(&before, "mid_lookup"), "it is more visible");
    if cfg!(target_arch = "x86_64") {
        let code = after["code"].as_array().expect("there is a list");
        let lookup = code.iter().find(|one| one["function"] == "mid_lookup").expect("its code was read");
        let hottest = &lookup["instructions"][0];
        assert_eq!(hottest["class"], serde_json::json!(["load", "indexed"]), "{lookup}");
        let part = |value: &Value| value.as_f64().expect("a number");
        let product = part(&hottest["percent_of_function"]) * part(&lookup["self"]["percent"]) / 100.0;
        assert!((part(&hottest["share"]["percent"]) - product).abs() < 0.01, "{lookup}");
        assert!(part(&hottest["percent_of_function"]) > 30.0, "it waits for memory: {lookup}");
    }
}

/// Programs that compete for the same CPU.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start(folder: &Path, count: usize) -> Self {
        let start = |_| Command::new(folder.join("queued")).args(["spin", "60000"]).spawn().expect("it runs");
        Spinners((0..count).map(start).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program kept off the CPU by others uses as little CPU time as one that sleeps, but is not reported as waiting.
#[test]
fn being_kept_from_the_processor_is_told_from_sleeping() {
    let folder = spun::folder("explain-queued");
    if !may_record() || !compiled(&folder, "../capture-perf/tests/programs/queued.c", "queued") {
        return;
    }
    if !needs(Requirement::Kernel) {
        return;
    }
    let time = |report: &Value, field: &str| report["time"][field].as_f64().expect("a number");
    // Long enough that the effect of other processes is small.
    let slept = explained(&folder, &["./queued", "sleep", "2500"]);
    assert_eq!(slept["time"]["class"], "waiting", "{}", slept["time"]);
    assert_eq!(slept["verdict"]["verdict"], "waits", "{}", slept["verdict"]);
    // Even without a sample, at one per second: if it was kept off the CPUs at its start for less than is worth saving.
    let mut seldom = Vec::new();
    let is_said = ["300", "3000", "10000"].iter().any(|lasts| {
        let output = plumb(&folder, &["explain", "-F", "1", "--", "./queued", "sleep", lasts]);
        seldom.push(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned());
        seldom.last().is_some_and(|said| said.contains("It waits:"))
    });
    assert!(is_said, "{seldom:?}");

    let spinners = Spinners::start(&folder, 2);
    let mut spun = Value::Null;
    for lasts in ["1500", "6000", "20000"] {
        spun = explained(&folder, &["./queued", "spin", lasts, "told"]);
        let lived = &spun["time"]["waiting_for_processor"]["busiest_thread"]["lived_ns"];
        // A recorder kept off the CPU by others starts early and ends late.
        if lived.as_f64().is_some_and(|lived| lived > 0.95 * time(&spun, "elapsed_ns")) {
            break;
        }
    }
    assert!(time(&spun, "processors_used") < 0.75, "three share a processor: {}", spun["time"]);
    assert_eq!(spun["time"]["class"], "CPU-bound", "{}", spun["time"]);
    let told = std::fs::read_to_string(folder.join("told")).expect("it was written");
    let truth: f64 = told.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    let waited = spun["time"]["waiting_for_processor"]["least_ns"].as_f64().expect("a number");
    assert!((waited - truth).abs() < truth / 20.0 + 60e6, "{waited}, as it says itself {truth}");

    // Also if it ran before: one of the spinners is recorded.
    let pid = spinners.0[0].id().to_string();
    succeeds(&folder, &["record", "-q", "-p", &pid, "--duration", "1"]);
    let attached: Value =
        serde_json::from_str(&succeeds(&folder, &["explain", "--json"])).expect("it is JSON");
    assert_eq!(attached["time"]["class"], "CPU-bound", "{}", attached["time"]);
    let text = succeeds(&folder, &["explain", "--full"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("more of the time: others had the processor"), "{text}");
    // For a part of it, the class is not known.
    let part = succeeds(&folder, &["explain", "--json", "--comm", "queued"]);
    let part: Value = serde_json::from_str(&part).expect("it is JSON");
    assert!(part["time"]["class"].is_null(), "{}", part["time"]);
}

/// If only user code was sampled, the time may have been spent in the kernel.
/// A program is traced in turns, and samples taken during tracing are left out: the overhead is not part of the report.
#[test]
fn watching_is_no_part_of_the_answer() {
    let Some(folder) = folder("watching") else { return };
    if !needs(Requirement::Bpf) {
        return;
    }
    let source =
        "int main(){ char c; for (long i = 0; i < 3000000; i++) if (pread(3, &c, 1, 0) < 0) return 1; }";
    let program = format!("#include <unistd.h>\n{source}\n");
    std::fs::write(folder.join("asks.c"), program).expect("it is written");
    std::fs::write(folder.join("one"), "1").expect("it is written");
    if !compiles(Command::new("cc").args(["-O2", "-o"]).arg(folder.join("asks")).arg(folder.join("asks.c"))) {
        return;
    }
    let _alone = WATCHING.write().unwrap_or_else(PoisonError::into_inner);
    let report = explained_now(&folder, &["sh", "-c", "exec ./asks 3<one"]);
    let functions = report["functions"].as_array().expect("there is a list");
    let total = |name: &str| {
        let row = functions.iter().find(|row| row["function"] == name);
        row.map_or(0.0, |row| row["total"]["percent"].as_f64().unwrap_or(f64::NAN))
    };
    assert!(total("bpf_trace_run2") < 5.0, "{functions:#?}");
    let calls: Vec<_> = report["causes"]["calls"].as_array().expect("it was watched").iter().collect();
    assert!(
        calls.iter().any(|cause| cause["rule"] == "small-file-io" || cause["rule"] == "very-many-calls"),
        "{calls:?}"
    );
}

#[test]
fn the_kernels_part_is_not_told_where_only_user_code_was_sampled() {
    let folder = spun::folder("explain-user-only");
    if !may_record() {
        return;
    }
    let class = |command: &[&str]| {
        succeeds(&folder, &[&["record", "-q", "--user-only", "--"], command].concat());
        let text = succeeds(&folder, &["explain", "--json"]);
        let report: Value = serde_json::from_str(&text).expect("it is JSON");
        assert!(report["time"]["kernel_percent"].is_null(), "{}", report["time"]);
        report["time"]["class"].clone()
    };
    // A fixed amount of work, not time: on a busy machine the start-up share stays the same.
    let counting = ["awk", "BEGIN { for (i = 0; i < 20000000; i++) s += i }"];
    assert_eq!(class(&counting), "CPU-bound");
    let copying = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=400000", "status=none"];
    assert_eq!(class(&copying), Value::Null, "it copies in the kernel");
}

/// An older recording, without these measurements: nothing is claimed about it.
#[test]
fn an_older_recording_is_read_and_not_called_waiting() {
    let folder = spun::folder("explain-older");
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data/1.0.plumb");
    let older = older.to_str().expect("it is text");
    let report: Value =
        serde_json::from_str(&succeeds(&folder, &["explain", "--json", older])).expect("it is JSON");
    assert!(report["time"]["waiting_for_processor"].is_null(), "{}", report["time"]);
    assert_ne!(report["time"]["class"], "waiting", "{}", report["time"]);
    let text = succeeds(&folder, &["explain", "--full", older]);
    assert!(text.contains("run-queue wait   not known"), "{text}");
}

/// Waits from an off-CPU recording are reported together with the CPU recording.
#[test]
fn waits_are_told_from_a_recording_of_their_own() {
    if !needs(Requirement::Bpf) {
        return;
    }
    let Some(folder) = folder("waits") else { return };
    let command = ["--", "sh", "-c", "sleep 0.3; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"];
    let off = plumb(&folder, &[&["record", "-q", "--off-cpu", "-o", "off.plumb"][..], &command].concat());
    assert!(off.status.success(), "{}", String::from_utf8_lossy(&off.stderr));
    let alone = plumb(&folder, &["explain", "off.plumb"]);
    assert!(String::from_utf8_lossy(&alone.stderr).contains("--waits"), "it is said what to do with it");
    let recorded = plumb(&folder, &[&["record", "-q"][..], &command].concat());
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let output = plumb(&folder, &["explain", "--json", "--waits", "off.plumb"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let waits = &report["waits"][0];
    assert_eq!(waits["event"], "off-cpu", "{report}");
    let rows = waits["rows"].as_array().expect("there are rows");
    let slept = rows.iter().find(|row| row["name"] == "clock_nanosleep").expect("sleep sleeps by it");
    let ns = slept["cost"]["weight"].as_u64().expect("a number");
    assert!((300_000_000..3_000_000_000).contains(&ns), "{slept}");
    let stack = slept["stacks"][0]["leaf_first"].to_string();
    assert!(stack.contains("nanosleep"), "{stack}");
}
