//! How long threads were off the processor, from programs at the scheduler's tracepoints.
//!
//! They measure time alone. Stacks are those of a sampling event at the same switch, so that they are as complete as any.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use aya::{Ebpf, EbpfLoader};
use plumb_capture_perf::{OffCpu, TimeOff, Unmeasured};

use crate::follow::Followed;
use crate::object::{LoadError, Machine, Watch, refused, sum, take};
use crate::wire::{Block, OFF_LOST, OFF_LOST_NS, OFF_SHORT, OFF_SHORT_NS, Off};

/// The programs, as `xtask/bpf.sh` made them.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/offcpu.bpf.o");
/// The programs.
const WATCHES: [Watch; 3] = [
    ("on_fork", "sched_process_fork", "btf_trace_sched_process_fork"),
    ("on_wakeup", "sched_wakeup", "btf_trace_sched_wakeup"),
    ("on_switch", "sched_switch", "btf_trace_sched_switch"),
];

// SAFETY: a structure of integers without padding, as `xtask codegen` makes sure: any bytes are valid.
#[allow(unsafe_code)]
mod pod {
    // SAFETY: see above.
    unsafe impl aya::Pod for super::Off {}
}

/// The loaded programs. Dropping this ends them.
pub struct Switches {
    // Keeps programs and links.
    _bpf: Ebpf,
    ring: RingBuf<MapData>,
    off: HashMap<MapData, u32, Off>,
    counters: PerCpuArray<MapData, u64>,
    followed: Followed,
}

impl Switches {
    /// Loads the programs and starts them. Times off below `min_ns`, blocked or waited, are counted but not told one by one.
    pub fn load(min_ns: u64) -> Result<Self, LoadError> {
        let machine = Machine::find(&["task_struct"], &WATCHES)?;
        let mut bpf = EbpfLoader::new()
            .btf(Some(&machine.btf))
            .override_global("min_ns", &min_ns, true)
            .override_global("ring_bytes", &machine.ring, true)
            .map_max_entries("ring", machine.ring)
            .allow_unsupported_maps()
            .load(OBJECT)
            .map_err(refused("maps"))?;
        for program in WATCHES {
            machine.watch(&mut bpf, program)?;
        }
        Ok(Self {
            ring: take(&mut bpf, "ring")?,
            off: take(&mut bpf, "off")?,
            counters: take(&mut bpf, "counters")?,
            followed: Followed::take(&mut bpf)?,
            _bpf: bpf,
        })
    }

    fn counter(&self, index: u32) -> u64 {
        sum(&self.counters, index)
    }
}

impl OffCpu for Switches {
    fn wakes(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    fn follow_all(&mut self) -> io::Result<()> {
        self.followed.begin()
    }

    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()> {
        self.followed.add(pid)?;
        self.followed.begin()
    }

    fn take(&mut self, into: &mut Vec<TimeOff>) {
        while let Some(item) = self.ring.next() {
            into.extend(read(&item));
        }
    }

    fn pending(&self, now_ns: u64) -> Vec<TimeOff> {
        let times = self.off.iter().filter_map(Result::ok).map(|(tid, off)| {
            let woken = if off.woken_ns == 0 { now_ns } else { off.woken_ns };
            TimeOff {
                out_ns: off.out_ns,
                blocked_ns: woken.saturating_sub(off.out_ns),
                waited_ns: now_ns.saturating_sub(woken),
                pid: off.pid,
                tid,
            }
        });
        times.collect()
    }

    fn unmeasured(&self) -> Unmeasured {
        Unmeasured {
            short: self.counter(OFF_SHORT),
            short_ns: self.counter(OFF_SHORT_NS),
            lost: self.counter(OFF_LOST),
            lost_ns: self.counter(OFF_LOST_NS),
        }
    }
}

/// A message of the programs; `None`: it is too short.
fn read(bytes: &[u8]) -> Option<TimeOff> {
    let (words, rest) = bytes.as_chunks::<8>();
    let word = |index: usize| words.get(index).map(|word| u64::from_ne_bytes(*word));
    let ids = words.get(3).filter(|_| rest.is_empty() && bytes.len() == size_of::<Block>())?;
    let (pid, tid) = ids.split_first_chunk::<4>()?;
    Some(TimeOff {
        out_ns: word(0)?,
        blocked_ns: word(1)?,
        waited_ns: word(2)?,
        pid: u32::from_ne_bytes(*pid),
        tid: u32::from_ne_bytes(*tid.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_messages_are_refused() {
        let mut bytes: Vec<u8> = [1_u64, 2, 3].iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend([4_u32, 5].iter().flat_map(|word| word.to_ne_bytes()));
        assert_eq!(read(&bytes), Some(TimeOff { out_ns: 1, blocked_ns: 2, waited_ns: 3, pid: 4, tid: 5 }));
        assert!((0..bytes.len()).all(|length| read(&bytes[..length]).is_none()));
        bytes.push(0);
        assert_eq!(read(&bytes), None);
    }
}
