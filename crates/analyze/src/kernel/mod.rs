//! CPU time by cause: user code, each system call, page faults, start and end of processes, interrupts.
//!
//! The table is complete: each kept sample is in exactly one row. The system call of a sample comes from its recorded number,
//! otherwise from the functions of its stack.
//!
//! Elsewhere: counts and durations of calls (they are not sampled), and the names of system call numbers.

mod functions;
mod place;

use std::collections::HashMap;

use plumb_profile::{Meta, Profile, Scope};

use crate::cost::Cost;
use crate::coverage::is_cpu_time;
use crate::filter::Filter;
use crate::view::{NodeId, View};

pub(crate) use functions::Mark;
pub use place::Cause;
pub(crate) use place::{Place, Places};

/// CPU time by cause.
pub struct KernelTime {
    /// The rows, most expensive first; each has a cost.
    pub rows: Vec<KernelRow>,
    /// Cost of all rows except [`Cause::Idle`].
    pub whole: Cost,
    /// Part of `whole` spent in the kernel.
    pub kernel: Cost,
    /// CPU time accounted by the kernel, in nanoseconds, if known: of the whole recording, not of a part.
    pub accounted_ns: Option<u64>,
    /// Whether costs are nanoseconds of CPU time.
    pub is_time: bool,
    /// Whether kernel functions have no names.
    pub nameless_kernel: bool,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct KernelRow {
    /// The cause that the time belongs to.
    pub cause: Cause,
    /// The system call's name, or [`Cause::name`].
    pub name: String,
    /// Cost of the row.
    pub cost: Cost,
    /// For page faults and interrupts: the costs by kind.
    pub kinds: Vec<(&'static str, Cost)>,
    /// The stacks, most expensive first: for kernel work on behalf of a program, the program's part.
    pub stacks: Vec<(NodeId, Cost)>,
}

impl KernelTime {
    /// Sums up the samples that `view` keeps. `name_of` maps system call numbers to names.
    pub fn new(view: &View<'_>, filter: &Filter, name_of: impl Fn(u32) -> Option<&'static str>) -> Self {
        let places = Places::new(view);
        let rows = rows(view, &places, name_of);
        let mut time = KernelTime {
            whole: Cost::default(),
            kernel: Cost::default(),
            accounted_ns: None,
            is_time: is_time(view.profile(), filter),
            nameless_kernel: places.nameless,
            rows,
        };
        for row in &time.rows {
            match row.cause {
                Cause::Idle => continue,
                Cause::User => {}
                _ => time.kernel += row.cost,
            }
            time.whole += row.cost;
        }
        if time.is_time {
            time.accounted_ns = view.meta().target_cpu_ns;
            time.add_idle(view.meta());
        }
        time.rows.sort_by(|one, other| (other.cost, &one.name).cmp(&(one.cost, &other.name)));
        time
    }

    /// If idle CPUs are not sampled, adds their idle time from the kernel's account.
    fn add_idle(&mut self, meta: &Meta) {
        let is_known = self.rows.iter().any(|row| row.cause == Cause::Idle);
        if let (Scope::System, Some(used), false) = (meta.scope, meta.target_cpu_ns, is_known) {
            let weight = meta.duration_ns.saturating_mul(meta.cpus.into()).saturating_sub(used);
            let cost = Cost { weight, samples: 0 };
            let name = Cause::Idle.name().to_owned();
            self.rows.push(KernelRow {
                cause: Cause::Idle,
                name,
                cost,
                kinds: Vec::new(),
                stacks: Vec::new(),
            });
        }
    }

    /// Returns the deviation of the rows' sum from the kernel's account, in percent of that.
    pub fn off_percent(&self) -> Option<f64> {
        let accounted = self.accounted_ns.filter(|&ns| ns > 0)? as f64;
        Some((self.whole.weight as f64 - accounted) * 100.0 / accounted)
    }
}

fn is_time(profile: &Profile, filter: &Filter) -> bool {
    let event = filter.event.map(|event| &profile.events[event]).or(profile.events.rows().first());
    event.is_some_and(|event| is_cpu_time(profile, event))
}

fn rows(
    view: &View<'_>,
    places: &Places<'_>,
    name_of: impl Fn(u32) -> Option<&'static str>,
) -> Vec<KernelRow> {
    let profile = view.profile();
    let mut costs: HashMap<(NodeId, Option<u32>, bool), Cost> = HashMap::new();
    for sample in view.samples() {
        let is_idle_task = profile.processes[profile.threads[sample.sample.thread].process].pid == 0;
        let key = (sample.node, sample.sample.syscall, is_idle_task);
        *costs.entry(key).or_default() += Cost::of_sample(sample.sample.weight);
    }
    let mut rows: HashMap<(Cause, String), Sums> = HashMap::new();
    for ((node, number, is_idle_task), cost) in costs {
        let place = places.of(node);
        let (cause, name) = cause_of(place, number, is_idle_task, &name_of);
        let sums = rows.entry((cause, name)).or_default();
        sums.cost += cost;
        if let Some(kind) = kind(cause, place) {
            *sums.kinds.entry(kind).or_default() += cost;
        }
        *sums.stacks.entry(place.user.unwrap_or(node)).or_default() += cost;
    }
    rows.into_iter().map(|((cause, name), sums)| sums.row(cause, name)).collect()
}

/// Returns the cause of samples at `place`, and its name: a system call's, or the cause's own. `number`: the system call that they
/// interrupted, if known.
pub(crate) fn cause_of(
    place: &Place<'_>,
    number: Option<u32>,
    is_idle_task: bool,
    name_of: impl Fn(u32) -> Option<&'static str>,
) -> (Cause, String) {
    let by_number = number.map(|number| match name_of(number) {
        Some(name) => name.to_owned(),
        None => format!("syscall_{number}"),
    });
    let mut cause = place.cause(by_number.as_deref());
    if is_idle_task && cause != Cause::Interrupt {
        cause = Cause::Idle;
    }
    let call = || by_number.or_else(|| place.call().map(str::to_owned));
    let name = if cause == Cause::Call { call() } else { None };
    (cause, name.unwrap_or_else(|| cause.name().to_owned()))
}

/// A row being summed up.
#[derive(Default)]
struct Sums {
    cost: Cost,
    kinds: HashMap<&'static str, Cost>,
    stacks: HashMap<NodeId, Cost>,
}

impl Sums {
    fn row(self, cause: Cause, name: String) -> KernelRow {
        let mut kinds: Vec<_> = self.kinds.into_iter().collect();
        kinds.sort_by_key(|&(kind, cost)| (std::cmp::Reverse(cost), kind));
        let mut stacks: Vec<_> = self.stacks.into_iter().collect();
        stacks.sort_by_key(|&(node, cost)| (std::cmp::Reverse(cost), node));
        KernelRow { cause, name, cost: self.cost, kinds, stacks }
    }
}

/// Returns the kind of a page fault or interrupt.
fn kind(cause: Cause, place: &Place<'_>) -> Option<&'static str> {
    Some(match cause {
        // A page to copy may have to be read first, which makes the fault a major one.
        Cause::Fault if place.has(Mark::READING) => "major",
        Cause::Fault if place.has(Mark::UNSHARING) || place.has(Mark::COPYING_FILE) => "copy-on-write",
        Cause::Fault => "minor",
        Cause::Interrupt if place.has(Mark::SOFTIRQ) => "softirq",
        Cause::Interrupt => "hard",
        _ => return None,
    })
}
