//! The user part of a sample: from registers and copied stack to frames and the reason where they end.

use linux_perf_event_reader::constants as perf;
use plumb_capture_api::{EvalLoopFrame, Script};
use plumb_process::read_memory;
use plumb_profile::{DsoId, DsoKind, Found, FrameId, Profile, Truncation};
use plumb_unwind::{Avma, End, Memory, Method, ReadError, Registers, Walked, Window, walk};

use super::code::View;
use super::script::Rest;
use super::spaces::{SpaceId, frame_key};
use super::stitch::{Beyond, Border, Frames};
use super::wire::{self, Stack};
use super::{Ingest, Source, kernel};

/// More frames than any sensible stack of 64 KiB has; a stack that is longer is cut, and says so.
pub(super) const MAX_FRAMES: usize = 4096;

/// How the user part of a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// At its root.
    Root,
    /// There is no user part, by nature: a kernel thread, or a task that has no memory any more.
    Absent,
    /// Before its root.
    Truncation(Truncation, Option<DsoId>),
}

/// What a copy of a stack can tell.
#[derive(Clone, Copy)]
pub(super) struct Copy<'a> {
    /// Address of the first byte: the stack pointer.
    pub(super) base: u64,
    pub(super) bytes: &'a [u8],
    /// All that was asked for was copied.
    pub(super) full: bool,
    /// The process, if its code may be read from its memory.
    pub(super) running: Option<u32>,
    /// The last address that could not be read.
    pub(super) missed: Option<u64>,
}

/// No frame is larger, so that what is further away is another stack: the usual limit of a whole one.
const MAX_FRAME: u64 = 8 << 20;

impl Copy<'_> {
    /// Whether an address is beyond the upper end.
    pub(super) fn is_above(&self, at: u64) -> bool {
        at >= self.base && at - self.base > (self.bytes.len() as u64).saturating_sub(8)
    }

    /// Whether an address is too far from what was copied to be of the same stack.
    fn is_elsewhere(&self, at: u64) -> bool {
        let end = self.base.saturating_add(self.bytes.len() as u64);
        at.saturating_add(MAX_FRAME) < self.base || at.saturating_sub(end) > MAX_FRAME
    }
}

impl Memory for Copy<'_> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let offset = at.0.wrapping_sub(self.base);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            // Only if all was copied that was asked for can there be more above.
            None if at.0 >= self.base && self.full && !self.is_elsewhere(at.0) => Err(ReadError::BeyondCopy),
            None => {
                self.missed = Some(at.0);
                Err(ReadError::Unreadable)
            }
        }
    }

    /// As it is now: code that was sampled is rarely changed soon after.
    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.running.is_some_and(|pid| read_memory(pid, at.0, to) == to.len())
    }

    /// Records are aligned in the ring, and copies in them; where one was put together elsewhere it may not be.
    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        let whole = self.bytes.get(..self.bytes.len() & !7)?;
        let words = bytemuck::try_cast_slice(whole).ok().filter(|_| cfg!(target_endian = "little"))?;
        Some(Window { base: Avma(self.base), words })
    }
}

/// Memory, with code from the files that are mapped: a look at it takes no system call, and needs no process that is still there. Only code
/// that is in no file, or whose file is gone, is read from the process. (Code of a file that was changed in memory is taken for what
/// the file has: rules are the file's too.)
pub(super) struct WithFiles<'a, M> {
    pub(super) memory: &'a mut M,
    pub(super) view: &'a View<'a>,
}

impl<M: Memory> Memory for WithFiles<'_, M> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.memory.read_u64(at)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.view.read(at, to) || self.memory.read_code(at, to)
    }

    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        self.memory.window()
    }
}

