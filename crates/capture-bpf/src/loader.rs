//! Loads the programs, and passes the recorder's settings to them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use plumb_capture_api::{
    Counted, FallbackEvents, KernelUnwinder, Measure, Messages, OtherPrograms, ProbeCounts, ProbeSpec,
    UnwindFallbackStats, UnwindInfoRef,
};

use crate::chunks::Chunks;
use crate::follow::Followed;
use crate::layouts::Layouts;
use crate::measure::{self, Measured, Measurement};
use crate::object::{Machine, RING, Watch, load_program, sum, take, take_descriptor};
use crate::other_programs::Others;
use crate::places::{AtPlaces, Places};
use crate::refusal::{LoadError, missing, refused};
use crate::resident::Resident;
use crate::wire::{
    COMM_BYTES, COUNTER_OTHERS, COUNTER_WHY, CopiedText, CopiedTexts, Count, CountKey, DRAFTS, File,
    ScriptLayout, Space, WHY_ANONYMOUS, WHY_EXEC, WHY_NESTED, WHY_NO_REGISTER, WHY_NO_TABLE,
    WHY_NOT_ADVANCING, WHY_ODD, WHY_RING_FULL, WHY_ROOT, WHY_TOO_DEEP, WHY_UNMAPPED, WHY_UNREADABLE,
};
use crate::{Attach, messages, sys};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = crate::object::object!("capture");
/// The programs without frames of interpreted programs, which alone may be rejected by a kernel.
static PLAIN: &[u8] = crate::object::object!("capture_plain");
/// The kernel structures that the programs read (bpf/kernel.h).
const STRUCTURES: [&str; 21] = [
    "task_struct",
    "uprobe_task",
    "return_instance",
    "sched_info",
    "thread_info",
    "thread_struct",
    "sched_entity",
    "signal_struct",
    "mm_struct",
    "mm_context_t",
    "vm_area_struct",
    "file",
    "inode",
    "super_block",
    "pt_regs",
    "maple_tree",
    "ma_state",
    "css_set",
    "cgroup_subsys_state",
    "cgroup",
    "kernfs_node",
];
/// The programs that track processes.
const WATCHES: [Watch; 4] = [
    ("on_exec", "sched_process_exec", "btf_trace_sched_process_exec"),
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_exit", "sched_process_exit", "btf_trace_sched_process_exit"),
    ("on_free", "sched_process_free", "btf_trace_sched_process_free"),
];
/// The program that tracks mappings: Linux 6.1 and newer.
const MAPS: Watch = ("on_map", "ma_write", "btf_trace_ma_write");
/// Counts read from the kernel at once.
const BATCH: usize = 1024;

// SAFETY (all): structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    use super::{CopiedTexts, Count, CountKey, File, ScriptLayout};
    // SAFETY: see above.
    unsafe impl aya::Pod for CopiedTexts {}
    // SAFETY: see above.
    unsafe impl aya::Pod for File {}
    // SAFETY: as above.
    unsafe impl aya::Pod for ScriptLayout {}
    // SAFETY: see above.
    unsafe impl aya::Pod for CountKey {}
    // SAFETY: see above.
    unsafe impl aya::Pod for Count {}
}

/// Options of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Whether equal stacks are counted in the kernel. Otherwise each sample is sent with its time.
    pub counting: bool,
    /// Memory limit for tables, in bytes.
    pub table_memory: usize,
    /// Bytes of the ring per CPU, at least four CPUs' worth. Samples for which it is full come with a stack copy.
    pub ring_memory: u32,
    /// A quantity to measure, instead of sampling unless that is requested as well.
    pub measure: Option<Measured>,
    /// Whether to sample in addition to measuring.
    pub samples_beside: bool,
    /// Whether tracepoints and functions of programs are probed.
    pub places: bool,
    /// Whether to report the control group in which each process ends, if it is a container's.
    pub tells_cgroups: bool,
    /// Whether to look for programs of other tools that suppress samples, for which the kernel has to account each program's run time.
    pub watches_others: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        let (measure, places, tells_cgroups) = Default::default();
        Self {
            counting: true,
            table_memory: 64 << 20,
            ring_memory: RING,
            measure,
            samples_beside: false,
            places,
            tells_cgroups,
            watches_others: true,
        }
    }
}

/// The loaded programs. Dropping this ends them.
pub struct Programs {
    // Keeps programs and links.
    pub(crate) bpf: Ebpf,
    program: Option<OwnedFd>,
    ring: RingBuf<MapData>,
    tables: Resident,
    by_process: ProcessMaps,
    pub(crate) counters: PerCpuArray<MapData, u64>,
    counts: OwnedFd,
    pub(crate) followed: Followed,
    awaited: Array<MapData, [u8; COMM_BYTES as usize]>,
    pub(crate) measurement: Option<Measurement>,
    places: Option<Places>,
    loaded: Loaded,
    others: Option<Others>,
    damaged: u64,
}

