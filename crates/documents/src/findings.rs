//! Findings about the services of a store: a self-contained title, a share, and the selection that shows it.
//!
//! Invariant: a finding names nothing that its evidence does not show. Elsewhere: the choice of services (`server`), the analysis (`analyze`).

use std::borrow::Cow;

use plumb_analyze::{
    Bottleneck, Cause, CodeAdvice, ExplainOptions, Explanation, Extent, Filter, FrameIndex, KernelRow, Rule,
    ScriptSources, Share, shorten, without_parameters,
};
use plumb_profile::Profile;
use serde::{Deserialize, Serialize};

use crate::explain::{HotFunctions, caches};

mod bound;
mod change;
mod rank;
mod rhythm;

pub use bound::{AnswerBound, BoundReason};
pub use change::{ServiceChange, of_change};
pub use rank::{FindingOwner, rank};
pub use rhythm::{LockWaits, ServiceRhythm, of_lock_waits, of_rhythm};

/// Largest number of findings per service.
const MOST: usize = 3;
/// Longest name of a function in a title.
const NAME_WIDTH: usize = 60;

/// The findings in a time range. Members with a default are missing in the answers of older servers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "FindingsAnswer"))]
pub struct Findings {
    /// Version of this structure.
    pub version: u32,
    /// Start of the range, in milliseconds since 1970.
    pub from_ms: i64,
    /// End of the range.
    pub until_ms: i64,
    /// CPU time of all services.
    pub cpu_ns: i64,
    /// CPU capacity of all machines in that range, if their agents report it.
    pub machine_ns: Option<i64>,
    /// Number of services.
    pub services: usize,
    /// Number of services examined: those with the most CPU time.
    pub examined: usize,
    /// CPU time of plumb's agents and servers among them.
    #[serde(default)]
    pub own_cpu_ns: i64,
    /// Limits of the answer; empty if everything requested was examined.
    #[serde(default)]
    pub truncated: Vec<AnswerBound>,
    /// The services with the most CPU time, three at most.
    #[serde(default)]
    pub largest: Vec<LargeService>,
    /// The findings, in the order of [`rank()`].
    pub findings: Vec<Finding>,
}

/// A service with much CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LargeService {
    /// The service.
    pub service: String,
    /// CPU time.
    pub cpu_ns: i64,
}

/// A finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Finding {
    /// The finding as a sentence.
    pub title: String,
    /// A name for it without figures, such as the function, that stays the same while the finding lasts. With the service and the kind it identifies
    /// the finding.
    pub subject: String,
    /// The sort of finding.
    // Commands read no words of which a newer server may have more.
    #[serde(skip_deserializing)]
    pub kind: FindingKind,
    /// The service.
    pub service: String,
    /// The owner of the service.
    #[serde(skip_deserializing)]
    pub owner: FindingOwner,
    /// Share of the service's CPU time.
    pub share_percent: f64,
    /// CPU time.
    pub cpu_ns: i64,
    /// CPU time as a share of the machines' capacity, if that is known.
    pub of_machine_percent: Option<f64>,
    /// Interval at which the service wakes up, if it does so regularly.
    pub period_ns: Option<u64>,
    /// Whether an agent observed what the service does.
    #[serde(skip)]
    pub is_observed: bool,
    /// The selection that shows it.
    pub evidence: FindingEvidence,
    /// Further details, a sentence each.
    pub details: Vec<String>,
    /// The remedy, if the cause is known.
    pub remedy: Option<Cow<'static, str>>,
}

/// The sort of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A newer version takes more.
    Change,
    /// Bursts come back after the same time.
    Rhythm,
    /// Threads wait.
    Wait,
    /// A cause found by a rule.
    Cause,
    /// A function with much time; the reason is not known.
    Function,
    /// The kernel takes much time.
    Kernel,
    /// The habits of a service in which nothing else stands out.
    #[default]
    Service,
}

impl FindingKind {
    /// The word for it in JSON and in labels.
    pub fn word(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Rhythm => "rhythm",
            Self::Wait => "wait",
            Self::Cause => "cause",
            Self::Function => "function",
            Self::Kernel => "kernel",
            Self::Service => "service",
        }
    }
}

/// The selection that shows a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FindingEvidence {
    /// Label selector.
    pub selector: String,
    /// Profile type.
    #[serde(rename = "type")]
    pub profile_type: String,
    /// The function to look for, if any.
    pub function: Option<String>,
}

