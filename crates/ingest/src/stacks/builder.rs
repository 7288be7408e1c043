//! The builder of one sample's stack, and the state kept between stacks.
//!
//! Each source of stacks appends to the builder: `record`, `walked`, `stopped`.

use plumb_profile::{FrameId, Sample, StackId, Truncation};
use plumb_unwind::Walked;

use super::draft::{Draft, Ending};
use super::frames::SpaceFrames;
use super::kernel::Kernel;
use super::loops::EvalLoops;
use super::names::ScriptNames;
use super::script::ScriptFrames;
use crate::Source;
use crate::header::SampleHeader;
use crate::output::Output;
use crate::processes::{Processes, Thread};
use crate::spaces::SpaceId;

/// State shared by all stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub(crate) kernel: Kernel,
    pub(crate) scripts: ScriptNames,
    /// Length in bytes of scalable vectors in samples that do not tell it.
    pub(crate) vector_bytes: Option<u64>,
    /// Buffer for the unwound frames of the next stack.
    pub(crate) walked: Vec<Walked>,
    /// Buffer for the frames of the next stack.
    leaf_first: Vec<FrameId>,
    /// For the last stack: number of frames reused from the stack before, and of new ones.
    #[cfg(test)]
    pub(crate) last: (usize, usize),
}

impl Stacks {
    pub(crate) fn new(source: Source) -> Self {
        let (kernel, vector_bytes) = match source {
            Source::Live => (Kernel::of_this_machine(), plumb_process::vector_bytes()),
            Source::File => (Kernel::default(), None),
        };
        Self {
            kernel,
            vector_bytes,
            scripts: ScriptNames::default(),
            walked: Vec::new(),
            leaf_first: Vec::new(),
            #[cfg(test)]
            last: (0, 0),
        }
    }

    /// Forgets all rows.
    pub(crate) fn forget_rows(&mut self) {
        self.kernel.forget_rows();
        self.scripts.forget_rows();
    }
}

/// Builds the stack of one sample of a thread.
pub(crate) struct StackBuilder<'a> {
    pub(crate) stacks: &'a mut Stacks,
    pub(crate) processes: &'a mut Processes,
    pub(crate) out: &'a mut Output,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) draft: Draft,
}

impl<'a> StackBuilder<'a> {
    /// An empty stack of a process and thread.
    pub(crate) fn new(
        stacks: &'a mut Stacks,
        processes: &'a mut Processes,
        out: &'a mut Output,
        (pid, tid): (u32, u32),
    ) -> Self {
        let mut leaf_first = std::mem::take(&mut stacks.leaf_first);
        leaf_first.clear();
        let draft = Draft { leaf_first, ..Draft::default() };
        Self { stacks, processes, out, pid, tid, draft }
    }

    /// The address space of the process.
    pub(crate) fn space(&self) -> Option<SpaceId> {
        self.processes.tasks.space(self.pid)
    }

    /// Reads the mappings of the process again, if some may be missing. Returns the space that it has then.
    pub(crate) fn refreshed_space(&mut self) -> Option<SpaceId> {
        let is_read = self.processes.refresh(&mut self.out.profile, self.pid);
        self.space().filter(|_| is_read)
    }

    /// The frames of user addresses, and the stack to which they are appended.
    #[inline]
    pub(crate) fn frames(&mut self, space: SpaceId) -> (SpaceFrames<'_>, &mut Draft) {
        let frames = SpaceFrames::new(&mut self.processes.spaces, &mut self.out.profile, space);
        (frames, &mut self.draft)
    }

    /// The frames of interpreted programs, appended to this stack.
    pub(crate) fn scripts(&mut self, space: SpaceId) -> ScriptFrames<'_> {
        let spaces = &self.processes.spaces;
        let parent = self.processes.tasks.processes.get(&self.pid).map_or(0, |process| process.parent);
        ScriptFrames {
            names: &mut self.stacks.scripts,
            spaces,
            profile: &mut self.out.profile,
            draft: &mut self.draft,
            space,
            pids: [self.pid, spaces.get(space).owner, parent],
        }
    }

    /// The native frames that are eval frames of interpreters.
    pub(crate) fn loops(&self, space: SpaceId) -> EvalLoops<'_> {
        EvalLoops { spaces: &self.processes.spaces, space }
    }

    /// The state of the thread, if it is known, and the frames of its process.
    pub(crate) fn thread(&mut self, space: SpaceId) -> Option<(&mut Thread, SpaceFrames<'_>)> {
        let frames = SpaceFrames::new(&mut self.processes.spaces, &mut self.out.profile, space);
        Some((self.processes.tasks.threads.get_mut(&self.tid)?, frames))
    }

    /// Appends kernel frames: addresses, innermost first, and whether they are return addresses.
    pub(crate) fn push_kernel(&mut self, frames: impl Iterator<Item = (u64, bool)>) {
        for (address, is_return) in frames {
            let frame = self.stacks.kernel.frame(&mut self.out.profile, address, is_return);
            self.draft.leaf_first.push(frame);
        }
        self.draft.kernel_frames = self.draft.leaf_first.len();
    }

    /// Appends a marker that says how the stack ends, unless it ends at its root.
    pub(crate) fn push_ending(&mut self, ending: Ending) {
        self.draft.mark(&mut self.out.profile, ending);
    }

    /// Puts the stack into the profile and makes the sample, which is not in the profile yet.
    pub(crate) fn finish(
        mut self,
        header: &SampleHeader,
        mut ending: Ending,
        may_be_in_exec: bool,
    ) -> Sample {
        let (pid, tid) = (self.pid, self.tid);
        let tasks = &mut self.processes.tasks;
        let is_new = matches!(ending, Ending::Root | Ending::Truncation(Truncation::ProbedReturn, _));
        let is_cut = matches!(ending, Ending::Truncation(..));
        let is_old_image = tasks
            .processes
            .get_mut(&pid)
            .is_some_and(|process| process.is_old_image(header.in_kernel, is_new, is_cut));
        let thread = tasks.threads.entry(tid).or_default();
        let draft = &mut self.draft;
        if is_old_image {
            draft.leaf_first.truncate(draft.kernel_frames);
            draft.kept = 0;
            thread.stacks.last.forget();
            ending = Ending::Absent;
        }
        // No frame at all: say so.
        if draft.leaf_first.is_empty() && ending == Ending::Absent {
            ending = Ending::Truncation(Truncation::NoUserStack, None);
        }
        #[cfg(test)]
        (self.stacks.last = (draft.kept, draft.leaf_first.len()));
        let stack = thread.stacks.finish(self.out, draft, ending, may_be_in_exec);
        let thread = self.processes.note_sample(&mut self.out.profile, pid, tid);
        self.stacks.leaf_first = self.draft.leaf_first;
        let &SampleHeader { event, time_ns, cpu, weight, syscall, .. } = header;
        Sample { time_ns, thread, cpu, event, stack, syscall, weight }
    }

    /// Puts the stack into the profile without a sample.
    pub(crate) fn finish_uncounted(self) -> Option<StackId> {
        let stack = self.out.profile.add_stack(&self.draft.leaf_first);
        self.stacks.leaf_first = self.draft.leaf_first;
        stack
    }
}
