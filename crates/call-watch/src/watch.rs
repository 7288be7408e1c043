//! Traces system calls and page faults one by one while a recording goes on, and asks the rules.
//!
//! A command is followed because it is a child of this process, which is followed itself. This process' own calls are not recorded,
//! as it never execs. Elsewhere: the rules (analyze), the tracing of calls (capture-bpf).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_analyze::{Basis, CallAdvice, Cause, Costs, Filter, KernelRow, Kind, NodeId, View, Watched};
use plumb_capture_bpf::{CallFilter, Calls, Faults};
use plumb_documents::kernel_time;
use plumb_process::usage::monotonic_ns;
use plumb_profile::Profile;
use plumb_syscalls::Abi;
use plumb_target::{Subject, Target};

use crate::costs;
use crate::error::CallWatchError;
use crate::events::{Event, Events};
use crate::paths::{Known, Paths};
use crate::turns::Turns;

/// Size of the ring buffer of calls that have not been read yet.
const RING_BYTES: u32 = 64 << 20;
/// Interval between two reads of the rings.
const LOOK: Duration = Duration::from_millis(5);
/// Fewest samples outside tracing turns that give a usable result.
const LEAST_UNDISTURBED: usize = 50;

/// A running trace of system calls and page faults.
pub struct CallWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Gathered>,
    costs: Costs,
    /// Tracing overhead per call, in nanoseconds.
    each_ns: f64,
}

/// The result of a trace.
struct Gathered {
    watched: Watched,
    /// Number of traced calls, by name.
    calls: HashMap<&'static str, u64>,
    faults: u64,
    dropped: u64,
    /// Intervals in which tracing was on, in sample time and in order; empty: all the time.
    turns: Vec<Range<u64>>,
}

/// The rules that hold for the traced calls, and what the trace was worth.
pub struct CallFindings {
    /// The rules that hold.
    pub advice: Vec<CallAdvice>,
    /// Number of traced calls and faults.
    pub seen: u64,
    /// Number of those dropped because the ring was full.
    pub dropped: u64,
    /// Tracing overhead, in percent of the CPU time.
    pub cost_percent: f64,
    /// Intervals in which tracing was on, in sample time and in order; empty: all the time, or too few samples lie outside them.
    pub turns: Vec<Range<u64>>,
}

impl CallWatch {
    /// Starts tracing running processes, the whole machine, or a command that this process will start.
    ///
    /// # Errors
    /// The kernel or the user's privileges don't allow it, or the target does not exist.
    pub fn begin(target: &Target) -> Result<Self, CallWatchError> {
        Self::begin_as(target, false)
    }

    /// Starts tracing in turns. Most of the time tracing is off, and the target runs undisturbed.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn begin_in_turns(target: &Target) -> Result<Self, CallWatchError> {
        Self::begin_as(target, true)
    }

    fn begin_as(target: &Target, in_turns: bool) -> Result<Self, CallWatchError> {
        let costs = costs::measured();
        let filter = CallFilter { min_ns: 0, failed_only: false, counts_met: false, ring_bytes: RING_BYTES };
        let mut calls = Calls::load(filter).map_err(CallWatchError::Load)?;
        calls.calibrate()?;
        let each_ns = (calls.each_ns() - calls.bare_ns()).max(0.0);
        let mut faults = Faults::load().map_err(CallWatchError::Load)?;
        let known = Known::of(Watched::names());
        known.wants().try_for_each(|(number, want)| calls.want(Abi::NATIVE, number, &want))?;
        let subject = follow(target, &mut calls, &mut faults)?;
        calls.begin()?;
        faults.begin()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let starts = starts_command(target);
        let turns = in_turns.then(|| Turns::new(calls.switch(), faults.switch()));
        let thread = std::thread::Builder::new().name("calls".into()).spawn(move || {
            watch(Events::new(calls, faults, Paths::new(known)), turns.as_ref(), starts, &stopped)
        })?;
        drop(subject);
        Ok(Self { stop, thread, costs, each_ns })
    }

    /// Stops tracing and applies the rules, weighed with the samples taken during the trace.
    ///
    /// # Errors
    /// The thread that traced has failed.
    pub fn advise(self, profile: &Profile, filter: &Filter) -> Result<CallFindings, CallWatchError> {
        let Self { stop, thread, costs, each_ns } = self;
        stop.store(true, Ordering::Release);
        let mut gathered = thread.join().map_err(|_| CallWatchError::Failed)?;
        let (seen, dropped) = (gathered.calls.values().sum::<u64>() + gathered.faults, gathered.dropped);
        if gathered.turns.is_empty() {
            let view = View::new(profile, filter);
            let (basis, cost_percent) = basis_less_cost(&gathered, &view, filter, (costs, each_ns));
            let advice = gathered.watched.advise(&basis);
            return Ok(CallFindings { advice, seen, dropped, cost_percent, turns: Vec::new() });
        }
        // The last turn went on while the recording was being finished.
        let end_ns = profile.meta.start_ns.saturating_add(profile.meta.duration_ns);
        gathered.turns.retain_mut(|turn| {
            turn.end = turn.end.min(end_ns);
            turn.start < turn.end
        });
        let watched_ns: u64 = gathered.turns.iter().map(|turn| turn.end.saturating_sub(turn.start)).sum();
        let (watched_ns, all_ns) = (watched_ns as f64, profile.meta.duration_ns as f64);
        let undisturbed = Filter { except: gathered.turns.clone(), ..filter.clone() };
        let view = View::new(profile, &undisturbed);
        let is_enough = view.samples().len() >= LEAST_UNDISTURBED;
        let (basis, turns) = match is_enough {
            true => (
                basis_of_turns(watched_ns, &view, (&undisturbed, all_ns - watched_ns), costs),
                gathered.turns,
            ),
            // The target used hardly any CPU time, and tracing it used even less.
            false => {
                (basis_of_turns(watched_ns, &View::new(profile, filter), (filter, all_ns), costs), Vec::new())
            }
        };
        let advice = gathered.watched.advise(&basis);
        Ok(CallFindings { advice, seen, dropped, cost_percent: 0.0, turns })
    }
}

