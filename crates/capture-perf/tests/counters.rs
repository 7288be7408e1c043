//! The doubles of performance counters that tests use are what they say: with them a test means the same on every machine.
//!
//! Needs perf_event_open and a C compiler: where one is missing a test says so and does nothing.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plumb_fixtures::Pmu;
use plumb_fixtures::{Requirement, needs};

/// The program that opens cycles, and the library to run it with.
fn programs(pmu: Pmu, name: &str) -> Option<(PathBuf, PathBuf)> {
    if !needs(Requirement::Perf) {
        return None;
    }
    let library = pmu.preload(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("opens-{name}"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/opens.c");
    let built = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "what compiled the library compiles this");
    Some((program, library))
}

fn run((program, library): &(PathBuf, PathBuf), arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env("LD_PRELOAD", library).output().expect("it runs")
}

#[test]
fn hidden_counters_are_not_there() {
    let Some(programs) = programs(Pmu::Hidden, "hidden") else { return };
    for arguments in [&["frequency"][..], &["period", "1000000"]] {
        let output = run(&programs, arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ENOENT\n");
    }
}

#[test]
fn a_hardware_event_in_frequency_mode_ends_the_program() {
    let Some(programs) = programs(Pmu::Double, "frequency") else { return };
    let output = run(&programs, &["frequency"]);
    assert_eq!(output.status.signal(), Some(6), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("in frequency mode"), "{output:?}");
}

#[test]
fn a_double_counts_and_samples_by_the_period() {
    /// Cycles in a nanosecond.
    const RATE: f64 = 2.6;
    let Some(programs) = programs(Pmu::Double, "period") else { return };
    let period = 1_300_000;
    let output = run(&programs, &["period", &period.to_string()]);
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<Vec<f64>> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.split(' ').map(|word| word.parse().expect("a number")).collect())
        .collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    for (line, period) in lines.iter().zip([period, 2 * period]) {
        let [cycles, samples, cpu_ns] = line[..] else { panic!("{line:?}") };
        // The clock goes on where a host takes the processor away, the account of a thread may not.
        assert!(cycles >= RATE * cpu_ns * 0.98, "{cycles} cycles in {cpu_ns} ns");
        let due = cycles / f64::from(period);
        // A timer's interrupts may be late, and a late one stands for all that it missed; none may be too early. Those in the kernel
        // are left out.
        assert!(samples <= due + 2.0 && samples >= due / 2.0, "{samples} of {due}");
    }
}
