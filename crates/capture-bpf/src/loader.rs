//! The programs, loaded, and what the recorder tells them.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, PerfEvent};
use aya::{Btf, Ebpf, EbpfLoader, Endianness};
use plumb_capture_perf::{Assistant, Counted, HandedOver, Host, Lent, Messages};

use crate::btf::Types;
use crate::chunks::Chunks;
use crate::resident::Resident;
use crate::support::{self, Unsupported, support};
use crate::wire::{
    COMM_BYTES, COUNTER_OTHERS, COUNTER_RING_FULL, COUNTER_WALKED, COUNTER_WHY, Control, Count, CountKey,
    File, Space, WHY_ANONYMOUS, WHY_EXEC, WHY_NO_REGISTER, WHY_NO_TABLE, WHY_NOT_ADVANCING, WHY_ODD,
    WHY_TOO_DEEP, WHY_UNMAPPED, WHY_UNREADABLE,
};
use crate::{messages, sys};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/capture.bpf.o");
/// The structures of the kernel that the programs look into (bpf/kernel.h).
const STRUCTURES: [&str; 12] = [
    "task_struct",
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
];
/// The programs that watch processes: name, tracepoint, the name of its type.
const WATCHES: [(&str, &str, &str); 4] = [
    ("on_exec", "sched_process_exec", "btf_trace_sched_process_exec"),
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_exit", "sched_process_exit", "btf_trace_sched_process_exit"),
    ("on_free", "sched_process_free", "btf_trace_sched_process_free"),
];
/// Likewise for mappings: Linux 6.1 and newer.
const MAPS: (&str, &str, &str) = ("on_map", "ma_write", "btf_trace_ma_write");
/// The ring: bytes for each processor, and the least and the most of all.
const RING: (u32, u32, u32) = (1 << 20, 4 << 20, 64 << 20);
/// Counts taken out of the kernel at once.
const BATCH: usize = 1024;

// SAFETY (all): structures of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    use super::{Control, Count, CountKey, File};
    // SAFETY: see above.
    unsafe impl aya::Pod for File {}
    // SAFETY: see above.
    unsafe impl aya::Pod for CountKey {}
    // SAFETY: see above.
    unsafe impl aya::Pod for Count {}
    // SAFETY: see above.
    unsafe impl aya::Pod for Control {}
}

/// How the programs are to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Count equal stacks in the kernel. Otherwise each sample is sent with its time.
    pub counting: bool,
    /// The most memory that tables may take, in bytes.
    pub table_memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { counting: true, table_memory: 64 << 20 }
    }
}