/// Samples taken while tracing was on all the time, less the tracing overhead; and that overhead in percent.
fn basis_less_cost(
    gathered: &Gathered,
    view: &View<'_>,
    filter: &Filter,
    (costs, each_ns): (Costs, f64),
) -> (Basis, f64) {
    let time = kernel_time::of_view(view, filter);
    let Gathered { calls, faults, .. } = gathered;
    let (seen, faults) = (calls.values().sum::<u64>() as f64, *faults as f64);
    // A fault runs one BPF program, a call two.
    let cost_ns = seen * each_ns + faults * each_ns / 2.0;
    let whole = time.whole.weight as f64;
    let mut cpu_of = HashMap::new();
    for row in &time.rows {
        let (name, seen_ns) = match row.cause {
            Cause::Fault => ("page-fault", faults * each_ns / 2.0),
            _ => (&row.name[..], calls.get(&row.name[..]).map_or(0.0, |&n| n as f64 * each_ns)),
        };
        cpu_of.insert(name.to_owned(), (row.cost.weight as f64 - seen_ns).max(0.0));
    }
    let basis = Basis {
        span_ns: view.profile().meta.duration_ns as f64,
        cpu_ns: (whole - cost_ns).max(0.0),
        cpu_of,
        cpu_of_thread: by_thread(view, 1.0, |_| true),
        user_of_thread: by_thread(view, 1.0, is_user(view)),
        cpus: view.profile().meta.cpus,
        costs,
    };
    (basis, if whole > 0.0 { cost_ns / whole * 100.0 } else { 0.0 })
}

/// Scales the samples of `view`, taken in `sampled_ns`, up to the whole time watched.
fn basis_of_turns(
    watched_ns: f64,
    view: &View<'_>,
    (filter, sampled_ns): (&Filter, f64),
    costs: Costs,
) -> Basis {
    let time = kernel_time::of_view(view, filter);
    let scale = watched_ns / sampled_ns.max(1.0);
    let name =
        |row: &KernelRow| if row.cause == Cause::Fault { "page-fault".to_owned() } else { row.name.clone() };
    Basis {
        span_ns: watched_ns,
        cpu_ns: time.whole.weight as f64 * scale,
        cpu_of: time.rows.iter().map(|row| (name(row), row.cost.weight as f64 * scale)).collect(),
        cpu_of_thread: by_thread(view, scale, |_| true),
        user_of_thread: by_thread(view, scale, is_user(view)),
        cpus: view.profile().meta.cpus,
        costs,
    }
}

/// Weighs the samples of each thread for which `is_one` holds, by the node of their innermost frame.
fn by_thread(view: &View<'_>, scale: f64, is_one: impl Fn(NodeId) -> bool) -> HashMap<u32, f64> {
    let mut times: HashMap<u32, f64> = HashMap::new();
    for kept in view.samples().filter(|kept| is_one(kept.node)) {
        let tid = view.profile().threads[kept.sample.thread].tid;
        *times.entry(tid).or_default() += kept.sample.weight as f64 * scale;
    }
    times
}

fn is_user<'v>(view: &'v View<'_>) -> impl Fn(NodeId) -> bool + 'v {
    |node| view.frame(view.node(node).frame).kind == Kind::User
}

/// Follows everything that is to be traced. The returned subject has to live until the tracing thread has started: that thread then
/// inherits blocked signals, which are meant for the recorder.
fn follow(target: &Target, calls: &mut Calls, faults: &mut Faults) -> Result<Subject, CallWatchError> {
    let own = Target::Processes(vec![std::process::id()]);
    let starts = starts_command(target);
    let subject = Subject::find(if starts { &own } else { target })?;
    if !matches!(target, Target::Machine) {
        subject.follow(|pid| if starts { calls.follow_from_exec(pid) } else { calls.follow(pid) })?;
        subject.follow(|pid| faults.follow(pid))?;
    }
    Ok(subject)
}

/// Whether the target is still to be executed: its calls are shown from then on, while its process has page faults before.
fn starts_command(target: &Target) -> bool {
    matches!(target, Target::Command(_) | Target::Awaited(_))
}

fn watch(mut events: Events, turns: Option<&Turns>, starts: bool, stop: &AtomicBool) -> Gathered {
    let mut gathered = Gathered {
        watched: Watched::default(),
        calls: HashMap::new(),
        faults: 0,
        dropped: 0,
        turns: Vec::new(),
    };
    let mut known = 0;
    loop {
        let last = stop.load(Ordering::Acquire);
        if let Some(turns) = turns {
            let count = turns.count();
            if count != known {
                events.forget_descriptors();
                known = count;
            }
        }
        let mut has_some = false;
        events.take(monotonic_ns(), last, |event| {
            // An exec in a pause would not be seen, and neither would the calls after it.
            has_some |= !starts || matches!(event, Event::Call(_));
            match event {
                Event::Call(call) => {
                    *gathered.calls.entry(call.name).or_default() += 1;
                    gathered.watched.call(&call.event());
                }
                Event::Fault(fault) => {
                    gathered.faults += 1;
                    gathered.watched.fault(fault);
                }
            }
        });
        if let (Some(turns), true) = (turns, has_some) {
            turns.start();
        }
        if last {
            gathered.dropped = events.dropped();
            gathered.turns = turns.map_or_else(Vec::new, Turns::end);
            return gathered;
        }
        std::thread::sleep(LOOK);
    }
}