/// The registers of a sample by DWARF number; `None` if the program counter or the stack pointer is missing.
fn registers(sampled: &wire::Registers<'_>) -> Option<Registers> {
    /// DWARF numbers in the order of perf's (asm/perf_regs.h): ax bx cx dx si di bp sp, and r8..r15 from 16.
    const LOW: [u16; 8] = [0, 3, 2, 1, 4, 5, 6, 7];
    let mut values = [(0, 0); 17];
    let mut count = 0;
    let (mut ip, mut sp) = (None, None);
    let mut mask = sampled.mask;
    for value in sampled.values.iter() {
        let number = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        let dwarf = match number {
            8 => {
                ip = Some(value);
                continue;
            }
            0..8 => LOW[number as usize],
            16..24 => number as u16 - 8,
            _ => continue,
        };
        if dwarf == 7 {
            sp = Some(value);
        }
        if let Some(slot) = values.get_mut(count) {
            *slot = (dwarf, value);
            count += 1;
        }
    }
    let mut registers = Registers::new(ip?, sp?);
    values[..count].iter().for_each(|&(number, value)| registers.set(number, value));
    Some(registers)
}

pub(super) fn at_ip(registers: &Registers, ip: u64) -> Registers {
    let mut moved = Registers::new(ip, registers.sp());
    (0..16).for_each(|number| {
        if let Some(value) = registers.get(number) {
            moved.set(number, value);
        }
    });
    moved
}

pub(super) fn cut_of(end: End) -> Option<Truncation> {
    Some(match end {
        End::Root => return None,
        End::BeyondCopy => Truncation::CopyTooShort,
        End::StackUnreadable => Truncation::StackUnreadable,
        End::NoUnwindInfo => Truncation::NoUnwindInfo,
        End::BadUnwindInfo => Truncation::BadUnwindInfo,
        End::NotMapped => Truncation::NotMapped,
        End::FileUnreadable => Truncation::FileUnreadable,
        End::RegisterUnknown => Truncation::RegisterUnknown,
        End::NotAdvancing => Truncation::NotAdvancing,
        End::TooManyFrames => Truncation::TooManyFrames,
    })
}

pub(super) fn found_of(method: Method) -> Found {
    match method {
        Method::Sampled => Found::Sampled,
        Method::Cfi => Found::Cfi,
        Method::Signal => Found::Signal,
        Method::FramePointer => Found::FramePointer,
        Method::Scan => Found::Scan,
    }
}

/// What is missing of a round.
fn rest_of(round: &EvalLoopFrame, script: &Script) -> Option<Rest> {
    let is_whole = round.frames.last().is_some_and(|last| last.is_entry);
    let rest = if script.is_cut { Rest::TooMany } else { Rest::Unreadable };
    Some(rest).filter(|_| !is_whole)
}

impl Ingest {
    /// Appends the user frames of a sample to `self.leaf_first`, innermost first, and says how they end.
    pub(super) fn user_part(&mut self, sample: &wire::Sample<'_>, pid: u32, tid: u32) -> Ending {
        let space = self.tasks.processes.get(&pid).and_then(|process| process.space);
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
        let Some(mut registers) = registers(&sampled) else {
            return Ending::Truncation(Truncation::NoUserStack, None);
        };
        let running = (self.source == Source::Live).then_some(pid);
        let mut memory = Copy { base: registers.sp(), bytes, full, running, missed: None };
        let mut end = self.walk(space, &registers, &mut memory);
        let mut space = space;
        if end == End::NotMapped && self.refresh(pid) {
            space = self.tasks.processes.get(&pid).and_then(|process| process.space).unwrap_or(space);
            end = self.walk(space, &registers, &mut memory);
        }
        if sample.in_kernel && self.walked.len() == 1 && matches!(end, End::NoUnwindInfo | End::NotMapped) {
            // In a system call the program counter is past the `syscall`, which may end its function, as it does in
            // glibc's `__restore_rt`. Nothing is known of that place, so nothing is lost by looking before it.
            registers = at_ip(&registers, registers.ip().wrapping_sub(1));
            end = self.walk(space, &registers, &mut memory);
        }
        if end == End::BeyondCopy
            && self.is_cut_for_good(tid)
            && self.learn_live((pid, tid), space, &registers, &memory)
        {
            end = self.walk(space, &registers, &mut memory);
        }
        let end = self.scan(pid, space, &registers, &mut memory, end);
        let is_elsewhere =
            end == End::StackUnreadable && memory.missed.is_some_and(|at| memory.is_elsewhere(at));
        let script = self.tasks.scripts.of(tid, sample.time);
        self.translate(
            (pid, space),
            tid,
            (end, is_elsewhere),
            script.as_ref().map(|script| (registers.sp(), script)),
        )
    }

