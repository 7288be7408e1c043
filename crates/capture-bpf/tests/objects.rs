//! Loads every program with every set of options: kernels' verifiers differ in what they accept, and options are constants to them.
//!
//! xtask/kernels runs this on other kernels.

use plumb_capture_bpf::{
    CallFacts, CallFilter, CallSums, Calls, Faults, LoadError, LoadOptions, Measured, OffCpu, Per,
    ProcessSums, Programs, ReplacedReturns, Stat, Trial, try_all,
};
use plumb_fixtures::{Requirement, needs};

/// Returns the loaded programs, or `None` if this machine or user can't load BPF programs at all.
fn check<T>(what: &str, result: Result<T, LoadError>) -> Result<Option<T>, String> {
    match result {
        Ok(loaded) => Ok(Some(loaded)),
        Err(LoadError::Unsupported(why)) => {
            assert!(!needs(Requirement::Bpf), "{what}: {why}");
            Ok(None)
        }
        Err(LoadError::Refused(refusal)) => {
            let lines = refusal.verifier_lines(40).join("\n  ");
            Err(format!("{what}: {}\n  {lines}", LoadError::Refused(refusal)))
        }
    }
}

fn none_fails(results: impl IntoIterator<Item = Result<(), String>>) {
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn stacks_are_walked_whether_counted_or_sent() {
    none_fails([true, false].into_iter().map(|counting| {
        let what = format!("sample, counting {counting}");
        let programs = check(&what, Programs::load(LoadOptions { counting, ..LoadOptions::default() }))?;
        match programs.and_then(|mut programs| programs.take_without_scripts()) {
            Some(error) => check(&format!("{what}, scripts"), Err::<(), _>(error)).map(drop),
            None => Ok(()),
        }
    }));
}

#[test]
fn time_off_the_processor_is_measured_in_every_way() {
    let ways = [(true, true), (true, false), (false, true), (false, false)];
    none_fails(ways.into_iter().map(|(looks_back, walks)| {
        let off_cpu = OffCpu { min_ns: 1000, stacks_per_second: 1000, walks, looks_back };
        let what = format!("{off_cpu:?}");
        let programs = check(
            &what,
            Programs::load(LoadOptions {
                measure: Some(Measured::OffCpu(off_cpu)),
                ..LoadOptions::default()
            }),
        )?;
        if let Some(error) = programs.as_ref().and_then(Programs::without_threads) {
            return Err(format!("{what}, threads that are off: {error}"));
        }
        match programs.and_then(|mut programs| programs.take_without_scripts()) {
            Some(error) => check(&format!("{what}, scripts"), Err::<(), _>(error)).map(drop),
            None => Ok(()),
        }
    }));
}

#[test]
fn calls_are_traced_whatever_the_filter() {
    none_fails([(0, false), (1_000_000, false), (0, true)].into_iter().map(|(min_ns, failed_only)| {
        let filter = CallFilter { min_ns, failed_only, counts_met: true, ring_bytes: 1 << 20 };
        check(&format!("{filter:?}"), Calls::load(filter)).map(drop)
    }));
}

#[test]
fn calls_are_summed_up_by_anything() {
    let ways = [Per::Call, Per::Thread, Per::Process, Per::File].into_iter();
    let ways = ways.flat_map(|per| [false, true].map(|is_timed| (per, is_timed)));
    none_fails(ways.map(|(per, is_timed)| {
        let sums = CallSums::load(is_timed, per, |_| CallFacts { text: Some(0), takes_file: true });
        check(&format!("{per:?}, timed {is_timed}"), sums).map(drop)
    }));
    none_fails([check("of processes, for ever", ProcessSums::load(ProcessSums::ROOM)).map(drop)]);
}

#[test]
fn faults_and_counts_are_seen() {
    none_fails([
        check("faults", Faults::load()).map(drop),
        check("replaced returns", ReplacedReturns::load()).map(drop),
        check("stat with calls", Stat::load(true)).map(drop),
        check("stat", Stat::load(false)).map(drop),
    ]);
}

/// As `plumb doctor` tries them: with the programs at tracepoints and functions, which the tests above don't load.
#[test]
fn every_feature_is_accepted_or_too_new() {
    none_fails(try_all(|_| Ok(())).into_iter().map(|Trial { feature, result, .. }| match result {
        Err(error @ LoadError::Refused(_)) => check(&format!("{feature:?}"), Err::<(), _>(error)).map(drop),
        _ => Ok(()),
    }));
}
