//! What this user may do here, found out by trying it: settings alone don't say (containers, seccomp, LSMs).

use std::io;

use crate::attr::{Code, Counter, Pace, Part, Sampling};
use crate::cgroup;
use crate::host::Host;
use crate::sys::perf::{Event, Whom};

/// What trying brought.
#[derive(Debug)]
pub struct Abilities {
    /// What samples are taken by here.
    pub counter: Counter,
    /// Sampling one's own user code: the least that recording takes.
    pub own: io::Result<()>,
    /// Sampling the kernel while it works for one's own processes.
    pub kernel: io::Result<()>,
    /// Sampling everything on a processor.
    pub machine: io::Result<()>,
    /// Making a cgroup for the target, and where.
    pub cgroup: io::Result<std::path::PathBuf>,
    /// Whether the kernel counts what each event lost.
    pub(crate) count_lost: bool,
}

impl Abilities {
    /// Tries everything. Makes and removes a cgroup if `with_cgroup`.
    pub fn find(host: &Host, with_cgroup: bool) -> Self {
        let cpu = host.cpus.first().copied().unwrap_or(0);
        let mut sampling = Sampling {
            counter: Counter::Cycles,
            code: Code::User,
            pace: Pace::Frequency(99),
            stack_copy: 1024,
            inherit: true,
            count_lost: false,
            part: Part::alone(&Counter::Cycles, Pace::Frequency(99)),
            copier: None,
        };
        let attempt = |sampling: &Sampling, whom| Event::open(&sampling.attr(), whom, cpu).map(drop);
        // Where there is no performance counter the answer is ENOENT, ENODEV or EOPNOTSUPP, and EACCES only after that.
        // With two kinds of cores the counters of one may know nothing of the other's.
        let cycles = |&cpu: &u32| Event::open(&sampling.attr(), Whom::Thread(0), cpu).is_ok();
        if !host.cpus.iter().all(cycles) {
            sampling.counter = Counter::CpuClock;
        }
        let own = attempt(&sampling, Whom::Thread(0));
        let all = Sampling { code: Code::All, ..sampling.clone() };
        Self {
            counter: sampling.counter.clone(),
            own,
            kernel: attempt(&all, Whom::Thread(0)),
            machine: attempt(&all, Whom::Everyone),
            cgroup: if with_cgroup {
                cgroup::Cgroup::create().map(|c| c.path().into())
            } else {
                cgroup::own()
            },
            count_lost: attempt(&Sampling { count_lost: true, ..sampling }, Whom::Thread(0)).is_ok(),
        }
    }
}
