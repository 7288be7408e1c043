//! Events that are counted without sampling, as `perf stat` does.
//!
//! Elsewhere: starting the measured program, and the meaning of the numbers.

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING,
    PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::os::fd::BorrowedFd;

use plumb_process::Host;

use crate::attr::{Code, base, period_ns};
use crate::sys::perf::{Event, Whom};

/// The counted events: perf's name, type and number.
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

/// The count of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventCount {
    /// perf's name of the event.
    pub name: &'static str,
    /// The count. If counters were multiplexed, it is scaled up from the time that they ran for, as perf does.
    pub count: u64,
    /// Fraction of the time for which the event was counted, 1 if all of it.
    pub counted: f64,
    /// The counted code: user code only, if this user may not count events in the kernel.
    pub code: Code,
}

/// Open counters, a set per event that this machine supports.
pub struct Counters {
    sets: Vec<CounterSet>,
    /// Events that call a program periodically.
    ticks: Vec<Event>,
}

/// The counters of one event, one per CPU.
struct CounterSet {
    name: &'static str,
    events: Vec<Event>,
    code: Code,
}

/// Names of the hardware events that can be counted on each CPU.
pub fn hardware_counters(host: &Host) -> Vec<&'static str> {
    let counts = |&&(_, kind, number): &&(&str, u32, u64)| {
        let mut attr = attr_of(kind, number, Whom::Thread(0));
        attr.set_exclude_kernel(1);
        host.cpus.iter().all(|&cpu| Event::open(&attr, Whom::Thread(0), cpu).is_ok())
    };
    let hardware = COUNTED.iter().filter(|&&(_, kind, _)| kind == PERF_TYPE_HARDWARE);
    hardware.filter(counts).map(|&(name, ..)| name).collect()
}

impl Counters {
    /// Opens and starts the supported counters, for user code only where this user may not count more.
    pub fn start(whom: Whom<'_>, cpus: &[u32]) -> Self {
        let open = |&(name, kind, number): &(&'static str, u32, u64)| {
            let of = |code| {
                let mut attr = attr_of(kind, number, whom);
                attr.set_exclude_kernel((code == Code::User).into());
                let events: Result<Vec<Event>, _> =
                    cpus.iter().map(|&cpu| Event::open(&attr, whom, cpu)).collect();
                // An event that is not available on all CPUs is left out.
                let events = events.ok()?;
                events.iter().try_for_each(Event::enable).ok().map(|()| CounterSet { name, events, code })
            };
            // The kernel's own software events happen in the kernel.
            of(Code::All).or_else(|| if kind == PERF_TYPE_HARDWARE { of(Code::User) } else { None })
        };
        Self { sets: COUNTED.iter().filter_map(open).collect(), ticks: Vec::new() }
    }

    /// Calls a program `hz` times per second of CPU time.
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

    /// Stops counting, and returns the counts.
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
