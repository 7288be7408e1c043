//! Profiles that an agent sends besides CPU time.
//!
//! Elsewhere: how an agent samples and where it sends to, which are options of `plumb agent` alone.

use plumb_agent::ProfileOptions;
use plumb_record::MeasureRequest;

use crate::args::value::nanoseconds;

/// The switches below, for options that exclude them.
#[cfg(feature = "server")]
pub const SWITCHES: [&str; 4] = ["off_cpu", "page_faults", "kernel_time", "processes"];

/// Profiles beside CPU time.
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct ProfileArgs {
    /// Record how long threads are off the CPU, and where: blocked or in the run queue
    ///
    /// Beside CPU time: each window is sent as two more profiles, off_cpu, the time that threads were blocked, and run_queue, the time that they were runnable without a
    /// CPU. A thread that is still blocked at the end of a window counts up to then, so that one that hangs is in every window. Programs at each switch of
    /// threads cost more than samples do, and --max-cpu does not lower that.
    ///
    /// Requires BPF (Linux 6.1 or newer).
    #[arg(long)]
    pub off_cpu: bool,
    /// With --off-cpu: ignore intervals shorter than TIME (1ms, 50us)
    #[arg(long, value_name = "TIME", requires = "off_cpu", value_parser = nanoseconds, default_value = "0")]
    min_block: u64,
    /// Sample page faults
    ///
    /// Adds the profile page_faults. Every 997th page fault of a CPU is sampled, with its stack.
    #[arg(long)]
    page_faults: bool,
    /// Measure the CPU time of system calls, by service and system call
    ///
    /// Adds two profiles: kernel_time, the CPU time of system calls, and system_calls, their number. All calls are counted, not sampled, including those of
    /// processes that have exited. Each system call of the machine takes some hundred nanoseconds longer: that is part of the agent's cost, but --max-cpu
    /// does not lower it.
    ///
    /// Requires BPF (Linux 6.1 or newer).
    #[arg(long)]
    kernel_time: bool,
    /// Count started processes, by parent
    ///
    /// Adds two profiles: processes (how many started) and short_lived_cpu (CPU time of processes that started and exited between two requests). Their
    /// stacks are the process, its parent, and so on.
    #[arg(long)]
    processes: bool,
}

impl ProfileArgs {
    /// These options, as the agent takes them.
    pub fn options(self) -> ProfileOptions {
        ProfileOptions {
            measure: self.off_cpu.then_some(MeasureRequest::OffCpu { min_ns: self.min_block }),
            page_faults: self.page_faults,
            kernel_time: self.kernel_time,
            processes: self.processes,
        }
    }

    /// The options as arguments for another command.
    #[cfg(feature = "server")]
    pub fn arguments(self) -> Vec<String> {
        let switches = [
            ("--off-cpu", self.off_cpu),
            ("--page-faults", self.page_faults),
            ("--kernel-time", self.kernel_time),
            ("--processes", self.processes),
        ];
        let mut words: Vec<String> =
            switches.into_iter().filter(|one| one.1).map(|one| one.0.to_owned()).collect();
        if self.off_cpu {
            words.push(format!("--min-block={}ns", self.min_block));
        }
        words
    }
}
