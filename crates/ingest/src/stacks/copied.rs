//! The user part of a sample: turns registers and copied stack into frames and the reason where they end.

use linux_perf_event_reader::constants as perf;
use plumb_capture_api::{EvalLoopFrame, Script};
use plumb_process::read_memory;
use plumb_profile::{Found, FrameId, Truncation};
use plumb_unwind::{
    Architecture, Avma, End, LinuxRegisters, Memory, Native, ReadError, Registers, Walked, Window,
};

use super::builder::StackBuilder;
use super::draft::{Ending, cut_of};
use super::kernel;
use super::script::Rest;
use super::stitch::{Beyond, Border};
use crate::perf_records::{self, Stack};
use crate::sideband::SidebandQueue;
use crate::spaces::SpaceId;

/// The memory available for unwinding a copied stack.
#[derive(Clone, Copy)]
pub(crate) struct StackCopy<'a> {
    /// Address of the first byte: the stack pointer.
    base: u64,
    bytes: &'a [u8],
    /// Whether as much was copied as was requested.
    full: bool,
    /// The process, if code may be read from its memory.
    running: Option<u32>,
    /// The last address that could not be read.
    missed: Option<u64>,
}

/// No frame is larger, so an address further away is on another stack: the usual limit of a whole stack.
const MAX_FRAME: u64 = 8 << 20;

impl StackCopy<'_> {
    /// Whether an address is beyond the upper end.
    pub(crate) fn is_above(&self, at: u64) -> bool {
        at >= self.base && at - self.base > (self.bytes.len() as u64).saturating_sub(8)
    }

    /// Whether an address is too far from the copy to be on the same stack.
    fn is_elsewhere(&self, at: u64) -> bool {
        let end = self.base.saturating_add(self.bytes.len() as u64);
        at.saturating_add(MAX_FRAME) < self.base || at.saturating_sub(end) > MAX_FRAME
    }
}

impl Memory for StackCopy<'_> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let offset = at.0.wrapping_sub(self.base);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            // The stack can continue above only if the full size was copied.
            None if at.0 >= self.base && self.full && !self.is_elsewhere(at.0) => Err(ReadError::BeyondCopy),
            None => {
                self.missed = Some(at.0);
                Err(ReadError::Unreadable)
            }
        }
    }

    /// Reads current memory: sampled code rarely changes soon after.
    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.running.is_some_and(|pid| read_memory(pid, at.0, to) == to.len())
    }

    /// Records are aligned in the ring, and copies in them; a record joined in a buffer may not be.
    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        let whole = self.bytes.get(..self.bytes.len() & !7)?;
        let words = bytemuck::try_cast_slice(whole).ok().filter(|_| cfg!(target_endian = "little"))?;
        Some(Window { base: Avma(self.base), words })
    }
}

/// The registers of a sample by DWARF number; `None` if the program counter or the stack pointer is missing.
pub(crate) fn registers(sampled: &perf_records::Registers<'_>) -> Option<Registers> {
    let mut registers = Registers::unknown();
    sampled.by_dwarf_number().for_each(|(number, value)| registers.set(number, value));
    [Native::PC, Native::SP].iter().all(|&number| registers.get(number).is_some()).then_some(registers)
}

/// Returns a copy of the registers with another program counter.
pub(crate) fn at_ip(registers: &Registers, ip: u64) -> Registers {
    let mut moved = *registers;
    moved.set(Native::PC, ip);
    moved
}

/// The mark for frames missing in an eval frame.
fn rest_of(round: &EvalLoopFrame, script: &Script) -> Option<Rest> {
    let is_whole = round.frames.last().is_some_and(|last| last.is_entry);
    let rest = if script.is_cut { Rest::TooMany } else { Rest::Unreadable };
    Some(rest).filter(|_| !is_whole)
}