/// Why the programs could not be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// This machine or user can't have them.
    Unsupported(Unsupported),
    /// The kernel refused: doing what, and what it said.
    Refused(&'static str, Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unsupported(why) => why.fmt(f),
            LoadError::Refused(what, error) => {
                write!(f, "the kernel refuses {what}: {error}")?;
                let mut source = error.source();
                while let Some(error) = source {
                    write!(f, ": {error}")?;
                    source = error.source();
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for LoadError {}

pub(crate) fn refused<E: std::error::Error + Send + Sync + 'static>(
    what: &'static str,
) -> impl FnOnce(E) -> LoadError {
    move |error| LoadError::Refused(what, Box::new(error))
}

/// The loaded programs. Dropping this ends them.
pub struct Programs {
    // Keeps programs and links.
    _bpf: Ebpf,
    program: OwnedFd,
    ring: RingBuf<MapData>,
    tables: Resident,
    spaces: HashMap<MapData, u32, [u8; size_of::<Space>()]>,
    counters: PerCpuArray<MapData, u64>,
    counts: OwnedFd,
    followed: OwnedFd,
    controls: Array<MapData, Control>,
    control: Control,
    awaited: Array<MapData, [u8; COMM_BYTES as usize]>,
    counting: bool,
    /// The kernel's programs see mappings change themselves.
    watches_maps: bool,
    damaged: u64,
}

impl Programs {
    /// Loads the programs and starts those that watch processes. Samples come once events are attached.
    pub fn load(options: Options) -> Result<Self, LoadError> {
        let host = Host::read();
        support(&host).map_err(LoadError::Unsupported)?;
        let types = Types::read().map_err(refused("to show its types"))?;
        support::helpers(&types).map_err(LoadError::Unsupported)?;
        let names = WATCHES.iter().chain([&MAPS]).map(|&(_, _, name)| name);
        let names: Vec<&str> = STRUCTURES.into_iter().chain(names).collect();
        let btf = Btf::parse(&types.only(&names), Endianness::default());
        let btf = btf.map_err(refused("types that make sense"))?;
        let cpus = host.cpus.iter().max().map_or(1, |&last| last.saturating_add(1));
        let ring = cpus.saturating_mul(RING.0).clamp(RING.1, RING.2).next_power_of_two();
        let counting = u32::from(options.counting);
        let mut bpf = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("counting", &counting, true)
            .override_global("ring_bytes", &ring, true)
            .map_max_entries("ring", ring)
            .map_max_entries("drafts", cpus)
            .map_max_entries("caches", cpus)
            .map_max_entries("windows", cpus)
            .allow_unsupported_maps()
            .load(OBJECT)
            .map_err(refused("maps"))?;
        for (name, event, _) in WATCHES {
            watch(&mut bpf, name, event, &btf)?;
        }
        let watches_maps = watch(&mut bpf, MAPS.0, MAPS.1, &btf).is_ok();
        let program = bpf.program_mut("sample").ok_or_else(|| missing("sample"))?;
        let program: &mut PerfEvent = program.try_into().map_err(refused("the sampling program"))?;
        program.load().map_err(refused("the sampling program"))?;
        let program = program.fd().map_err(refused("the sampling program"))?;
        let program = program.as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?;
        let chunks = match take(&mut bpf, "chunks")? {
            Map::ArrayOfMaps(map) => {
                map.fd().as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?
            }
            _ => return Err(missing("chunks")),
        };
        let followed = match take(&mut bpf, "followed")? {
            Map::Unsupported(map) => {
                map.fd().as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?
            }
            _ => return Err(missing("followed")),
        };
        let counts = match take(&mut bpf, "counts")? {
            Map::HashMap(map) => map.fd().as_fd().try_clone_to_owned().map_err(refused("a descriptor"))?,
            _ => return Err(missing("counts")),
        };
        let files = take(&mut bpf, "files")?.try_into().map_err(refused("a map"))?;
        Ok(Self {
            program,
            ring: take(&mut bpf, "ring")?.try_into().map_err(refused("a map"))?,
            spaces: take(&mut bpf, "spaces")?.try_into().map_err(refused("a map"))?,
            tables: Resident::new(files, Chunks::new(chunks, options.table_memory)),
            counters: take(&mut bpf, "counters")?.try_into().map_err(refused("a map"))?,
            counts,
            followed,
            controls: take(&mut bpf, "controls")?.try_into().map_err(refused("a map"))?,
            control: Control::default(),
            awaited: take(&mut bpf, "awaited")?.try_into().map_err(refused("a map"))?,
            counting: options.counting,
            watches_maps,
            damaged: 0,
            _bpf: bpf,
        })
    }

    fn counter(&self, index: u32) -> u64 {
        self.counters.get(&index, 0).map_or(0, |values| values.iter().sum())
    }
}

/// Loads and starts a program that watches processes.
pub(crate) fn watch(bpf: &mut Ebpf, name: &'static str, event: &str, btf: &Btf) -> Result<(), LoadError> {
    let program = bpf.program_mut(name).ok_or_else(|| missing(name))?;
    let program: &mut BtfTracePoint = program.try_into().map_err(refused("a program"))?;
    program.load(event, btf).map_err(refused("a program"))?;
    program.attach().map_err(refused("a program at a tracepoint"))?;
    Ok(())
}

pub(crate) fn missing(name: &'static str) -> LoadError {
    LoadError::Refused(name, "it is not in the object".into())
}

pub(crate) fn take(bpf: &mut Ebpf, name: &'static str) -> Result<Map, LoadError> {
    bpf.take_map(name).ok_or_else(|| missing(name))
}

impl Assistant for Programs {
    fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    fn wakes(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.control.follows_some = 1;
        self.controls.set(0, self.control, 0).map_err(io::Error::other)?;
        let pid = u32::try_from(pid.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // The key of a task's storage is a descriptor of its process.
        sys::update_u32(self.followed.as_fd(), pid, 1)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.control.began = 1;
        self.controls.set(0, self.control, 0).map_err(io::Error::other)
    }

    fn await_comm(&mut self, comm: &[u8]) -> io::Result<()> {
        let mut name = [0; COMM_BYTES as usize];
        name.iter_mut().zip(comm.iter().take(COMM_BYTES as usize - 1)).for_each(|(to, from)| *to = *from);
        self.awaited.set(0, name, 0).map_err(io::Error::other)?;
        self.control.follows_some = 1;
        self.controls.set(0, self.control, 0).map_err(io::Error::other)
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
        if !self.counting {
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

    fn supply(&mut self, number: u32, lent: Option<Lent<'_>>) {
        self.tables.supply(number, lent.as_ref());
    }

    fn forget(&mut self, pid: u32) {
        // Otherwise it is forgotten already, and what is known now was looked up since.
        if !self.watches_maps {
            // There may be none.
            let _ = self.spaces.remove(&pid);
        }
    }

    fn handed_over(&self) -> HandedOver {
        let why = |why: u32| self.counter(COUNTER_WHY + why);
        HandedOver {
            walked: self.counter(COUNTER_WALKED),
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
                ("while the ring was full", self.counter(COUNTER_RING_FULL)),
            ],
            table_bytes: self.tables.bytes() as u64,
            evicted: self.tables.evicted(),
            damaged: self.damaged,
        }
    }
}
