//! User stacks that come later than their samples: with `PERF_RECORD_CALLCHAIN_DEFERRED`, Linux 6.19 or newer unwinds the user
//! stack once, when the thread returns to user code. Until then a sample's callchain has a cookie instead of the user part.

use plumb_profile::{FrameId, FrameKind};
use rustc_hash::FxHashMap;

use super::callchain::push_links;
use super::kernel::links;
use crate::stacks::{Ending, StackBuilder};
use crate::{Ingest, perf_records};

/// Samples whose user stack is yet to come, by thread and cookie.
#[derive(Debug, Default)]
pub(crate) struct DeferredStacks {
    waiting: FxHashMap<(u32, u64), Vec<usize>>,
}

impl DeferredStacks {
    /// Makes sample number `sample` wait for the stack with this cookie.
    pub(crate) fn wait(&mut self, tid: u32, cookie: u64, sample: usize) {
        self.waiting.entry((tid, cookie)).or_default().push(sample);
    }

    /// Number of waiting samples.
    pub(crate) fn missing(&self) -> u64 {
        self.waiting.values().map(|samples| samples.len() as u64).sum()
    }

    /// Removes and returns the samples of a stack. Without a thread, as in files whose records don't name it, the cookie alone identifies them: it is
    /// unique across threads.
    fn take(&mut self, tid: Option<u32>, cookie: u64) -> Vec<usize> {
        let tid = tid.or_else(|| self.waiting.keys().find(|key| key.1 == cookie).map(|key| key.0));
        tid.and_then(|tid| self.waiting.remove(&(tid, cookie))).unwrap_or_default()
    }
}

impl Ingest {
    /// Adds the user stack to the samples that waited for it.
    pub(crate) fn deferred(&mut self, tid: Option<u32>, deferred: &perf_records::Deferred<'_>) {
        for index in self.deferred_stacks.take(tid, deferred.cookie) {
            let Some(sample) = self.out.profile.samples.get(index) else { continue };
            let thread = &self.out.profile.threads[sample.thread];
            let task = (self.out.profile.processes[thread.process].pid, thread.tid);
            let frames: Vec<FrameId> = self.out.profile.frames_of(sample.stack).collect();
            let was_cut = frames.last().map(|&last| self.out.profile.frames[last]);
            let was_cut = was_cut.and_then(|last| Some((last.cut()?, last.dso)));
            let mut stack = StackBuilder::new(&mut self.stacks, &mut self.processes, &mut self.out, task);
            let is_of_kernel = |frame: &FrameId| stack.out.profile.frames[*frame].kind == FrameKind::Kernel;
            let kernel: Vec<FrameId> = frames.into_iter().take_while(is_of_kernel).collect();
            stack.draft.leaf_first.extend(kernel);
            let space = stack.space();
            let user = links(deferred.callchain).filter(|link| !link.in_kernel);
            let ending = push_links(&mut stack, user, space, None);
            if let Some(was_cut) = was_cut {
                stack.out.statistics.uncut(was_cut);
            }
            if let Ending::Truncation(cut, blamed) = ending {
                let statistics = &mut stack.out.statistics;
                statistics.complete = statistics.complete.saturating_sub(1);
                *statistics.cut.entry((cut, blamed)).or_default() += 1;
            }
            stack.push_ending(ending);
            let stack = stack.finish_uncounted();
            self.out.profile.samples.set_stack(index, stack);
        }
    }
}
