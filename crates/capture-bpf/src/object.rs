//! What every object of programs takes to be loaded: the kernel's types, a ring of the right size, programs at tracepoints, and
//! maps to be talked to.
//!
//! Not here: what the programs are for.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::{Map, MapData, PerCpuArray};
use aya::programs::iter::Iter;
use aya::programs::{BtfTracePoint, Program};
use aya::{Btf, Ebpf, EbpfLoader, Endianness};
use plumb_process::Host;

use crate::btf::Types;
use crate::refusal::{LoadError, missing, refused};
use crate::support::{self, support};
use crate::switch::Probes;

/// Bytes of a ring for each processor.
pub(crate) const RING: u32 = 1 << 20;
/// As many rings' bytes at least, and the most bytes of one.
const RING_BOUNDS: (u32, u32) = (4, 64 << 20);

/// What a program that is called for each thread is told, among the kernel's types.
const EACH_TASK: [&str; 2] = ["bpf_iter_task", "bpf_iter__task"];

/// A program that watches something: its name, the tracepoint, and the name of its type.
pub(crate) type Watch = (&'static str, &'static str, &'static str);

/// The machine that programs are loaded on.
pub(crate) struct Machine {
    /// The kernel's types that the programs name.
    pub btf: Btf,
    /// Processors, counted to the last that is online.
    pub cpus: u32,
    /// The place of perf events among the controllers of control groups, if the kernel has both.
    pub perf_controller: Option<u32>,
    /// Made before these types were read: aya reads all of the kernel's as it makes one, also where it is given ours, and the two together are 25
    /// MB.
    loader: Cell<Option<EbpfLoader<'static>>>,
}

impl Machine {
    /// Makes sure that programs can be loaded. `structures`: those of the kernel that they look into; `watches`: what they watch.
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
        drop(types);
        let btf = Btf::parse(&only, Endianness::default());
        let btf = btf.map_err(refused("types that make sense"))?;
        let cpus = host.cpus.iter().max().map_or(1, |&last| last.saturating_add(1));
        Ok(Self { btf, cpus, perf_controller, loader: Cell::new(Some(loader)) })
    }

    /// What loads an object on it.
    pub fn loader(&self) -> EbpfLoader<'_> {
        let mut loader: EbpfLoader<'_> = self.loader.take().unwrap_or_default();
        loader.btf(Some(&self.btf));
        loader
    }

    /// Bytes of a ring, from those for each processor.
    pub fn ring(&self, each: u32) -> u32 {
        let (least, most) = RING_BOUNDS;
        each.saturating_mul(self.cpus.max(least)).min(most).next_power_of_two()
    }

    /// Loads and starts a program that watches something. To be done before maps are taken from the object: programs refer to
    /// them by descriptors, some of which end with that.
    pub fn watch(&self, bpf: &mut Ebpf, watch: Watch) -> Result<(), LoadError> {
        let (name, event, _) = watch;
        let program = self.load_watch(bpf, watch)?;
        program.attach().map_err(refused(format!("the program {name} at {event}")))?;
        Ok(())
    }

    /// Likewise, and starts it so that it can be taken off.
    pub fn watch_by(&self, bpf: &mut Ebpf, watch: Watch, probes: &mut Probes) -> Result<(), LoadError> {
        let (name, event, _) = watch;
        let program = self.load_watch(bpf, watch)?.fd().map_err(refused(name))?;
        let program = program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?;
        probes.add(program).map_err(refused(format!("the program {name} at {event}")))
    }

    /// Loads it only. To be done before maps are taken, likewise.
    pub fn load_watch<'a>(
        &self,
        bpf: &'a mut Ebpf,
        (name, event, _): Watch,
    ) -> Result<&'a mut BtfTracePoint, LoadError> {
        let program = bpf.program_mut(name).ok_or_else(|| missing(name))?;
        let program: &mut BtfTracePoint = program.try_into().map_err(refused(name))?;
        program.load(event, &self.btf).map_err(refused(format!("the program {name}")))?;
        Ok(program)
    }
}

impl Machine {
    /// Loads a program that is called for each thread ([`each_task`]). To be done before maps are taken, likewise.
    pub fn load_each_task(&self, bpf: &mut Ebpf, name: &'static str) -> Result<OwnedFd, LoadError> {
        let program: &mut Iter =
            bpf.program_mut(name).ok_or_else(|| missing(name))?.try_into().map_err(refused(name))?;
        program.load("task", &self.btf).map_err(refused(format!("the program {name}")))?;
        let program = program.fd().map_err(refused(name))?;
        program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))
    }
}

/// Has a loaded program called for each thread, once, as the file is read.
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
        Program::PerfEvent(program) => program.load(),
        Program::RawTracePoint(program) => program.load(),
        Program::UProbe(program) => program.load(),
        _ => return Err(missing(name)),
    }
    .map_err(refused(format!("the program {name}")))?;
    let program = program.fd().map_err(refused(name))?;
    program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))
}

/// A map of the object.
pub(crate) fn take<M: TryFrom<Map, Error: std::error::Error + Send + Sync + 'static>>(
    bpf: &mut Ebpf,
    name: &'static str,
) -> Result<M, LoadError> {
    bpf.take_map(name).ok_or_else(|| missing(name))?.try_into().map_err(refused(format!("the map {name}")))
}

/// The descriptor of a map that is used by calls of our own.
pub(crate) fn take_descriptor(bpf: &mut Ebpf, name: &'static str) -> Result<OwnedFd, LoadError> {
    let map = match bpf.take_map(name) {
        Some(
            Map::ArrayOfMaps(map) | Map::HashMap(map) | Map::PerfEventArray(map) | Map::Unsupported(map),
        ) => map,
        _ => return Err(missing(name)),
    };
    map.fd().as_fd().try_clone_to_owned().map_err(refused("a descriptor"))
}

/// A counter, of all processors together.
pub(crate) fn sum(counters: &PerCpuArray<MapData, u64>, index: u32) -> u64 {
    counters.get(&index, 0).map_or(0, |values| values.iter().sum())
}