    /// Whether nothing is remembered beyond the stack that was walked.
    fn is_cut_for_good(&mut self, tid: u32) -> bool {
        let Some(thread) = self.tasks.threads.get_mut(&tid) else { return false };
        !thread.stitcher.get_or_insert_default().knows_beyond(&self.walked)
    }

    pub(super) fn walk(&mut self, space: SpaceId, registers: &Registers, memory: &mut impl Memory) -> End {
        let space = self.spaces.get_mut(space);
        space.walked = true;
        let view = View { code: &self.code, mappings: &space.mappings };
        let mut memory = WithFiles { memory, view: &view };
        walk(&view, &mut memory, &mut space.cache, registers, MAX_FRAMES, &mut self.walked)
    }

    /// Turns walked frames into frames of the profile, with what is remembered beyond them if they were cut. With `script` come
    /// those of an interpreted program, and the stack pointer.
    fn translate(
        &mut self,
        (pid, space): (u32, SpaceId),
        tid: u32,
        (end, is_elsewhere): (End, bool),
        script: Option<(u64, &Script)>,
    ) -> Ending {
        let walked = std::mem::take(&mut self.walked);
        let beyond = self.stitch(tid, space, &walked, end);
        let (own, ending) = match (beyond, cut_of(end)) {
            (Some(beyond), _) => {
                self.base = beyond.stack;
                (walked.len().saturating_sub(beyond.included), Ending::Root)
            }
            // Those of the last sample are native only.
            (None, None) if script.is_some() => (walked.len(), Ending::Root),
            (None, None) => {
                self.kept = self.kept_of_last(tid, space, &walked);
                (walked.len() - self.kept, Ending::Root)
            }
            (None, Some(_)) if is_elsewhere => {
                (walked.len(), Ending::Truncation(Truncation::OtherStack, None))
            }
            (None, Some(cut)) => (walked.len(), self.blame(space, cut, walked.last())),
        };
        let loops = self.loops_of(space, script.map(|(_, script)| script), &walked);
        let (mut sp, script) = script.unzip();
        let mut rounds = script.iter().flat_map(|script| &script.rounds).peekable();
        let mut was_round = false;
        for (index, frame) in walked.iter().enumerate().take(own) {
            let begin = sp.take().unwrap_or(frame.slot.0.saturating_add(8));
            let end = walked.get(index + 1).map_or(u64::MAX, |caller| caller.slot.0.saturating_add(8));
            let runs = |round: &&EvalLoopFrame| match round.at {
                // Where the last frame ends is not known, and it may be none of the interpreter's.
                Some(at) => (begin..end).contains(&at) && self.has_interpreter(space, frame.pc.0),
                None => loops.get(index) == Some(&true),
            };
            let round = rounds.next_if(runs);
            // A stub that runs the function: its name is that of the frame that is there.
            if std::mem::replace(&mut was_round, round.is_some()) && self.is_anonymous(space, frame.pc.0) {
                continue;
            }
            let id = self.user_frame(space, frame.pc.0, frame.is_return, found_of(frame.found));
            match (round, script) {
                (Some(round), Some(script)) => {
                    let mapping = self.spaces.get(space).mappings.find(frame.pc.0).copied();
                    let rest = rest_of(round, script);
                    self.script_round((pid, space), (id, mapping), &round.frames, rest);
                }
                _ => self.leaf_first.push(id),
            }
        }
        // What is known of callers from earlier samples has them.
        if let (None, Some(script)) = (self.base, script) {
            let frames: Vec<_> = rounds.flat_map(|round| round.frames.iter().copied()).collect();
            self.unplaced_script((pid, space), &frames, script.is_cut.then_some(Rest::TooMany));
        }
        self.walked = walked;
        ending
    }