impl StackBuilder<'_> {
    /// Appends the kernel frames of a record. `before`: how many of these, innermost first, belong to the sampling itself.
    pub(crate) fn kernel_of_record(
        &mut self,
        sample: &perf_records::Sample<'_>,
        before: impl FnOnce(&mut dyn Iterator<Item = u64>) -> usize,
    ) {
        if let Some(callchain) = sample.callchain {
            let links = || kernel::links(callchain).filter(|link| link.in_kernel);
            let before = before(&mut links().map(|link| link.address));
            self.push_kernel(links().skip(before).map(|link| (link.address, link.is_return)));
        }
        if let (true, true, Some(ip)) = (self.draft.leaf_first.is_empty(), sample.in_kernel, sample.ip) {
            self.push_kernel(std::iter::once((ip, false)));
        }
    }

    /// Appends the user frames of a record's sample, innermost first, and returns how they end. `scripts`: reported frames of
    /// interpreted programs.
    pub(crate) fn user_of_record(
        &mut self,
        sample: &perf_records::Sample<'_>,
        scripts: &mut SidebandQueue<Script>,
    ) -> Ending {
        let space = self.space();
        if !sample.asked_registers {
            return self.user_callchain(sample, space);
        }
        let Some(sampled) = sample.registers else { return Ending::Absent };
        let (bytes, full) = match sample.stack {
            Stack::Copied { bytes, full } => (bytes, full),
            // The kernel copies nothing for a task without memory: it is exiting.
            Stack::None if sample.in_kernel => return Ending::Absent,
            Stack::None => (&[][..], false),
            Stack::NotAsked => return self.user_callchain(sample, space),
        };
        let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
        if !self.can_unwind() {
            return self.other_architecture(sample, space);
        }
        if sampled.abi == perf::PERF_SAMPLE_REGS_ABI_32 {
            return self.only_pc(&sampled, space);
        }
        let Some(registers) = registers(&sampled) else {
            return Ending::Truncation(Truncation::NoUserStack, None);
        };
        let running = self.processes.scope.is_live().then_some(self.pid);
        let mut memory = StackCopy { base: registers.sp(), bytes, full, running, missed: None };
        let (space, end) = self.walk_copy(sample, space, registers, &mut memory);
        let is_elsewhere =
            end == End::StackUnreadable && memory.missed.is_some_and(|at| memory.is_elsewhere(at));
        let script = scripts.of(self.tid, sample.time);
        let script = script.as_ref().map(|script| (memory.base, script));
        self.translate(space, (end, is_elsewhere), script)
    }

    /// Whether stacks of the records' machine can be unwound.
    fn can_unwind(&self) -> bool {
        [Native::NAME, ""].contains(&self.out.profile.meta.arch.as_str())
    }

    /// Unwinds a copied stack by all available means. Also returns the space that the process has by then.
    fn walk_copy(
        &mut self,
        sample: &perf_records::Sample<'_>,
        mut space: SpaceId,
        mut registers: Registers,
        memory: &mut StackCopy<'_>,
    ) -> (SpaceId, End) {
        let mut end = self.processes.spaces.walk(space, &registers, memory, &mut self.walked);
        if end == End::NotMapped && self.processes.refresh(&mut self.out.profile, self.pid) {
            space = self.space().unwrap_or(space);
            end = self.processes.spaces.walk(space, &registers, memory, &mut self.walked);
        }
        if sample.in_kernel && self.walked.len() == 1 && matches!(end, End::NoUnwindInfo | End::NotMapped) {
            // In a system call the program counter is past the `syscall`, which may end its function, as in
            // glibc's `__restore_rt`. No rule applies to that place in particular, so nothing is lost by looking before it.
            registers = at_ip(&registers, registers.ip().wrapping_sub(1));
            end = self.processes.spaces.walk(space, &registers, memory, &mut self.walked);
        }
        self.begin_stitching(sample.time, end);
        if end == End::BeyondCopy
            && self.is_cut_for_good()
            && self.learn_live(sample.time, space, &registers, memory)
        {
            end = self.processes.spaces.walk(space, &registers, memory, &mut self.walked);
        }
        let of = (self.pid, space);
        (space, self.processes.spaces.scan(of, &registers, memory, &mut self.walked, end))
    }

    /// Passes the current sample to the thread's stitcher, which is created with the first stack that is too deep for its copy.
    fn begin_stitching(&mut self, now_ns: u64, end: End) {
        let is_live = self.processes.scope.is_live();
        let Some(thread) = self.processes.tasks.threads.get_mut(&self.tid) else { return };
        let stitcher = &mut thread.stacks.stitcher;
        if end == End::BeyondCopy {
            stitcher.get_or_insert_default();
        }
        stitcher.iter_mut().for_each(|stitcher| stitcher.begin(now_ns, is_live));
    }

    /// Whether the stitcher knows no callers beyond the unwound stack, or none seen recently.
    fn is_cut_for_good(&mut self) -> bool {
        let thread = self.processes.tasks.threads.get_mut(&self.tid);
        let stitcher = thread.and_then(|thread| thread.stacks.stitcher.as_mut());
        stitcher.is_some_and(|stitcher| !stitcher.knows_beyond(&self.walked))
    }

    /// Turns unwound frames into frames of the profile, adding stitched callers if they were truncated. `script`: the frames
    /// of an interpreted program, and the stack pointer.
    fn translate(
        &mut self,
        space: SpaceId,
        (end, is_elsewhere): (End, bool),
        script: Option<(u64, &Script)>,
    ) -> Ending {
        let walked = std::mem::take(&mut self.walked);
        // Stitched callers come from earlier samples: a complete stack with script frames has its own.
        let has_all = script.is_some() && end == End::Root;
        let beyond = self.stitch_copy(space, &walked, end).filter(|_| !has_all);
        let (own, ending) = match (beyond, cut_of(end)) {
            (Some(beyond), _) => {
                self.draft.base = beyond.stack;
                (walked.len().saturating_sub(beyond.included), Ending::Root)
            }
            // Frames of the last sample are native only.
            (None, None) if script.is_some() => (walked.len(), Ending::Root),
            (None, None) => {
                self.draft.kept = self.kept_of_last(space, &walked);
                (walked.len() - self.draft.kept, Ending::Root)
            }
            (None, Some(_)) if is_elsewhere => {
                (walked.len(), Ending::Truncation(Truncation::OtherStack, None))
            }
            (None, Some(cut)) => (walked.len(), self.blame(space, cut, walked.last())),
        };
        match script {
            None => {
                for frame in walked.iter().take(own) {
                    let id = self.walked_frame(space, frame);
                    self.draft.leaf_first.push(id);
                }
            }
            Some(script) => self.push_with_script(space, (&walked, own), script),
        }
        self.walked = walked;
        ending
    }

    /// Appends the first `own` unwound frames, with the script frames where they run.
    pub(crate) fn push_with_script(
        &mut self,
        space: SpaceId,
        (walked, own): (&[Walked], usize),
        (sp, script): (u64, &Script),
    ) {
        let loops = self.loops_of(space, script, walked);
        let mut sp = Some(sp);
        let idle = usize::from(self.has_idle_round(space, script.rounds.len(), &loops));
        let mut rounds = script.rounds.iter().skip(idle).peekable();
        let mut was_round = false;
        for (index, frame) in walked.iter().enumerate().take(own) {
            let begin = sp.take().unwrap_or(frame.slot.0.saturating_add(8));
            let end = walked.get(index + 1).map_or(u64::MAX, |caller| caller.slot.0.saturating_add(8));
            let spaces = &self.processes.spaces;
            let runs = |round: &&EvalLoopFrame| match round.at {
                // The end of the last frame is not known, and it may not be the interpreter's.
                Some(at) => (begin..end).contains(&at) && spaces.has_interpreter(space, frame.pc.0),
                None => loops.get(index) == Some(&true),
            };
            let round = rounds.next_if(runs);
            // A stub that runs the function: it would have the same name as the script frame.
            if std::mem::replace(&mut was_round, round.is_some()) && spaces.is_anonymous(space, frame.pc.0) {
                continue;
            }
            let id = self.walked_frame(space, frame);
            match round {
                Some(round) => {
                    let rest = rest_of(round, script);
                    self.push_round(space, (id, frame.pc.0), &round.frames, rest);
                }
                None => self.draft.leaf_first.push(id),
            }
        }
        // Stitched callers from earlier samples include them.
        if self.draft.base.is_none() {
            let frames: Vec<_> = rounds.flat_map(|round| round.frames.iter().copied()).collect();
            self.push_unplaced(space, &frames, script.is_cut.then_some(Rest::TooMany));
        }
    }

    /// The frames that are in an interpreter's loop, if script frames don't say in which native frame they run.
    fn loops_of(&self, space: SpaceId, script: &Script, walked: &[Walked]) -> Vec<bool> {
        if script.rounds.iter().any(|round| round.at.is_some()) {
            return Vec::new();
        }
        let at = |frame: &Walked| frame.pc.0.wrapping_sub(frame.is_return.into());
        self.counted_loops(space, walked.iter().map(at), script.rounds.len())
    }

    /// Number of outermost frames of a complete stack that equal those of the thread's last sample.
    fn kept_of_last(&mut self, space: SpaceId, walked: &[Walked]) -> usize {
        let changes = self.processes.spaces.get(space).changes;
        let thread = self.processes.tasks.threads.get_mut(&self.tid);
        thread.map_or(0, |thread| thread.stacks.last.kept(walked, space, changes))
    }

    /// Learns from the stack of a thread with a stitcher, and returns its known callers.
    fn stitch_copy(&mut self, space: SpaceId, walked: &[Walked], end: End) -> Option<Beyond> {
        let border = match end {
            End::Root => Border::Root,
            // A stack page that was never touched, or is being copied after a fork, ends the kernel's copy too.
            End::BeyondCopy | End::StackUnreadable => Border::Copy,
            _ => return None,
        };
        if border == Border::Copy {
            self.out.statistics.beyond_copy += u64::from(end == End::BeyondCopy);
            self.processes.tasks.threads.get_mut(&self.tid)?.stacks.stitcher.get_or_insert_default();
        }
        let beyond = self.stitch(space, walked, border);
        self.out.statistics.stitched += u64::from(border == Border::Copy && beyond.is_some());
        beyond
    }

    /// A sample of another architecture: only its kernel's callchain is known.
    fn other_architecture(&mut self, sample: &perf_records::Sample<'_>, space: SpaceId) -> Ending {
        match self.user_callchain(sample, Some(space)) {
            Ending::Truncation(Truncation::NoUserStack, dso) => {
                Ending::Truncation(Truncation::OtherArchitecture, dso)
            }
            ending => ending,
        }
    }

    /// A sample of a 32-bit process: only its program counter is known.
    fn only_pc(&mut self, sampled: &perf_records::Registers<'_>, space: SpaceId) -> Ending {
        let ip = sampled.by_dwarf_number().find(|(number, _)| *number == Native::PC);
        let Some((_, ip)) = ip else { return Ending::Truncation(Truncation::OtherArchitecture, None) };
        let id = self.user_frame(space, (ip, false, Found::Sampled));
        self.draft.leaf_first.push(id);
        Ending::Truncation(Truncation::OtherArchitecture, self.out.profile.frames[id].dso)
    }

    /// The user part of the kernel's own callchain (frame pointers), for recordings without registers.
    fn user_callchain(&mut self, sample: &perf_records::Sample<'_>, space: Option<SpaceId>) -> Ending {
        let Some(space) = space else {
            return if sample.in_kernel {
                Ending::Absent
            } else {
                Ending::Truncation(Truncation::NotMapped, None)
            };
        };
        let links = sample.callchain.into_iter().flat_map(kernel::links).filter(|link| !link.in_kernel);
        self.user_links(links, Some(space), sample.ip.filter(|_| !sample.in_kernel))
    }

    /// Appends user frames by their addresses; without any the program counter alone.
    pub(crate) fn user_links(
        &mut self,
        links: impl Iterator<Item = kernel::Link>,
        space: Option<SpaceId>,
        ip: Option<u64>,
    ) -> Ending {
        let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
        let mut outermost = None;
        for link in links {
            let id = self.user_frame(space, (link.address, link.is_return, Found::Sampled));
            self.draft.leaf_first.push(id);
            outermost = Some((link.address.saturating_sub(link.is_return.into()), id));
        }
        match (outermost, ip) {
            (Some((call, id)), _) => self.callchain_end(space, call, id),
            (None, Some(ip)) => {
                let id = self.user_frame(space, (ip, false, Found::Sampled));
                self.draft.leaf_first.push(id);
                Ending::Truncation(Truncation::NoUserStack, self.out.profile.frames[id].dso)
            }
            (None, None) => Ending::Truncation(Truncation::NoUserStack, None),
        }
    }

    /// Whether a callchain with its outermost call at `call` reaches the root: only if that function's rules say that it
    /// has no caller. Code without frame pointers truncates such a chain silently.
    fn callchain_end(&mut self, space: SpaceId, call: u64, outermost: FrameId) -> Ending {
        let registers = Registers::new(call, 0);
        match self.processes.spaces.walk(space, &registers, &mut NoMemory, &mut self.walked) {
            End::Root => Ending::Root,
            End::NotMapped => Ending::Truncation(Truncation::NotMapped, None),
            _ => Ending::Truncation(Truncation::NoUserStack, self.out.profile.frames[outermost].dso),
        }
    }
}

/// No memory at all: unwinding then uses rules alone.
struct NoMemory;

impl Memory for NoMemory {
    fn read_u64(&mut self, _at: Avma) -> Result<u64, ReadError> {
        Err(ReadError::Unreadable)
    }
}
