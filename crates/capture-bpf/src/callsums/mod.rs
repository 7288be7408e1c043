//! System calls summed up in the kernel: calls, failures, durations (bpf/callsums.bpf.c).
//!
//! Counts are exact. Loading this slows every system call of the machine, followed or not; the cost is measured first
//! ([`CallOverhead`]).
//!
//! Elsewhere: permanent sums for a machine (`process_sums`), the meaning of call numbers, tables.

mod overhead;
mod process_sums;
pub mod wire;

use std::collections::HashMap as Map;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::programs::{Iter, Program};
use plumb_capture_api::TargetObserver;
use plumb_syscalls::{Abi, Account, CallOverhead, Longest, TaskEvents, Times, number};

use crate::follow::Followed;
use crate::object::{Machine, Watch, skipped, sum, take, take_descriptor};
use crate::refusal::{LoadError, refused};
use crate::sys;
use crate::verified::verified;
pub use overhead::null_call_ns;
pub use process_sums::ProcessSums;
use wire::{
    BUCKETS, CALL_FORKS, CALL_TAKES_FILE, CALL_TEXT_SHIFT, COUNT_FROM_EXEC, COUNT_NOW, ErrorKey, Name,
    NameKey, PER_CALL, PER_FILE, PER_PROCESS, PER_THREAD, Part, SUM_ENDED, SUM_INVOLUNTARY, SUM_LOST,
    SUM_MAJOR, SUM_MINOR, SUM_NUMBERS, SUM_OTHERS, SUM_VOLUNTARY, Sum, SumKey, TEXT_BYTES,
};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = crate::object::object!("callsums");
/// The kernel structures that they read.
const STRUCTURES: [&str; 13] = [
    "task_struct",
    "thread_info",
    "pt_regs",
    "sched_entity",
    "files_struct",
    "fdtable",
    "file",
    "path",
    "dentry",
    "qstr",
    "inode",
    "super_block",
    "file_system_type",
];
/// The programs with negligible cost.
const WATCHES: [Watch; 3] = [
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_exec", "sched_process_exec", "btf_trace_sched_process_exec"),
    ("on_end", "sched_process_exit", "btf_trace_sched_process_exit"),
];
/// The program that counts.
const COUNTING: [Watch; 1] = [("on_count", "sys_exit", "btf_trace_sys_exit")];
/// The programs that also measure times.
const TIMING: [Watch; 4] = [
    ("on_switch", "sched_switch", "btf_trace_sched_switch"),
    ("on_wakeup", "sched_wakeup", "btf_trace_sched_wakeup"),
    ("on_time", "sys_exit", "btf_trace_sys_exit"),
    ("on_enter", "sys_enter", "btf_trace_sys_enter"),
];
/// Programs that do what the last two were skipped for, where the kernel preempts programs.
const AGAIN: [Watch; 2] = [
    ("on_time_again", "sys_exit", "btf_trace_sys_exit"),
    ("on_enter_again", "sys_enter", "btf_trace_sys_enter"),
];
/// The programs at the ends of calls. Later ones do what earlier ones were skipped for.
const ENDS: [&str; 3] = ["on_count", "on_time", "on_time_again"];
/// Programs that are run once for each existing task.
const LOOKS: [&str; 2] = ["on_begin", "on_finish"];
/// Calls that return in the child too.
const FORKS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

/// A sum without calls.
const NOTHING: Sum = Sum {
    calls: 0,
    failed: 0,
    given: 0,
    timed: 0,
    wall_ns: 0,
    blocked_ns: 0,
    preempted_ns: 0,
    queued_ns: 0,
    longest_ns: 0,
    longest_end_ns: 0,
    longest_result: 0,
    longest_args: [0; 6],
    longest_pid: 0,
    longest_tid: 0,
    longest_text: [0; TEXT_BYTES as usize],
    buckets: [0; BUCKETS as usize],
};

// SAFETY: structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Sum {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::SumKey {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::ErrorKey {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::NameKey {}
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Name {}
}