    /// Which frames are in an interpreter's loop, where script frames don't say in which native frame they run.
    fn loops_of(&self, space: SpaceId, script: Option<&Script>, walked: &[Walked]) -> Vec<bool> {
        let Some(script) = script.filter(|script| script.rounds.iter().all(|round| round.at.is_none()))
        else {
            return Vec::new();
        };
        let at = |frame: &Walked| frame.pc.0.wrapping_sub(frame.is_return.into());
        let mut loops: Vec<bool> = walked.iter().map(|frame| self.is_in_loop(space, at(frame))).collect();
        super::walked::skip_beginning(&mut loops, script.rounds.len());
        loops
    }

    /// How many of the outermost frames of a whole stack were made for the thread's last sample.
    fn kept_of_last(&mut self, tid: u32, space: SpaceId, walked: &[Walked]) -> usize {
        let changes = self.spaces.get(space).changes;
        self.tasks.threads.get_mut(&tid).map_or(0, |thread| thread.last.kept(walked, space, changes))
    }

    /// Learns from the stack of a thread that was too deep for a copy once, and says what is known of its callers.
    fn stitch(&mut self, tid: u32, space: SpaceId, walked: &[Walked], end: End) -> Option<Beyond> {
        let border = match end {
            End::Root => Border::Root,
            // A page of the stack that was never touched, or is being copied after a fork, ends the kernel's copy too.
            End::BeyondCopy | End::StackUnreadable => Border::Copy,
            _ => return None,
        };
        let thread = self.tasks.threads.get_mut(&tid)?;
        if border == Border::Copy {
            self.statistics.beyond_copy += u64::from(end == End::BeyondCopy);
            thread.stitcher.get_or_insert_default();
        }
        let mut stitcher = thread.stitcher.take()?;
        let index = self.profile.samples.len();
        let beyond = stitcher.sample(&mut InSpace { ingest: self, space }, index, walked, border);
        if let Some(thread) = self.tasks.threads.get_mut(&tid) {
            thread.stitcher = Some(stitcher);
        }
        self.statistics.stitched += u64::from(border == Border::Copy && beyond.is_some());
        beyond
    }

    /// The reason and the file that is to blame: the one of the outermost frame that was found.
    pub(super) fn blame(&mut self, space: SpaceId, cut: Truncation, outermost: Option<&Walked>) -> Ending {
        let Some(outermost) = outermost else { return Ending::Truncation(cut, None) };
        let id = self.user_frame(space, outermost.pc.0, outermost.is_return, found_of(outermost.found));
        let dso = self.profile.frames[id].dso;
        let is_anonymous =
            dso.is_some_and(|dso| matches!(self.profile.dsos[dso].kind, DsoKind::Anonymous { .. }));
        match cut {
            Truncation::NoUnwindInfo if is_anonymous => Ending::Truncation(Truncation::JitCode, dso),
            cut => Ending::Truncation(cut, dso),
        }
    }

    /// Completes what can be completed of the cut stacks of a thread that ends here, as this thread at least.
    pub(super) fn settle_cut(&mut self, tid: u32) {
        let Some(mut stitcher) = self.tasks.threads.get_mut(&tid).and_then(|thread| thread.stitcher.take())
        else {
            return;
        };
        for (index, outside) in stitcher.settle(&mut self.profile) {
            let Some(sample) = self.profile.samples.get(index) else { continue };
            let mut frames: Vec<FrameId> = self.profile.frames_of(sample.stack).collect();
            // Its outermost frame is the marker that says why it is cut.
            let Some(marker) = frames.pop().map(|marker| self.profile.frames[marker]) else { continue };
            let Some(cut) = marker.cut() else { continue };
            let add = |caller, &frame: &FrameId| Some(self.profile.stacks.add(caller, frame));
            let stack = frames.iter().rev().fold(outside, add);
            self.profile.samples.set_stack(index, stack);
            self.statistics.uncut((cut, marker.dso));
            self.statistics.stitched += 1;
        }
    }

