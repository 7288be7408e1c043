//! Loading of any object of programs: the kernel's types, a ring of the right size, programs at tracepoints, and
//! access to maps.
//!
//! Elsewhere: the purpose of the programs.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::maps::{Map, MapData, PerCpuArray};
use aya::programs::iter::Iter;
use aya::programs::{BtfTracePoint, Program};
use aya::{Btf, Ebpf, EbpfLoader, Endianness};
use plumb_process::Host;

use crate::btf::Types;
use crate::refusal::{LoadError, missing, refused};
use crate::support::{self, support};
use crate::switch::Probes;
use crate::verified::verified;

/// The object of a source in `bpf/`, for this architecture.
macro_rules! object {
    ($name:literal) => {
        $crate::object::of_architecture!($name, "x86_64", "aarch64")
    };
}
macro_rules! of_architecture {
    ($name:literal, $($architecture:literal),*) => {{
        $(#[cfg(target_arch = $architecture)]
        {
            aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/", $architecture, "/", $name, ".bpf.o"))
        })*
    }};
}
pub(crate) use {object, of_architecture};

/// Bytes of a ring per CPU.
pub(crate) const RING: u32 = 1 << 20;
/// Smallest number of CPUs' rings, and the most bytes of a ring.
const RING_BOUNDS: (u32, u32) = (4, 64 << 20);

/// The kernel types of the context of a program that is run for each thread.
const EACH_TASK: [&str; 2] = ["bpf_iter_task", "bpf_iter__task"];

/// A variable of kernels that preempt programs at tracepoints: Linux 7.0 and newer (commit a46023d5616e, kernel/tracepoint.c). A program is skipped for
/// all threads of a CPU on which a preempted thread is in it.
const PREEMPTION: &str = "tracepoint_srcu_srcu_data";

/// A program at a tracepoint: its name, the tracepoint, and the name of its type.
pub(crate) type Watch = (&'static str, &'static str, &'static str);

/// The machine that programs are loaded on.
pub(crate) struct Machine {
    /// The kernel's types that the programs refer to.
    pub btf: Btf,
    /// Number of CPUs, up to the last one online.
    pub cpus: u32,
    /// Index of perf events among the cgroup controllers, if the kernel has both.
    pub perf_controller: Option<u32>,
    /// Whether programs at tracepoints can be preempted.
    preempts_programs: bool,
    /// Made before these types were read: aya reads all of the kernel's types when it makes a loader, even if it is given others, and both together take
    /// 25 MB.
    loader: Cell<Option<EbpfLoader<'static>>>,
}

impl Machine {
    /// Checks that programs can be loaded. `structures`: the kernel structures that they read; `watches`: their tracepoints.
    pub fn find<'a>(
        structures: &[&'a str],
        watches: impl IntoIterator<Item = &'a Watch>,
    ) -> Result<Self, LoadError> {
        let host = Host::read();
        support(&host).map_err(LoadError::Unsupported)?;
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        let types = Types::read().map_err(refused("to show its types"))?;
        support::helpers(&types).map_err(LoadError::Unsupported)?;
        let watches = watches.into_iter().map(|&(_, _, name)| name);
        let names: Vec<&str> = structures.iter().copied().chain(watches).chain(EACH_TASK).collect();
        let only = types.only(&names);
        let perf_controller = types.constant("cgroup_subsys_id", "perf_event_cgrp_id");
        let [preempts_programs] = types.have([PREEMPTION]);
        drop(types);
        let btf = Btf::parse(&only, Endianness::default());
        let btf = btf.map_err(refused("types that make sense"))?;
        let cpus = host.cpus.iter().max().map_or(1, |&last| last.saturating_add(1));
        Ok(Self { btf, cpus, perf_controller, preempts_programs, loader: Cell::new(Some(loader)) })
    }

    /// A loader for an object on this machine.
    pub fn loader(&self) -> EbpfLoader<'_> {
        let mut loader: EbpfLoader<'_> = self.loader.take().unwrap_or_default();
        loader.btf(Some(&self.btf));
        loader
    }

    /// Bytes of a ring, from the bytes per CPU.
    pub fn ring(&self, each: u32) -> u32 {
        let (least, most) = RING_BOUNDS;
        each.saturating_mul(self.cpus.max(least)).min(most).next_power_of_two()
    }

    /// Loads and starts a program at a tracepoint. To be called before maps are taken from the object: programs refer to
    /// them by descriptors, some of which are closed by that.
    pub fn watch(&self, bpf: &mut Ebpf, watch: Watch) -> Result<(), LoadError> {
        let (name, event, _) = watch;
        let program = self.load_watch(bpf, watch)?;
        program.attach().map_err(refused(format!("the program {name} at {event}")))?;
        Ok(())
    }

    /// As [`watch`](Self::watch), for a program that can be detached.
    pub fn watch_by(&self, bpf: &mut Ebpf, watch: Watch, probes: &mut Probes) -> Result<(), LoadError> {
        let (name, event, _) = watch;
        let program = self.load_watch(bpf, watch)?.fd().map_err(refused(name))?;
        let program = program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?;
        probes.add(program).map_err(refused(format!("the program {name} at {event}")))
    }

    /// Of programs that do what others were skipped for: all where the kernel preempts programs, or else none. To be attached after the others, as the
    /// kernel runs programs in the order in which they were attached.
    pub fn again<'a>(&self, watches: &'a [Watch]) -> &'a [Watch] {
        if self.preempts_programs { watches } else { &[] }
    }

    /// Loads such a program without starting it. To be called before maps are taken, as well.
    pub fn load_watch<'a>(
        &self,
        bpf: &'a mut Ebpf,
        (name, event, _): Watch,
    ) -> Result<&'a mut BtfTracePoint, LoadError> {
        let program = bpf.program_mut(name).ok_or_else(|| missing(name))?;
        let program: &mut BtfTracePoint = program.try_into().map_err(refused(name))?;
        verified(|| program.load(event, &self.btf)).map_err(refused(format!("the program {name}")))?;
        Ok(program)
    }
}