/// Key of the sums, besides the call's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// Nothing.
    #[default]
    Call,
    /// Thread.
    Thread,
    /// Process.
    Process,
    /// The file of the descriptor in the first argument. Calls without one are not counted.
    File,
}

/// Facts on a call that the programs need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// Index of an argument that is a path or other text: kept for the longest call.
    pub text: Option<u8>,
    /// Whether its first argument is a descriptor.
    pub takes_file: bool,
}

/// Key of a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SummedBy {
    /// The call's number; `None`: a number that is not counted separately, or a 32-bit program's call.
    pub number: Option<u32>,
    /// Thread or process, or the device of the file; 0: all.
    pub who: u32,
    /// The file's inode; 0: all.
    pub file: u64,
}

/// The loaded programs. Dropping this ends them.
pub struct CallSums {
    bpf: Ebpf,
    sums: PerCpuArray<MapData, Sum>,
    apart: PerCpuHashMap<MapData, SumKey, Sum>,
    errors: HashMap<MapData, ErrorKey, u64>,
    known: Array<MapData, u32>,
    counters: PerCpuArray<MapData, u64>,
    names: HashMap<MapData, NameKey, Name>,
    followed: Followed,
    /// Storage of threads that are in a call.
    in_call: OwnedFd,
    per: Per,
    timed: bool,
    tax: CallOverhead,
    skipped_before: u64,
}

impl CallSums {
    /// Loads the programs, starts them, and measures their cost. No process is followed initially. `timed`: measure times too.
    /// `facts`: facts on calls, by number.
    pub fn load(timed: bool, per: Per, facts: impl Fn(u32) -> CallFacts) -> Result<Self, LoadError> {
        let watches = || WATCHES.iter().chain(if timed { &TIMING[..] } else { &COUNTING[..] });
        let machine = Machine::find(&STRUCTURES, watches())?;
        let bare = null_call_ns();
        let sigreturn = number(Abi::NATIVE, "rt_sigreturn").unwrap_or(SUM_OTHERS);
        let by = match per {
            Per::Call => PER_CALL,
            Per::Thread => PER_THREAD,
            Per::Process => PER_PROCESS,
            Per::File => PER_FILE,
        };
        let mut bpf = machine
            .loader()
            .override_global("per", &by, true)
            .override_global("sigreturn", &sigreturn, true)
            .map_max_entries("process_sums", 1)
            .allow_unsupported_maps()
            .load(OBJECT)
            .map_err(refused("maps"))?;
        for name in LOOKS {
            look(&mut bpf, name)
                .and_then(|program| verified(|| program.load("task", &machine.btf)).map_err(io::Error::other))
                .map_err(refused("a program"))?;
        }
        let again = if timed { machine.again(&AGAIN) } else { &[] };
        for watch in watches().chain(again) {
            machine.watch(&mut bpf, *watch)?;
        }
        let followed = Followed::take(&machine, &mut bpf)?;
        let mut sums = Self {
            sums: take(&mut bpf, "sums")?,
            apart: take(&mut bpf, "sums_apart")?,
            errors: take(&mut bpf, "errors")?,
            known: take(&mut bpf, "known")?,
            counters: take(&mut bpf, "counters")?,
            names: take(&mut bpf, "names")?,
            followed,
            in_call: take_descriptor(&mut bpf, "in_call")?,
            bpf,
            per,
            timed,
            tax: CallOverhead::default(),
            skipped_before: 0,
        };
        sums.know(facts).map_err(refused("what is known of calls"))?;
        // From here on, every call on the machine pays for it.
        let mut tax = CallOverhead { bare_ns: bare, attached_ns: null_call_ns(), ..CallOverhead::default() };
        sums.measure(&mut tax).map_err(refused("to measure what it costs"))?;
        sums.tax = tax;
        Ok(sums)
    }