/// Facts about a service other than its samples.
#[derive(Clone, Debug, Default)]
pub struct ServiceFacts {
    /// Name of the service.
    pub service: String,
    /// CPU time of the service.
    pub cpu_ns: i64,
    /// Whether the number of its samples is known.
    pub is_counted: bool,
    /// CPU capacity of the machines, if known.
    pub machine_ns: Option<i64>,
    /// Interval at which it wakes up.
    pub period_ns: Option<u64>,
    /// Observations of an agent, a sentence each.
    pub observations: Vec<String>,
    /// The selection of the service.
    pub evidence: FindingEvidence,
}

/// Returns the findings about a service: those above `threshold` percent of its CPU time; if there are none, what is known of its habits.
pub fn of_service(profile: &Profile, filter: &Filter, threshold: f64, facts: &ServiceFacts) -> Vec<Finding> {
    let view = Explanation::view(profile, filter);
    let call_name = crate::kernel_time::call_names(profile);
    let code = HotFunctions::unread(&view);
    let options = ExplainOptions {
        calls: Vec::new(),
        threshold,
        call_name: &call_name,
        sources: &ScriptSources::default(),
        caches: caches(),
        waits: None,
    };
    let owner = FindingOwner::of(profile, &facts.service);
    let report = Explanation::new(view, filter, &code.for_analysis(), &options);
    let mut above: Vec<(Bottleneck, Share)> = report.first().into_iter().collect();
    above.extend(
        report.outlook.above.iter().filter(|(what, _)| Some(*what) != report.first().map(|one| one.0)),
    );
    // Without their number, one stack of many samples counts as one.
    let is_few = report.outlook.is_few && !facts.is_counted && above.is_empty();
    above.extend(report.outlook.largest.filter(|_| is_few));
    // Time in the kernel of which nothing is known tells nobody what to do.
    let is_known = |what: &Bottleneck| match what {
        Bottleneck::Kernel(index) => !matches!(report.time.rows[*index].cause, Cause::Other | Cause::Idle),
        _ => true,
    };
    above.retain(|(what, share)| share.percent > 0.0 && is_known(what));
    let mut found: Vec<Finding> =
        above.into_iter().take(MOST).map(|(what, share)| finding(&report, what, share, facts)).collect();
    if found.is_empty() && (facts.period_ns.is_some() || !facts.observations.is_empty()) {
        found.push(whole(facts));
    }
    found.iter_mut().for_each(|one| one.owner = owner);
    found
}

/// Returns the finding about the habits of the service.
fn whole(facts: &ServiceFacts) -> Finding {
    let title =
        if facts.period_ns.is_some() { "works at regular intervals" } else { "makes these system calls" };
    made(facts, FindingKind::Service, [title.to_owned(), title.to_owned()], 100.0)
}

fn finding(report: &Explanation<'_>, what: Bottleneck, share: Share, facts: &ServiceFacts) -> Finding {
    let name = |frame: FrameIndex| short(&report.view.frame(frame).name);
    let function = |frame: Option<FrameIndex>| frame.map(|frame| report.view.frame(frame).name.to_string());
    let first = |places: &[(FrameIndex, plumb_analyze::Cost)]| places.first().map(|&(frame, _)| frame);
    let (kind, frame, subject, rule) = match what {
        Bottleneck::Function(frame) => (FindingKind::Function, Some(frame), name(frame), None),
        Bottleneck::Line(index) => {
            let frame = report.outlook.lines[index].frame;
            (
                FindingKind::Function,
                Some(frame),
                format!("{} calls functions of libraries", name(frame)),
                None,
            )
        }
        Bottleneck::Kernel(index) => {
            let frame = first(&report.kernel_callers[index].places);
            let row = kernel_words(&report.time.rows[index]);
            let subject = match frame {
                Some(frame) => format!("{} keeps the kernel busy with {row}", name(frame)),
                None => format!("the kernel: {row}"),
            };
            (FindingKind::Kernel, frame, subject, None)
        }
        Bottleneck::Code(index) => of_code(report, &report.causes[index], name),
        Bottleneck::Calls(index) => {
            let advice = &report.calls[index];
            let frame = first(&report.callers_of(advice).places);
            let whose = frame.map_or_else(|| "the program".to_owned(), name);
            (FindingKind::Cause, frame, format!("{whose} {}", advice.rule.claim), Some(advice.rule))
        }
        Bottleneck::Processes(index) => {
            let advice = &report.processes[index];
            let program = report.procs.programs[advice.program].name();
            (FindingKind::Cause, None, format!("{program} {}", advice.rule.claim), Some(advice.rule))
        }
    };
    let percent = share.percent;
    let title = format!("{subject}: {} of its CPU time", percent_text(percent));
    let mut found = made(facts, kind, [subject, title], percent);
    found.evidence.function = function(frame);
    found.details.push(format!("95% interval {:.0}–{:.0}%", share.low, share.high));
    if let Some(rule) = rule {
        found.details.push(format!("Rule: {}", rule.pattern));
        found.remedy = Some(rule.remedy.into());
    }
    found
}