/// Maps by process ID.
struct ProcessMaps {
    /// The mappings that unwinding has used.
    spaces: HashMap<MapData, u32, [u8; size_of::<Space>()]>,
    /// Memory with copies of files' text.
    copied_texts: HashMap<MapData, u32, CopiedTexts>,
    /// An address in a file with an interpreter.
    interpreted: HashMap<MapData, u32, u64>,
}

/// The form in which the programs were loaded.
struct Loaded {
    counting: bool,
    /// Whether they track changes of mappings themselves.
    watches_maps: bool,
    /// The reason for missing frames of interpreted programs.
    without_scripts: Option<LoadError>,
}

impl Programs {
    /// Loads the programs and starts those that track processes. Samples come once events are attached.
    pub fn load(options: LoadOptions) -> Result<Self, LoadError> {
        let watches = WATCHES.iter().chain([&MAPS]).chain(&measure::WATCHES);
        let machine = Machine::find(&STRUCTURES, watches)?;
        match Self::load_object(&machine, options, OBJECT) {
            Err(error @ LoadError::Refused(_)) => {
                let plain = Self::load_object(&machine, options, PLAIN);
                plain.map(|mut programs| {
                    programs.loaded.without_scripts = Some(error);
                    programs
                })
            }
            result => result,
        }
    }

    fn load_object(machine: &Machine, options: LoadOptions, object: &[u8]) -> Result<Self, LoadError> {
        let (ring, cpus) = (machine.ring(options.ring_memory), machine.cpus);
        let counting = u32::from(options.counting);
        let settings = measure::Settings::of(options.measure);
        let mut loader = machine.loader();
        settings.set(&mut loader);
        let mut bpf = loader
            .override_global("counting", &counting, true)
            .override_global("ring_bytes", &ring, true)
            // Only some architectures have pages of several sizes.
            .override_global("page_shift", &plumb_process::usage::page_size().trailing_zeros(), false)
            .override_global("tells_cgroups", &u32::from(options.tells_cgroups), true)
            .override_global("has_controller", &u32::from(machine.perf_controller.is_some()), true)
            .override_global("perf_controller", &machine.perf_controller.unwrap_or(0), true)
            .map_max_entries("ring", ring)
            .map_max_entries("drafts", cpus.saturating_mul(DRAFTS))
            .map_max_entries("caches", cpus)
            .allow_unsupported_maps()
            .load(object)
            .map_err(refused("maps"))?;
        for program in WATCHES {
            machine.watch(&mut bpf, program)?;
        }
        let watches_maps = machine.watch(&mut bpf, MAPS).is_ok();
        let measurement = options.measure.map(|measured| measured.load(machine, &mut bpf)).transpose()?;
        let program = match measurement {
            Some(_) if !options.samples_beside => None,
            _ => Some(load_program(&mut bpf, "sample")?),
        };
        let at_places = options.places.then(|| AtPlaces::load(&mut bpf));
        let followed = Followed::take(machine, &mut bpf)?;
        let chunks = Chunks::new(take_descriptor(&mut bpf, "chunks")?, options.table_memory);
        Ok(Self {
            program,
            measurement,
            ring: take(&mut bpf, "ring")?,
            by_process: ProcessMaps {
                spaces: take(&mut bpf, "spaces")?,
                copied_texts: take(&mut bpf, "copied_texts")?,
                interpreted: take(&mut bpf, "interpreted")?,
            },
            tables: Resident::new(take(&mut bpf, "files")?, chunks, Layouts::new(take(&mut bpf, "layouts")?)),
            counters: take(&mut bpf, "counters")?,
            counts: take_descriptor(&mut bpf, "counts")?,
            followed,
            awaited: take(&mut bpf, "awaited")?,
            places: at_places.map(|programs| Places::take(&mut bpf, programs, cpus)).transpose()?,
            loaded: Loaded { counting: options.counting, watches_maps, without_scripts: None },
            others: options.watches_others.then(Others::default),
            damaged: 0,
            bpf,
        })
    }

    /// The kernel's reason for rejecting the programs with frames of interpreted programs, if so: the others are loaded then.
    pub fn take_without_scripts(&mut self) -> Option<LoadError> {
        self.loaded.without_scripts.take()
    }

    /// Whether changes of mappings are tracked immediately.
    pub(crate) fn watches_maps(&self) -> bool {
        self.loaded.watches_maps
    }

    /// Attaches the sampling program, if there is one.
    pub(crate) fn try_attaching(&self, attach: Attach) -> io::Result<()> {
        self.program.as_ref().map_or(Ok(()), |program| attach(program.as_fd()))
    }

    /// Whether tracepoints and functions can be sampled.
    pub(crate) fn take_places(self) -> (Result<(), LoadError>, Result<(), LoadError>) {
        let unasked = || Err(missing("places"));
        self.places.map_or((unasked(), unasked()), Places::tried)
    }

    fn counter(&self, index: u32) -> u64 {
        sum(&self.counters, index)
    }
}