    fn know(&mut self, facts: impl Fn(u32) -> CallFacts) -> io::Result<()> {
        let forks: Vec<u32> = FORKS.iter().filter_map(|name| number(Abi::NATIVE, name)).collect();
        for call in 0..SUM_OTHERS {
            let facts = facts(call);
            let text = facts.text.map_or(0, |argument| (u32::from(argument) + 1) << CALL_TEXT_SHIFT);
            let bit = |is: bool, bit: u32| if is { bit } else { 0 };
            let what = text | bit(forks.contains(&call), CALL_FORKS) | bit(facts.takes_file, CALL_TAKES_FILE);
            if what != 0 {
                self.known.set(call, what, 0).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    /// The measured cost.
    pub fn tax(&self) -> CallOverhead {
        self.tax
    }

    /// Whether times are measured.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// The sums so far. Times include the tracing overhead ([`CallOverhead::floor_ns`]).
    pub fn accounts(&self) -> Map<SummedBy, Account> {
        let mut accounts: Map<SummedBy, Account> = Map::new();
        let mut add = |key: SumKey, sums: &[Sum]| {
            for sum in sums.iter().filter(|sum| sum.calls > 0) {
                accounts.entry(by(key)).or_default().add(&self.account(sum));
            }
        };
        match self.per {
            Per::Call => (0..SUM_NUMBERS)
                .filter_map(|number| Some((number, self.sums.get(&number, 0).ok()?)))
                .for_each(|(number, sums)| add(SumKey { number, ..SumKey::default() }, &sums)),
            Per::Thread | Per::Process | Per::File => {
                self.apart.iter().filter_map(Result::ok).for_each(|(key, sums)| add(key, &sums));
            }
        }
        for (key, count) in self.errors.iter().filter_map(Result::ok) {
            if let Some(account) = accounts.get_mut(&by(key.sum)) {
                account.errors.insert(key.error, count);
            }
        }
        accounts
    }

    fn account(&self, sum: &Sum) -> Account {
        let times = self.timed.then(|| Times {
            calls: sum.timed,
            wall_ns: sum.wall_ns,
            blocked_ns: sum.blocked_ns,
            preempted_ns: sum.preempted_ns,
            queued_ns: sum.queued_ns,
            buckets: sum.buckets[..BUCKETS as usize].to_vec(),
            longest: (sum.timed > 0).then(|| longest(sum)),
        });
        Account { calls: sum.calls, failed: sum.failed, given: sum.given, times, ..Account::default() }
    }

    /// The names of files, by device and inode: the file system type, and the path in it or the end of that.
    pub fn file_names(&self) -> Map<(u32, u64), String> {
        let names = self.names.iter().filter_map(Result::ok);
        names.map(|(key, name)| ((key.device, key.file), path_of(&name))).collect()
    }

    /// The kernel's own counts.
    pub fn events(&self) -> TaskEvents {
        let of = |index| sum(&self.counters, index);
        TaskEvents {
            minor_faults: of(SUM_MINOR),
            major_faults: of(SUM_MAJOR),
            voluntary_switches: of(SUM_VOLUNTARY),
            involuntary_switches: of(SUM_INVOLUNTARY),
            ended: of(SUM_ENDED),
            lost: of(SUM_LOST),
            skipped: self.skipped().saturating_sub(self.skipped_before),
        }
    }

    fn skipped(&self) -> u64 {
        let of = |name| match self.bpf.program(name)? {
            Program::BtfTracePoint(program) => skipped(program.fd().ok()?.as_fd()),
            _ => None,
        };
        ENDS.into_iter().filter_map(of).min().unwrap_or(0)
    }

    /// Resets all counts.
    fn forget_sums(&mut self) -> io::Result<()> {
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
        let none = |cpus| PerCpuValues::try_from(vec![0; cpus]);
        for index in [SUM_MINOR, SUM_MAJOR, SUM_VOLUNTARY, SUM_INVOLUNTARY, SUM_ENDED, SUM_LOST] {
            self.counters.set(index, none(cpus)?, 0).map_err(io::Error::other)?;
        }
        for number in 0..SUM_NUMBERS {
            let sums = self.sums.get(&number, 0).map_err(io::Error::other)?;
            if sums.iter().any(|sum| sum.calls > 0) {
                let zero = PerCpuValues::try_from(vec![NOTHING; cpus])?;
                self.sums.set(number, zero, 0).map_err(io::Error::other)?;
            }
        }
        let apart: Vec<SumKey> = self.apart.keys().filter_map(Result::ok).collect();
        apart.iter().try_for_each(|key| self.apart.remove(key)).map_err(io::Error::other)?;
        let errors: Vec<ErrorKey> = self.errors.keys().filter_map(Result::ok).collect();
        errors.iter().try_for_each(|key| self.errors.remove(key)).map_err(io::Error::other)
    }

    /// Removes the mark that a thread, given by its pidfd, is in a call: marked threads count as followed.
    fn forget_in_call(&mut self, pid: BorrowedFd<'_>) {
        // The thread may not have been marked.
        let _ = u32::try_from(pid.as_raw_fd()).map(|pid| sys::delete(self.in_call.as_fd(), pid));
    }

    /// Runs a program once for each existing task.
    fn run_look(&mut self, name: &str) -> io::Result<()> {
        let program = look(&mut self.bpf, name)?;
        let link = program.attach().map_err(io::Error::other)?;
        let mut file =
            program.take_link(link).map_err(io::Error::other)?.into_file().map_err(io::Error::other)?;
        // The program writes no output.
        file.read_to_end(&mut Vec::new()).map(drop)
    }
}

fn look<'a>(bpf: &'a mut Ebpf, name: &str) -> io::Result<&'a mut Iter> {
    let program = bpf.program_mut(name).ok_or(io::ErrorKind::NotFound)?;
    program.try_into().map_err(io::Error::other)
}

fn by(key: SumKey) -> SummedBy {
    SummedBy { number: Some(key.number).filter(|&number| number != SUM_OTHERS), who: key.who, file: key.file }
}

fn text_of(part: &Part) -> String {
    let text = part.text.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The file system type and the path in it: `ext4:/etc/hosts`; `...` replaces the start of a deep path.
fn path_of(name: &Name) -> String {
    let parts: Vec<String> = name.parts.iter().map(text_of).collect();
    let whole = parts.iter().position(|part| part.is_empty() || part == "/");
    let mut path: Vec<&str> =
        parts[..whole.unwrap_or(parts.len())].iter().rev().map(String::as_str).collect();
    if whole.is_none() {
        path.insert(0, "...");
    }
    format!("{}:/{}", text_of(&name.system), path.join("/"))
}

fn longest(sum: &Sum) -> Longest {
    Longest {
        ns: sum.longest_ns,
        end_ns: sum.longest_end_ns,
        result: sum.longest_result,
        args: sum.longest_args,
        pid: sum.longest_pid,
        tid: sum.longest_tid,
        text: {
            let text = sum.longest_text.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        },
    }
}

impl TargetObserver for CallSums {
    fn follow_all(&mut self) -> io::Result<()> {
        self.followed.reset()
    }

    fn only_followed(&mut self) -> io::Result<()> {
        self.followed.only_some()
    }

    fn follow(&mut self, pid: BorrowedFd<'_>, from_exec: bool) -> io::Result<()> {
        self.followed.add_as(pid, if from_exec { COUNT_FROM_EXEC } else { COUNT_NOW })
    }

    fn begin(&mut self) -> io::Result<()> {
        self.run_look("on_begin")?;
        self.skipped_before = self.skipped();
        self.followed.begin()
    }

    fn end(&mut self) -> io::Result<()> {
        self.run_look("on_finish")?;
        self.followed.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        let mut part = Part::default();
        part.text[..text.len()].copy_from_slice(text.as_bytes());
        part
    }

    #[test]
    fn paths_are_put_together_from_their_ends() {
        let mut name = Name { system: part("ext4"), ..Name::default() };
        (name.parts[0], name.parts[1], name.parts[2]) = (part("hosts"), part("etc"), part("/"));
        assert_eq!(path_of(&name), "ext4:/etc/hosts");
        name.parts = [part("deep"); 8];
        assert_eq!(path_of(&name), format!("ext4:/...{}", "/deep".repeat(8)));
        let pipe = Name { system: part("pipefs"), ..Name::default() };
        assert_eq!(path_of(&pipe), "pipefs:/");
    }
}
