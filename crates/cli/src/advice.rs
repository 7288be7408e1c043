//! `plumb kernel --advice`: system calls and page faults are watched one by one while a recording is made, for rules that say what
//! to do about them.
//!
//! The command is followed because this process is, whose child it becomes: none of this process' own calls are seen, as it
//! never execs. Not here: the rules (analyze), how calls are seen (capture-bpf).

mod costs;
mod events;
mod paths;
pub mod processes;
mod show;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use plumb_analyze::{Basis, CallAdvice, Cause, Costs, KernelTime, Watched};
use plumb_capture_bpf::{CallFilter, Calls, Faults, LoadError};
use plumb_process::usage::monotonic_ns;
use plumb_profile::Profile;
use plumb_syscalls::Abi;
use plumb_target::{Subject, Target};

pub use costs::call_ns;
use events::{Event, Events};
use paths::{Known, Paths};
pub use show::{json, text};

/// Room for calls that have not been looked at yet.
const RING_BYTES: u32 = 64 << 20;
/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// What is being watched.
pub struct Watching {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Gathered>,
    costs: Costs,
    /// What seeing a call adds to it, in nanoseconds.
    each_ns: f64,
}

/// What was watched.
struct Gathered {
    watched: Watched,
    /// Calls that were seen, by name.
    calls: HashMap<&'static str, u64>,
    faults: u64,
    dropped: u64,
}

/// The verdict.
pub struct Verdict {
    pub advice: Vec<CallAdvice>,
    /// Calls and faults that were seen, and those that found no room.
    pub seen: u64,
    pub dropped: u64,
    /// What seeing them took, in percent of the processor time.
    pub cost_percent: f64,
}

impl Watching {
    /// Begins to watch: processes that run already, everything, or what this process will start.
    pub fn begin(target: &Target) -> Result<Self> {
        let costs = costs::measured();
        let bare = call_ns();
        let filter = CallFilter { min_ns: 0, failed_only: false, ring_bytes: RING_BYTES };
        let mut calls = Calls::load(filter).map_err(refusal)?;
        calls.calibrate()?;
        let each_ns = (calls.each_ns() - bare).max(0.0);
        let mut faults = Faults::load().map_err(refusal)?;
        let known = Known::of(Watched::names());
        known.wants().try_for_each(|(number, want)| calls.want(Abi::X86_64, number, &want))?;
        let subject = follow(target, &mut calls, &mut faults)?;
        calls.begin()?;
        faults.begin()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("calls".into())
            .spawn(move || watch(Events::new(calls, faults, Paths::new(known)), &stopped))?;
        drop(subject);
        Ok(Self { stop, thread, costs, each_ns })
    }

    /// Ends, and judges with what was sampled meanwhile.
    pub fn judge(self, profile: &Profile, time: &KernelTime) -> Result<Verdict> {
        self.stop.store(true, Ordering::Release);
        let gathered = self.thread.join().map_err(|_| anyhow!("the thread that watched calls has failed"))?;
        let Gathered { watched, calls, faults, dropped } = gathered;
        let seen = calls.values().sum::<u64>() + faults;
        // Of a fault one program is told, of a call two.
        let cost_ns = (seen - faults) as f64 * self.each_ns + faults as f64 * self.each_ns / 2.0;
        let whole = time.whole.weight as f64;
        let mut cpu_of = HashMap::new();
        for row in &time.rows {
            let (name, seen_ns) = match row.cause {
                Cause::Fault => ("page-fault", faults as f64 * self.each_ns / 2.0),
                _ => (&row.name[..], calls.get(&row.name[..]).map_or(0.0, |&n| n as f64 * self.each_ns)),
            };
            cpu_of.insert(name.to_owned(), (row.cost.weight as f64 - seen_ns).max(0.0));
        }
        let mut cpu_of_thread: HashMap<u32, f64> = HashMap::new();
        for sample in profile.samples.iter() {
            let tid = profile.threads[sample.thread].tid;
            *cpu_of_thread.entry(tid).or_default() += sample.weight as f64;
        }
        let basis = Basis {
            span_ns: profile.meta.duration_ns as f64,
            cpu_ns: (whole - cost_ns).max(0.0),
            cpu_of,
            cpu_of_thread,
            costs: self.costs,
        };
        let cost_percent = if whole > 0.0 { cost_ns / whole * 100.0 } else { 0.0 };
        Ok(Verdict { advice: watched.advise(&basis), seen, dropped, cost_percent })
    }
}

fn refusal(error: LoadError) -> anyhow::Error {
    anyhow!("cannot observe system calls for --advice: {error}\n  without:  plumb kernel, without --advice")
}

/// Has everything followed that is to be watched. What comes back has to live until the thread that watches has started, which so gets
/// no signals: they are the recorder's.
fn follow(target: &Target, calls: &mut Calls, faults: &mut Faults) -> Result<Subject> {
    let own = Target::Processes(vec![std::process::id()]);
    let starts = matches!(target, Target::Command(_) | Target::Awaited(_));
    let subject = Subject::find(if starts { &own } else { target })?;
    if !matches!(target, Target::Machine) {
        subject.follow(|pid| if starts { calls.follow_from_exec(pid) } else { calls.follow(pid) })?;
        subject.follow(|pid| faults.follow(pid))?;
    }
    Ok(subject)
}

fn watch(mut events: Events, stop: &AtomicBool) -> Gathered {
    let mut gathered = Gathered { watched: Watched::default(), calls: HashMap::new(), faults: 0, dropped: 0 };
    loop {
        let last = stop.load(Ordering::Acquire);
        events.take(monotonic_ns(), last, |event| match event {
            Event::Call(call) => {
                *gathered.calls.entry(call.name).or_default() += 1;
                gathered.watched.call(&call.event());
            }
            Event::Fault(fault) => {
                gathered.faults += 1;
                gathered.watched.fault(fault);
            }
        });
        if last {
            gathered.dropped = events.dropped();
            return gathered;
        }
        std::thread::sleep(LOOK);
    }
}