impl KernelUnwinder for Programs {
    fn program(&self) -> Option<BorrowedFd<'_>> {
        self.program.as_ref().map(AsFd::as_fd)
    }

    fn wakes(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    fn only_followed(&mut self) -> io::Result<()> {
        self.followed.only_some()
    }

    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add(pid)
    }

    fn watch(&mut self, watched: &ProbeSpec<'_>) -> io::Result<FallbackEvents> {
        let places = self.places.as_mut().ok_or_else(|| io::Error::other("no places are watched"))?;
        places.watch(watched)
    }

    fn at_function(&self) -> Option<BorrowedFd<'_>> {
        self.places.as_ref()?.at_function().map(AsFd::as_fd)
    }

    fn unwatch(&mut self) -> io::Result<()> {
        self.places.as_mut().map_or(Ok(()), Places::stop)
    }

    fn probe_counts(&self, number: usize) -> Option<ProbeCounts> {
        self.places.as_ref()?.probe_counts(number)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.followed.begin()
    }

    fn await_comm(&mut self, comm: &[u8]) -> io::Result<()> {
        let mut name = [0; COMM_BYTES as usize];
        name.iter_mut().zip(comm.iter().take(COMM_BYTES as usize - 1)).for_each(|(to, from)| *to = *from);
        self.awaited.set(0, name, 0).map_err(io::Error::other)?;
        self.followed.only_some()
    }

    fn take(&mut self, into: &mut Messages) {
        while let Some(item) = self.ring.next() {
            if messages::read(&item, into).is_none() {
                self.damaged += 1;
            }
        }
        self.tables.give_back();
    }

    fn take_counts(&mut self, each: &mut dyn FnMut(Counted)) {
        if !self.loaded.counting {
            return;
        }
        let mut keys = vec![CountKey::default(); BATCH];
        let mut values = vec![Count::default(); BATCH];
        let mut position = None;
        while let Ok((taken, more)) = sys::take(self.counts.as_fd(), &mut position, &mut keys, &mut values) {
            for (key, count) in keys.iter().zip(&values).take(taken) {
                each(Counted {
                    key: key.key,
                    pid: key.pid,
                    tid: key.tid,
                    samples: count.samples,
                    period: count.period,
                    time_ns: count.time_ns,
                });
            }
            if !more {
                break;
            }
        }
    }

    fn can_load(&self) -> bool {
        self.tables.can_load()
    }

    fn supply(&mut self, number: u32, lent: Option<UnwindInfoRef<'_>>) -> bool {
        self.tables.supply(number, lent.as_ref())
    }

    fn mark_memory(&mut self, number: u32) {
        self.tables.mark_memory(number);
    }

    fn add_interpreter(&mut self, pid: u32, address: u64) {
        // If the map is full, its stacks show the interpreter's native frames.
        let _ = self.by_process.interpreted.insert(pid, address, 0);
    }

    fn add_copied_text(&mut self, pid: u32, start: u64, file: usize, offset: u64) {
        let Some(number) = self.tables.number_of_copy(file) else { return };
        let mut texts = self.by_process.copied_texts.get(&pid, 0).unwrap_or_default();
        let place = texts.all.iter_mut().find(|text| text.start == start || text.file == 0);
        if let Some(place) = place {
            *place = CopiedText { start, offset, file: number, zero: 0 };
            // If the map is full, its stacks are copied.
            let _ = self.by_process.copied_texts.insert(pid, texts, 0);
            // The programs remember this memory as having no file.
            let _ = self.by_process.spaces.remove(&pid);
        }
    }

    fn forget(&mut self, pid: u32) {
        // Otherwise it is already forgotten, and was looked up again since.
        if !self.loaded.watches_maps {
            // The entry may not exist.
            let _ = self.by_process.spaces.remove(&pid);
        }
    }

    fn other_programs(&mut self, now: bool) -> OtherPrograms {
        self.others.as_mut().map(|others| others.look(now)).unwrap_or_default()
    }

    fn handed_over(&self) -> UnwindFallbackStats {
        let why = |why: u32| self.counter(COUNTER_WHY + why);
        UnwindFallbackStats {
            walked: why(WHY_ROOT),
            others: self.counter(COUNTER_OTHERS),
            reasons: vec![
                ("in a mapping not known yet", why(WHY_UNMAPPED)),
                ("in memory without a file", why(WHY_ANONYMOUS)),
                ("in a file without a table yet", why(WHY_NO_TABLE)),
                ("by rules that take more", why(WHY_ODD)),
                ("on stack memory not readable", why(WHY_UNREADABLE) + why(WHY_NO_REGISTER)),
                ("on a stack that does not advance", why(WHY_NOT_ADVANCING)),
                ("on a stack too deep", why(WHY_TOO_DEEP)),
                ("in the middle of an exec", why(WHY_EXEC)),
                ("within others", why(WHY_NESTED)),
                ("while the ring was full", why(WHY_RING_FULL)),
            ],
            unseen: self.places.as_ref().map_or(0, Places::unseen),
            table_bytes: self.tables.bytes() as u64,
            evicted: self.tables.evicted(),
            damaged: self.damaged,
        }
    }

    fn measure(&mut self) -> Option<&mut dyn Measure> {
        self.measurement()
    }
}
