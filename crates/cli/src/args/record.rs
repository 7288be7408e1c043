//! Recording options: those of all commands that sample, and those of the two that allow choosing events.
//!
//! Elsewhere: the target ([`TargetArgs`](super::TargetArgs)).

use clap::value_parser;
use plumb_record::{Capture, MAX_MEMORY, TABLES_MIB};

use super::value;

/// Methods of capturing stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CaptureMethod {
    /// bpf where it is available, otherwise perf
    #[default]
    Auto,
    /// The kernel copies the top of each stack, and plumb unwinds the copy
    Perf,
    /// The kernel unwinds: complete stacks of up to 4,096 frames, also of short processes; requires root and Linux 5.17
    Bpf,
}

impl From<CaptureMethod> for Capture {
    fn from(method: CaptureMethod) -> Self {
        match method {
            CaptureMethod::Auto => Capture::Auto,
            CaptureMethod::Perf => Capture::Perf,
            CaptureMethod::Bpf => Capture::Bpf,
        }
    }
}

/// Options of recording, for every command that samples.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)]
#[command(next_help_heading = "Recording")]
pub struct RecordArgs {
    /// Sampling frequency, in samples per second of CPU time [default: 999]
    ///
    /// For events that are not clocks: the maximum number of samples per second. The relative error of a row of N samples is about
    /// 1/sqrt(N): a higher frequency makes small rows more accurate.
    #[arg(short = 'F', short_alias = 'r', long, alias = "rate", value_name = "HZ", value_parser = value_parser!(u32).range(1..=100_000))]
    pub frequency: Option<u32>,

    /// Method of capturing stacks [default: auto]
    ///
    /// plumb kernel uses bpf where it is available: only bpf records which system call a sample interrupted.
    #[arg(long, value_enum, value_name = "METHOD")]
    pub capture: Option<CaptureMethod>,

    /// Accepted as perf's: stacks are always recorded
    #[arg(short = 'g', hide = true)]
    pub call_graph: bool,

    /// Accepted as perf's: --capture selects the method
    #[arg(long = "call-graph", hide = true)]
    pub call_graph_method: Option<String>,

    /// With --name: wait until the program starts, and stop when its last process ends
    ///
    /// Each process is recorded from its exec.
    #[arg(long, requires = "name")]
    pub wait: bool,

    /// Guess callers by scanning the stack where unwind information is missing
    ///
    /// Without --scan, only callers that a call instruction confirms are shown. Guessed frames are marked: frames before them may be
    /// missing, and some may have returned already.
    #[arg(long)]
    pub scan: bool,

    /// With --capture bpf: memory for unwind tables, in steps of 8, at most a sixth of --max-memory
    #[arg(long, value_name = "MIB", default_value_t = TABLES_MIB, value_parser = value_parser!(u16).range(8..=512))]
    pub max_table_memory: u16,

    /// Limit of plumb's own memory, such as 256M or 1G
    ///
    /// The limit applies to resident memory (VmHWM of the process, including mapped BPF tables). Symbol files are opened one after
    /// the other, and samples are written to disk while recording, so that no sample and no name is lost. Debug information that does
    /// not fit is skipped: such a file has names but no lines and no inlined functions, and a warning says so. Ring buffers of events
    /// are kernel memory and not included: at most 16 MiB per CPU, 256 MiB in total. The summary reports a limit that was exceeded.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = value::size)]
    pub max_memory: u64,

    /// Query debuginfod servers for missing symbols; the default where DEBUGINFOD_URLS names servers
    ///
    /// Downloads take at most a minute together, and are kept in ~/.cache/debuginfod_client, which gdb and perf use too. Reports of a
    /// perf.data download as well. An empty DEBUGINFOD_URLS turns it off: servers learn which programs run here.
    #[arg(long)]
    pub debuginfod: bool,
}

impl Default for RecordArgs {
    fn default() -> Self {
        Self {
            frequency: None,
            capture: None,
            call_graph: false,
            call_graph_method: None,
            wait: false,
            scan: false,
            max_table_memory: TABLES_MIB,
            max_memory: MAX_MEMORY,
            debuginfod: false,
        }
    }
}

/// Events that trigger samples, and the sampled code. Readers filter by `--event`, so commands that also read a file have none of these.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Recording")]
pub struct EventArgs {
    /// Event to sample instead of CPU time; several as a list, or with several -e
    ///
    /// Software events: page-faults, minor-faults, major-faults, context-switches, cpu-migrations. Hardware counters, if the CPU
    /// exposes them: cycles, instructions, cache-misses, branch-misses and others. Tracepoints: GROUP:NAME, such as
    /// syscalls:sys_enter_brk. Functions of programs and libraries: uprobe:FILE:FUNCTION, such as uprobe:libc.so.6:malloc. FILE is a
    /// path, or the name of the command, of a library, or of a file that the target has mapped. FUNCTION is a name as in reports, a
    /// linker symbol, or an address in the file (0x1139). A uprobe costs every process about a microsecond per call.
    ///
    /// While an event is rare, each occurrence is one sample. When it is frequent, or with -F, the number of samples per second is
    /// limited, and each sample has the weight of the occurrences that it represents: sums stay correct. With -c N, every Nth
    /// occurrence is a sample.
    ///
    /// Each event has its own report. -F and -c apply to all events.
    #[arg(short = 'e', long, value_name = "EVENT")]
    pub event: Vec<String>,

    /// Take a sample every N occurrences of the event (nanoseconds of a clock), instead of -F
    #[arg(short = 'c', long, value_name = "N", conflicts_with = "frequency", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Sample user mode only
    #[arg(long, conflicts_with = "kernel_only")]
    pub user_only: bool,

    /// Sample kernel mode only
    #[arg(long)]
    pub kernel_only: bool,

    /// Keep the timestamp of each sample, for `plumb script` and --time
    ///
    /// Without it, identical stacks are aggregated in the kernel with -a, --cgroup, --tree, --name and --off-cpu, and lose their own
    /// timestamps. With --capture perf each sample has its timestamp in any case.
    #[arg(long)]
    pub timeline: bool,
}