impl Machine {
    /// Loads a program that is run for each thread ([`each_task`]). To be called before maps are taken, as well.
    pub fn load_each_task(&self, bpf: &mut Ebpf, name: &'static str) -> Result<OwnedFd, LoadError> {
        let program: &mut Iter =
            bpf.program_mut(name).ok_or_else(|| missing(name))?.try_into().map_err(refused(name))?;
        verified(|| program.load("task", &self.btf)).map_err(refused(format!("the program {name}")))?;
        let program = program.fd().map_err(refused(name))?;
        program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))
    }
}

/// Attaches a loaded program that runs once for each thread as the file is read.
pub(crate) fn each_task(bpf: &mut Ebpf, name: &'static str) -> Result<File, LoadError> {
    let program: &mut Iter =
        bpf.program_mut(name).ok_or_else(|| missing(name))?.try_into().map_err(refused(name))?;
    let link = program.attach().and_then(|link| program.take_link(link));
    link.map_err(refused(format!("the program {name}")))?.into_file().map_err(refused(name))
}

/// Loads a program that is attached by its descriptor.
pub(crate) fn load_program(bpf: &mut Ebpf, name: &'static str) -> Result<OwnedFd, LoadError> {
    let program = bpf.program_mut(name).ok_or_else(|| missing(name))?;
    match program {
        Program::PerfEvent(program) => verified(|| program.load()),
        Program::RawTracePoint(program) => verified(|| program.load()),
        Program::UProbe(program) => verified(|| program.load()),
        _ => return Err(missing(name)),
    }
    .map_err(refused(format!("the program {name}")))?;
    let program = program.fd().map_err(refused(name))?;
    program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))
}

/// Takes a map from the object.
pub(crate) fn take<M: TryFrom<Map, Error: std::error::Error + Send + Sync + 'static>>(
    bpf: &mut Ebpf,
    name: &'static str,
) -> Result<M, LoadError> {
    bpf.take_map(name).ok_or_else(|| missing(name))?.try_into().map_err(refused(format!("the map {name}")))
}

/// Takes the descriptor of a map for this crate's own system calls.
pub(crate) fn take_descriptor(bpf: &mut Ebpf, name: &'static str) -> Result<OwnedFd, LoadError> {
    let map = match bpf.take_map(name) {
        Some(
            Map::ArrayOfMaps(map) | Map::HashMap(map) | Map::PerfEventArray(map) | Map::Unsupported(map),
        ) => map,
        _ => return Err(missing(name)),
    };
    map.fd().as_fd().try_clone_to_owned().map_err(refused("a descriptor"))
}

/// The number of times that the kernel skipped a program because it was running on that CPU: its `recursion_misses`.
pub(crate) fn skipped(program: BorrowedFd<'_>) -> Option<u64> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse().ok())
}

/// The sum of a counter over all CPUs.
pub(crate) fn sum(counters: &PerCpuArray<MapData, u64>, index: u32) -> u64 {
    counters.get(&index, 0).map_or(0, |values| values.iter().sum())
}