/// Returns the parts of a finding by a rule on code: its kind, frame and words, and the rule if it names a cause.
fn of_code(
    report: &Explanation<'_>,
    cause: &CodeAdvice,
    name: impl Fn(FrameIndex) -> String,
) -> (FindingKind, Option<FrameIndex>, String, Option<&'static Rule>) {
    let frame = cause.places.first().or(cause.functions.first()).map(|&(frame, _)| frame);
    let whose = match (cause.extent, frame) {
        (Extent::Files, Some(frame)) => {
            let path = report.view.frame(frame).dso_path;
            format!("all of {}", path.rsplit('/').next().unwrap_or(path))
        }
        (_, Some(frame)) => name(frame),
        (_, None) => "the program".to_owned(),
    };
    // An activity of a program is not necessarily a fault.
    let (kind, rule) = match cause.is_activity {
        true => (FindingKind::Function, None),
        false => (FindingKind::Cause, Some(cause.rule)),
    };
    (kind, frame, format!("{whose} {}", cause.rule.claim), rule)
}

/// Creates a finding with this subject and title on values of a profile type, without the habits of the service. `value`: in that type's unit; only CPU time is a cost of the machine.
fn of_values(
    facts: &ServiceFacts,
    kind: FindingKind,
    names: [String; 2],
    (profile_type, percent, value): (&str, f64, f64),
) -> Finding {
    let is_cpu = is_cpu_time(profile_type);
    let facts = ServiceFacts { period_ns: None, observations: Vec::new(), ..facts.clone() };
    let mut found = made(&facts, kind, names, percent);
    found.cpu_ns = if is_cpu { value as i64 } else { 0 };
    found.of_machine_percent =
        facts.machine_ns.filter(|_| is_cpu).and_then(|machine| machine_percent(found.cpu_ns, machine));
    found.evidence.profile_type = profile_type.to_owned();
    found
}

fn is_cpu_time(profile_type: &str) -> bool {
    profile_type.starts_with("process_cpu:")
}

fn machine_percent(cpu_ns: i64, machine_ns: i64) -> Option<f64> {
    (machine_ns > 0).then(|| 100.0 * cpu_ns as f64 / machine_ns as f64)
}

/// A function's name in a title.
fn short(name: &str) -> String {
    shorten(without_parameters(name), NAME_WIDTH).into_owned()
}

/// Creates a finding with this subject and title, and the facts about the service.
fn made(facts: &ServiceFacts, kind: FindingKind, [subject, title]: [String; 2], percent: f64) -> Finding {
    let cpu_ns = (facts.cpu_ns as f64 * percent / 100.0) as i64;
    let title = match facts.period_ns {
        Some(period) => format!("{title}; the service wakes every {:.1} s", period as f64 / 1e9),
        None => title,
    };
    Finding {
        title,
        subject,
        kind,
        service: facts.service.clone(),
        owner: FindingOwner::default(),
        share_percent: percent,
        cpu_ns,
        of_machine_percent: facts.machine_ns.and_then(|machine| machine_percent(cpu_ns, machine)),
        period_ns: facts.period_ns,
        is_observed: !facts.observations.is_empty(),
        evidence: facts.evidence.clone(),
        details: facts.observations.clone(),
        remedy: None,
    }
}

/// Returns the words for a row of kernel time in a sentence.
fn kernel_words(row: &KernelRow) -> String {
    match row.cause {
        Cause::Fault => "page faults".to_owned(),
        Cause::Fork => "starting processes".to_owned(),
        Cause::Exec => "executing programs".to_owned(),
        Cause::Exit => "ending processes".to_owned(),
        Cause::Interrupt => "interrupts".to_owned(),
        Cause::Thread => "threads of its own".to_owned(),
        Cause::Entry => "entry to and return from system calls".to_owned(),
        Cause::Call => format!("the system call {}", row.name),
        Cause::User | Cause::Idle | Cause::Other => row.name.clone(),
    }
}

fn percent_text(percent: f64) -> String {
    if percent >= 10.0 { format!("{percent:.0}%") } else { format!("{percent:.1}%") }
}