    /// A sample of another architecture: what its kernel found is all that is known.
    fn other_architecture(&mut self, sample: &wire::Sample<'_>, space: SpaceId) -> Ending {
        match self.user_callchain(sample, Some(space)) {
            Ending::Truncation(Truncation::NoUserStack, dso) => {
                Ending::Truncation(Truncation::OtherArchitecture, dso)
            }
            ending => ending,
        }
    }

    /// A sample of a 32-bit process: its program counter is all that is known.
    fn only_pc(&mut self, sampled: &wire::Registers<'_>, space: SpaceId) -> Ending {
        const IP: u32 = 8;
        let before = (sampled.mask & ((1 << IP) - 1)).count_ones() as usize;
        let ip = sampled.values.iter().nth(before).filter(|_| sampled.mask & (1 << IP) != 0);
        let Some(ip) = ip else { return Ending::Truncation(Truncation::OtherArchitecture, None) };
        let id = self.user_frame(space, ip, false, Found::Sampled);
        self.leaf_first.push(id);
        Ending::Truncation(Truncation::OtherArchitecture, self.profile.frames[id].dso)
    }

    /// The user part of the kernel's own callchain (frame pointers), for recordings without registers.
    fn user_callchain(&mut self, sample: &wire::Sample<'_>, space: Option<SpaceId>) -> Ending {
        let Some(space) = space else {
            return if sample.in_kernel {
                Ending::Absent
            } else {
                Ending::Truncation(Truncation::NotMapped, None)
            };
        };
        let mut outermost = None;
        for link in sample.callchain.into_iter().flat_map(kernel::links).filter(|link| !link.in_kernel) {
            let id = self.user_frame(space, link.address, link.is_return, Found::Sampled);
            self.leaf_first.push(id);
            outermost = Some((link.address.saturating_sub(link.is_return.into()), id));
        }
        match (outermost, sample.in_kernel, sample.ip) {
            (Some((call, id)), ..) => self.callchain_end(space, call, id),
            (None, false, Some(ip)) => {
                let id = self.user_frame(space, ip, false, Found::Sampled);
                self.leaf_first.push(id);
                Ending::Truncation(Truncation::NoUserStack, self.profile.frames[id].dso)
            }
            _ => Ending::Truncation(Truncation::NoUserStack, None),
        }
    }

    /// Whether a callchain whose outermost call is at `call` reaches the root: only if that function's rules say that it
    /// has no caller. Code without frame pointers cuts such a chain short without a word.
    fn callchain_end(&mut self, space: SpaceId, call: u64, outermost: FrameId) -> Ending {
        match self.walk(space, &Registers::new(call, 0), &mut NoMemory) {
            End::Root => Ending::Root,
            End::NotMapped => Ending::Truncation(Truncation::NotMapped, None),
            _ => Ending::Truncation(Truncation::NoUserStack, self.profile.frames[outermost].dso),
        }
    }

    /// The frame of a user address. Cached by address: this is on the path of every frame of every sample.
    pub(super) fn user_frame(&mut self, space: SpaceId, pc: u64, is_return: bool, found: Found) -> FrameId {
        let key = frame_key(pc, is_return, found as u8);
        if let Some(&id) = self.spaces.get(space).frames.get(&key) {
            return id;
        }
        self.new_user_frame(space, key, pc, is_return, found)
    }
}

/// No memory at all: a walk then tells what is known by rules alone.
struct NoMemory;

impl Memory for NoMemory {
    fn read_u64(&mut self, _at: Avma) -> Result<u64, ReadError> {
        Err(ReadError::Unreadable)
    }
}

/// Makes frames of one address space.
pub(super) struct InSpace<'a> {
    pub(super) ingest: &'a mut Ingest,
    pub(super) space: SpaceId,
}

impl Frames for InSpace<'_> {
    fn frame(&mut self, walked: &Walked) -> FrameId {
        self.ingest.user_frame(self.space, walked.pc.0, walked.is_return, found_of(walked.found))
    }

    fn profile(&mut self) -> &mut Profile {
        &mut self.ingest.profile
    }
}
