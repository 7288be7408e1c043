//! Tests this user's permissions by trying: settings alone are not enough (containers, seccomp, LSMs).

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use plumb_capture_api::SamplingRate;
use plumb_process::Host;
use plumb_target::{Cgroup, own_cgroup};

use crate::attr::{Code, Counter, Part, Sampling, ring_owner};
use crate::period::count_cycles;
use crate::sys::perf::{Event, Whom};
use crate::trigger::Trigger;

/// Tries to count cycles on each CPU, which shows whether there are hardware counters.
pub fn try_counters(host: &Host) -> io::Result<()> {
    // Without counters the error is ENOENT, ENODEV or EOPNOTSUPP; EACCES is checked only after that.
    // With two kinds of cores, the counters of one may not cover the other.
    let cycles = count_cycles();
    host.cpus.iter().try_for_each(|&cpu| Event::open(&cycles, Whom::Thread(0), cpu).map(drop))
}

/// Attaches a program to a clock event of this thread that never counts, and detaches it.
pub fn attach_to_idle_event(program: BorrowedFd<'_>) -> io::Result<()> {
    // The number 1, as for a second event: programs with numbers came later.
    open_for_this_thread(&sampling())?.attach_as(program, 1)
}

fn open_for_this_thread(sampling: &Sampling) -> io::Result<Event> {
    let cpu = Host::read().cpus.first().copied().unwrap_or(0);
    Event::open(&sampling.attr(), Whom::Thread(0), cpu)
}

/// Opens the default event for this thread, user code only, and closes it: allowed to all users on most machines.
pub fn try_own_thread() -> io::Result<()> {
    open_for_this_thread(&sampling()).map(drop)
}

/// Opens a trigger's event for this thread without starting it, and closes it. A uprobe is in this program for that time.
pub fn try_trigger(trigger: Trigger) -> io::Result<()> {
    let counter = Counter::Trigger(Arc::new(trigger));
    let sampling = Sampling { counter, code: Code::All, inherit: false, ..sampling() };
    open_for_this_thread(&sampling).map(drop)
}

/// Checks that the kernel counts events by cgroup ([`Cgroup::count_events`]).
pub fn count_events_of(cgroup: &Cgroup, cpu: u32) -> io::Result<()> {
    cgroup.count_events(|cgroup| Event::open(&ring_owner(1), Whom::Cgroup(cgroup), cpu).map(drop))
}

/// The default event.
fn sampling() -> Sampling {
    Sampling {
        part: Part::alone(&Counter::CpuClock, SamplingRate::Frequency(99)),
        counter: Counter::CpuClock,
        code: Code::User,
        pace: SamplingRate::Frequency(99),
        period: 1,
        stack_copy: 1024,
        is_copied: false,
        inherit: true,
        count_lost: false,
        copier: None,
    }
}

/// Results of the tests.
#[derive(Debug)]
pub struct Abilities {
    /// Sampling this user's own user code: the minimum for a recording.
    pub own: io::Result<()>,
    /// Sampling the kernel while it works for this user's processes.
    pub kernel: io::Result<()>,
    /// Sampling everything on a CPU.
    pub machine: io::Result<()>,
    /// Creating a cgroup for the target, and its path.
    pub cgroup: io::Result<std::path::PathBuf>,
    /// Whether the kernel counts lost records per event.
    pub(crate) count_lost: bool,
}

impl Abilities {
    /// Tests everything. Creates and removes a cgroup if `with_cgroup`.
    pub fn find(host: &Host, with_cgroup: bool) -> Self {
        let cpu = host.cpus.first().copied().unwrap_or(0);
        let sampling = sampling();
        let attempt = |sampling: &Sampling, whom| Event::open(&sampling.attr(), whom, cpu).map(drop);
        let own = attempt(&sampling, Whom::Thread(0));
        let all = Sampling { code: Code::All, ..sampling.clone() };
        Self {
            own,
            kernel: attempt(&all, Whom::Thread(0)),
            machine: attempt(&all, Whom::Everyone),
            cgroup: if with_cgroup {
                let counts = |cgroup: Cgroup| {
                    count_events_of(&cgroup, cpu).map(|()| std::path::PathBuf::from(cgroup.path()))
                };
                Cgroup::create().and_then(counts)
            } else {
                own_cgroup()
            },
            count_lost: attempt(&Sampling { count_lost: true, ..sampling }, Whom::Thread(0)).is_ok(),
        }
    }
}
