//! The builder of one sample's stack, and the state kept between stacks.

use plumb_profile::{DsoKind, Found, FrameId, Profile, Sample, Truncation};
use plumb_unwind::Walked;

use super::draft::{Draft, Ending, found_of};
use super::kernel::Kernel;
use super::names::ScriptNames;
use super::stitch::{Beyond, Border, Frames};
use crate::Source;
use crate::header::SampleHeader;
use crate::output::Output;
use crate::processes::Processes;
use crate::spaces::{AddressSpaces, SpaceId};

/// State shared by all stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub(crate) kernel: Kernel,
    pub(crate) scripts: ScriptNames,
    /// Buffers for the next stack.
    room: (Vec<FrameId>, Vec<Walked>),
    /// For the last stack: number of frames reused from the stack before, and of new ones.
    #[cfg(test)]
    pub(crate) last: (usize, usize),
}

impl Stacks {
    pub(crate) fn new(source: Source) -> Self {
        let kernel = match source {
            Source::Live => Kernel::of_this_machine(),
            Source::File => Kernel::default(),
        };
        Self {
            kernel,
            scripts: ScriptNames::default(),
            room: Default::default(),
            #[cfg(test)]
            last: (0, 0),
        }
    }

    /// Forgets all rows.
    pub(crate) fn forget_rows(&mut self) {
        self.kernel.forget_rows();
        self.scripts.forget_rows();
    }

    /// Keeps the buffers for the next stack.
    pub(crate) fn keep_room(&mut self, leaf_first: Vec<FrameId>, walked: Vec<Walked>) {
        self.room = (leaf_first, walked);
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
    /// The unwound user frames, innermost first.
    pub(crate) walked: Vec<Walked>,
}

impl<'a> StackBuilder<'a> {
    /// An empty stack of a process and thread.
    pub(crate) fn new(
        stacks: &'a mut Stacks,
        processes: &'a mut Processes,
        out: &'a mut Output,
        (pid, tid): (u32, u32),
    ) -> Self {
        let (mut leaf_first, walked) = std::mem::take(&mut stacks.room);
        leaf_first.clear();
        let draft = Draft { leaf_first, ..Draft::default() };
        Self { stacks, processes, out, pid, tid, draft, walked }
    }

    /// The address space of the process.
    pub(crate) fn space(&self) -> Option<SpaceId> {
        self.processes.tasks.space(self.pid)
    }

    /// Appends kernel frames: addresses, innermost first, and whether they are return addresses.
    pub(crate) fn push_kernel(&mut self, frames: impl Iterator<Item = (u64, bool)>) {
        for (address, is_return) in frames {
            let frame = self.stacks.kernel.frame(&mut self.out.profile, address, is_return);
            self.draft.leaf_first.push(frame);
        }
        self.draft.kernel_frames = self.draft.leaf_first.len();
    }

    /// The frame of a user address.
    #[inline]
    pub(crate) fn user_frame(&mut self, space: SpaceId, frame: (u64, bool, Found)) -> FrameId {
        self.processes.spaces.user_frame(&mut self.out.profile, space, frame)
    }

    /// The frame of an unwound user address.
    pub(crate) fn walked_frame(&mut self, space: SpaceId, walked: &Walked) -> FrameId {
        self.user_frame(space, (walked.pc.0, walked.is_return, found_of(walked.found)))
    }

    /// The reason for truncation, with the file responsible: that of the outermost frame.
    pub(crate) fn blame(&mut self, space: SpaceId, cut: Truncation, outermost: Option<&Walked>) -> Ending {
        let Some(outermost) = outermost else { return Ending::Truncation(cut, None) };
        let id = self.walked_frame(space, outermost);
        let profile = &self.out.profile;
        let dso = profile.frames[id].dso;
        let is_anonymous = dso.is_some_and(|dso| matches!(profile.dsos[dso].kind, DsoKind::Anonymous { .. }));
        match cut {
            Truncation::NoUnwindInfo if is_anonymous => Ending::Truncation(Truncation::JitCode, dso),
            cut => Ending::Truncation(cut, dso),
        }
    }

    /// Passes the unwound stack to the thread's stitcher, if it has one. Returns `Some` if callers of it are known.
    pub(crate) fn stitch(&mut self, space: SpaceId, walked: &[Walked], border: Border) -> Option<Beyond> {
        let stitcher = self.processes.tasks.threads.get_mut(&self.tid)?.stacks.stitcher.as_mut()?;
        let index = self.out.profile.samples.len();
        let spaces = &mut self.processes.spaces;
        let mut frames = InSpace { spaces, profile: &mut self.out.profile, space };
        stitcher.sample(&mut frames, index, walked, border)
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
        self.stacks.keep_room(self.draft.leaf_first, self.walked);
        let &SampleHeader { event, time_ns, cpu, weight, syscall, .. } = header;
        Sample { time_ns, thread, cpu, event, stack, syscall, weight }
    }
}

/// Makes frames of one address space.
struct InSpace<'a> {
    spaces: &'a mut AddressSpaces,
    profile: &'a mut Profile,
    space: SpaceId,
}

impl Frames for InSpace<'_> {
    fn frame(&mut self, walked: &Walked) -> FrameId {
        let frame = (walked.pc.0, walked.is_return, found_of(walked.found));
        self.spaces.user_frame(self.profile, self.space, frame)
    }

    fn profile(&mut self) -> &mut Profile {
        self.profile
    }
}
