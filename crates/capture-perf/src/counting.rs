//! Events that are counted and never sampled: what `perf stat` counts.
//!
//! Not here: who runs meanwhile, and what the numbers mean.

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING,
    PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::os::fd::BorrowedFd;

use crate::attr::{Code, base, period_ns};
use crate::sys::perf::{Event, Whom};

/// What is counted: perf's name, the type and the number.
const COUNTED: [(&str, u32, u64); 10] = [
    ("cpu-migrations", PERF_TYPE_SOFTWARE, 4),
    ("context-switches", PERF_TYPE_SOFTWARE, 3),
    ("cycles", PERF_TYPE_HARDWARE, 0),
    ("instructions", PERF_TYPE_HARDWARE, 1),
    ("branches", PERF_TYPE_HARDWARE, 4),
    ("branch-misses", PERF_TYPE_HARDWARE, 5),
    ("cache-references", PERF_TYPE_HARDWARE, 2),
    ("cache-misses", PERF_TYPE_HARDWARE, 3),
    ("stalled-cycles-frontend", PERF_TYPE_HARDWARE, 7),
    ("stalled-cycles-backend", PERF_TYPE_HARDWARE, 8),
];

/// How often something happened.
#[derive(Clone, Debug, PartialEq)]
pub struct EventCount {
    /// perf's name of it.
    pub name: &'static str,
    /// How often. Where counters took turns this is scaled up from the time that it was counted for, as perf does.
    pub count: u64,
    /// The share of the time that it was counted for, 1 if all of it.
    pub counted: f64,
    /// Where: in user code only if this user may not count what happens in the kernel.
    pub code: Code,
}

/// Open counters, a set for each thing that this machine counts.
pub struct Counters {
    sets: Vec<CounterSet>,
    /// Call a program at a steady pace.
    ticks: Vec<Event>,
}

/// The counters of one thing, one for each processor.
struct CounterSet {
    name: &'static str,
    events: Vec<Event>,
    code: Code,
}

impl Counters {
    /// Opens what can be opened, and starts it: of user code alone where this user may not count more.
    pub fn start(whom: Whom<'_>, cpus: &[u32]) -> Self {
        let open = |&(name, kind, number): &(&'static str, u32, u64)| {
            let of = |code| {
                let mut attr = attr_of(kind, number, whom);
                attr.set_exclude_kernel((code == Code::User).into());
                let events: Result<Vec<Event>, _> =
                    cpus.iter().map(|&cpu| Event::open(&attr, whom, cpu)).collect();
                // A counter that isn't there, or not on all processors, is left out.
                let events = events.ok()?;
                events.iter().try_for_each(Event::enable).ok().map(|()| CounterSet { name, events, code })
            };
            // What the kernel itself counts is counted in the kernel.
            of(Code::All).or_else(|| if kind == PERF_TYPE_HARDWARE { of(Code::User) } else { None })
        };
        Self { sets: COUNTED.iter().filter_map(open).collect(), ticks: Vec::new() }
    }

    /// Has a program called `hz` times in each second of processor time.
    pub fn tick(
        &mut self,
        (whom, cpus): (Whom<'_>, &[u32]),
        hz: u32,
        program: BorrowedFd<'_>,
    ) -> std::io::Result<()> {
        let mut attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.into(), whom);
        attr.sample_period = period_ns(hz);
        attr.set_exclude_idle(1);
        for &cpu in cpus {
            let event = Event::open(&attr, whom, cpu)?;
            event.attach(program)?;
            event.enable()?;
            self.ticks.push(event);
        }
        Ok(())
    }

    /// Stops, and says what was counted.
    pub fn stop(self) -> Vec<EventCount> {
        self.ticks.iter().for_each(|event| drop(event.disable()));
        let sum = |CounterSet { name, events, code }| {
            let (mut count, mut enabled, mut running) = (0.0, 0.0, 0.0);
            for event in &events {
                let [value, on, counted] = event.counted_for()?.map(|word| word as f64);
                count += if counted > 0.0 { value * (on / counted).max(1.0) } else { 0.0 };
                enabled += on;
                running += counted;
            }
            let counted = if enabled > 0.0 { (running / enabled).min(1.0) } else { 1.0 };
            Some(EventCount { name, count: count as u64, counted, code })
        };
        self.sets.into_iter().filter_map(sum).collect()
    }
}

fn attr_of(kind: u32, number: u64, whom: Whom<'_>) -> perf_event_attr {
    let mut attr = base(false);
    attr.type_ = kind;
    attr.config = number;
    attr.read_format = (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING).into();
    attr.set_inherit(matches!(whom, Whom::Thread(_)).into());
    attr.set_exclude_hv(1);
    attr.set_exclude_guest(1);
    attr
}
