//! Goroutines that no thread runs: their registers and stacks are copied while the process is stopped, and those with equal stacks are one group.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use plumb_ingest::{Ingest, ProcessMemory, StoppedStack};
use plumb_interpreters::{Goroutine, GoroutineList, NoGoroutines};
use plumb_process::read_memory;
use plumb_unwind::{Architecture, Native, Registers};

use crate::copy::StackCopy;

/// Most bytes of a goroutine's stack that are copied.
const STACK: u64 = 64 << 10;
/// Most bytes that are copied of all stacks together.
const ALL_STACKS: usize = 256 << 20;
/// Time limit for copying: the process is stopped. Some hundred thousand fit in.
const PATIENCE: Duration = Duration::from_millis(250);

/// Goroutines that no thread runs.
#[derive(Debug)]
pub struct Goroutines {
    /// Groups by equal stacks and states, the largest first.
    pub groups: Vec<GoroutineGroup>,
    /// Whether these are all. There may be more than can be read while the process is stopped.
    pub are_all: bool,
}

/// Goroutines whose stacks and states are equal.
#[derive(Debug)]
pub struct GoroutineGroup {
    /// See [`Goroutine::state`].
    pub state: String,
    /// Numbers of the goroutines in ascending order.
    pub ids: Vec<u64>,
    /// Index of their sample in the profile.
    pub sample: usize,
}

/// Copied goroutines.
pub(super) struct CopiedGoroutines {
    list: Vec<(Goroutine, Vec<u8>)>,
    are_all: bool,
}

/// Copies the goroutines of a stopped process.
pub(super) fn copy(pid: u32, list: &GoroutineList) -> Result<CopiedGoroutines, NoGoroutines> {
    let start = Instant::now();
    let (mut copied, mut bytes) = (Vec::new(), 0);
    let are_all = list.visit(&ProcessMemory(pid), &mut |goroutine| {
        if let Some(goroutine) = goroutine {
            let size = goroutine.stack_end.saturating_sub(goroutine.sp).min(STACK);
            let mut stack = vec![0; size as usize];
            let read = read_memory(pid, goroutine.sp, &mut stack);
            stack.truncate(read);
            bytes += read;
            copied.push((goroutine, stack));
        }
        start.elapsed() < PATIENCE && bytes < ALL_STACKS
    })?;
    Ok(CopiedGoroutines { list: copied, are_all })
}

impl CopiedGoroutines {
    /// Unwinds the stacks and groups the goroutines of a process that `ingest` has met. `keep` makes a sample of a stack and returns its index.
    pub(super) fn grouped(
        self,
        ingest: &mut Ingest,
        pid: u32,
        mut keep: impl FnMut(&mut Ingest, &StoppedStack) -> usize,
    ) -> Goroutines {
        let mut groups: Vec<GoroutineGroup> = Vec::new();
        let mut known: HashMap<(String, Vec<u64>), usize> = HashMap::new();
        for (goroutine, stack) in self.list {
            let mut registers = Registers::new(goroutine.pc, goroutine.sp);
            registers.set(Native::FP, goroutine.fp);
            let mut stack = StackCopy::of_parked(&registers, stack);
            let walked = ingest.walk_stopped(pid, &registers, false, &mut stack);
            let key = (goroutine.state, walked.calls().collect());
            match known.entry(key) {
                Entry::Occupied(known) => {
                    if let Some(group) = groups.get_mut(*known.get()) {
                        group.ids.push(goroutine.id);
                    }
                }
                Entry::Vacant(new) => {
                    let state = new.key().0.clone();
                    groups.push(GoroutineGroup {
                        state,
                        ids: vec![goroutine.id],
                        sample: keep(ingest, &walked),
                    });
                    new.insert(groups.len() - 1);
                }
            }
        }
        groups.iter_mut().for_each(|group| group.ids.sort_unstable());
        groups.sort_by_key(|group| std::cmp::Reverse(group.ids.len()));
        Goroutines { groups, are_all: self.are_all }
    }
}
