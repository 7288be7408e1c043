//! Loads each BPF program as a trial, and reports the result.

use std::borrow::Cow;

use plumb_capture_bpf::{Feature, LoadError, Trial, Unsupported};
use plumb_interpreters::language_names;
use plumb_process::setcap_bpf;
use serde::Serialize;

use crate::finding::Finding;
use crate::finding::FindingState::{self, Good, Limited, Missing};

/// Number of verifier lines that are kept.
const LINES: usize = 20;

/// Result of trying a feature.
#[derive(Serialize)]
pub struct ProgramTrial {
    /// Name of the feature, stable across versions.
    pub feature: String,
    /// The state of the feature.
    pub state: FindingState,
    /// The result.
    pub says: String,
    /// The first version of Linux that supports it.
    pub since: &'static str,
    /// Load time in milliseconds; 0 if it was tried together with the one before.
    pub took_ms: f64,
    /// The last lines of the verifier's log, if it rejected the program.
    pub verifier: Vec<String>,
}

/// Returns the name of a feature in JSON and its label in the text output.
fn names(feature: Feature) -> (&'static str, &'static str) {
    match feature {
        Feature::Stacks => ("stacks", "BPF stacks"),
        // Named after the first language that was read.
        Feature::Scripts => ("python", "BPF scripts"),
        Feature::Tracepoints => ("tracepoints", "BPF tracepoints"),
        Feature::Functions => ("functions", "BPF functions"),
        Feature::OffCpu => ("off-cpu", "BPF off-cpu"),
        Feature::Calls => ("trace", "BPF trace"),
        Feature::CallCounts => ("call-counts", "BPF call counts"),
        Feature::CallTimes => ("call-times", "BPF call times"),
        Feature::ServiceCalls => ("service-calls", "BPF service calls"),
        Feature::Faults => ("faults", "BPF page faults"),
        Feature::Stat => ("stat", "BPF counts"),
    }
}

/// Returns what plumb does if the feature works, and what it does otherwise.
fn words(feature: Feature) -> (Cow<'static, str>, &'static str) {
    let (can, cannot) = match feature {
        Feature::Stacks => (
            "walked in the kernel (plumb record -a, --capture bpf)",
            "stacks are copied, not walked in the kernel",
        ),
        Feature::Scripts => {
            let can = format!("functions of {} programs are in recordings", language_names());
            return (
                can.into(),
                "recordings show the interpreter's functions; plumb stack shows the program's",
            );
        }
        Feature::Tracepoints => (
            "walked in the kernel, each passing counted (plumb record -e GROUP:NAME)",
            "perf takes the samples of plumb record -e GROUP:NAME, with copies",
        ),
        Feature::Functions => (
            "walked in the kernel, each call counted (plumb record -e uprobe:FILE:FUNCTION)",
            "perf takes the samples of plumb record -e uprobe:FILE:FUNCTION, with copies",
        ),
        Feature::OffCpu => (
            "time off the processor is measured (plumb record --off-cpu)",
            "no plumb record --off-cpu; -e context-switches counts how often",
        ),
        Feature::Calls => (
            "single system calls are seen (plumb trace, kernel --advice)",
            "no plumb trace and kernel --advice",
        ),
        Feature::CallCounts => ("system calls are counted (plumb kernel --calls)", "no plumb kernel --calls"),
        Feature::CallTimes => {
            ("system calls are timed (plumb kernel --latency)", "no plumb kernel --latency")
        }
        Feature::ServiceCalls => (
            "kernel time of services is measured (plumb agent --kernel-time)",
            "no plumb agent --kernel-time",
        ),
        Feature::Faults => (
            "single page faults are seen (plumb kernel --advice)",
            "plumb kernel --advice says nothing of page faults",
        ),
        Feature::Stat => (
            "system calls, the kernel's share and threads are counted (plumb stat)",
            "plumb stat shows no system calls and threads, and the kernel's own account of its share",
        ),
    };
    (can.into(), cannot)
}

/// Tries all features. A cause that blocks all of them gives a single finding.
///
/// Programs are loaded but not attached; the caller has to know whether functions can have probes (`has_probes`).
pub(super) fn find(has_probes: bool) -> (Vec<Finding>, Vec<ProgramTrial>) {
    let mut trials = plumb_capture_bpf::try_all(plumb_capture_perf::attach_to_idle_event);
    for trial in trials.iter_mut().filter(|trial| trial.feature == Feature::Functions && !has_probes) {
        if let Ok(note) = &mut trial.result {
            *note = Some("not for this user, who may not probe functions");
        }
    }
    let same = trials.iter().map(|trial| match &trial.result {
        Err(LoadError::Unsupported(why)) if !matches!(why, Unsupported::Helper(..)) => Some(why.clone()),
        _ => None,
    });
    let same: Option<Vec<Unsupported>> = same.collect();
    let findings = match same.as_deref() {
        Some([why, ..]) => vec![unsupported(why)],
        _ => trials.iter().map(finding).collect(),
    };
    (findings, trials.iter().map(tried).collect())
}

fn unsupported(why: &Unsupported) -> Finding {
    let says = format!("stacks are copied, and off-cpu, trace, kernel --calls are missing: {why}");
    Finding::new(Limited, "BPF", says).remedy(remedy(why))
}

fn remedy(why: &Unsupported) -> String {
    match why {
        Unsupported::PidNamespace | Unsupported::UserNamespace => String::new(),
        Unsupported::Kernel(_) => "a newer kernel; plumb record works without".into(),
        Unsupported::Helper(_, since) => format!("Linux {since} or newer; plumb record works without"),
        Unsupported::NoBtf => "a kernel built with CONFIG_DEBUG_INFO_BTF".into(),
        Unsupported::Capabilities(_) => format!("run as root, or: {}", setcap_bpf()),
        Unsupported::Lockdown => "boot without lockdown=confidentiality".into(),
    }
}

fn finding(trial: &Trial) -> Finding {
    let (what, (can, cannot)) = (names(trial.feature).1, words(trial.feature));
    match &trial.result {
        Ok(None) => Finding::new(Good, what, can),
        Ok(Some(note)) => Finding::new(Limited, what, format!("{can}; {note}")),
        Err(error) => {
            let finding = Finding::new(Limited, what, format!("{cannot}: {error}"));
            match error {
                LoadError::Unsupported(why) => finding.remedy(remedy(why)),
                LoadError::Refused(_) if is_older(trial.feature) => {
                    finding.remedy(format!("Linux {} or newer", trial.feature.since()))
                }
                LoadError::Refused(_) => finding
                    .remedy("plumb doctor --verbose shows why; please report it with plumb doctor --json"),
            }
        }
    }
}

/// Whether the running kernel is older than the feature requires.
fn is_older(feature: Feature) -> bool {
    let version = |text: &str| {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let kernel = plumb_process::Host::read().kernel;
    version(&kernel).zip(version(feature.since())).is_some_and(|(has, takes)| has < takes)
}

fn tried(trial: &Trial) -> ProgramTrial {
    let (feature, can) = (names(trial.feature).0, words(trial.feature).0);
    let (state, says) = match &trial.result {
        Ok(None) => (Good, can.into_owned()),
        Ok(Some(note)) => (Limited, (*note).to_owned()),
        Err(error) => (Missing, error.to_string()),
    };
    let verifier = match &trial.result {
        Err(LoadError::Refused(refusal)) => {
            refusal.verifier_lines(LINES).into_iter().map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let took_ms = (trial.took.as_secs_f64() * 1e4).round() / 10.0;
    ProgramTrial { feature: feature.into(), state, says, since: trial.feature.since(), took_ms, verifier }
}
