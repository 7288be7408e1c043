//! Threads that are inspected once rather than sampled: their registers, and memory with their whole stack. They are stopped, or
//! off the CPU.

use plumb_capture_api::{OffThread, OffUser};
use plumb_interpreters::NativeFrame;
use plumb_process::read_memory;
use plumb_profile::{Frame, StackId, Truncation};
use plumb_unwind::{Avma, End, Memory, ReadError, Registers, Walked};

use super::builder::StackBuilder;
use super::copied::at_ip;
use super::draft::{Ending, cut_of};
use crate::processes::Processes;
use crate::spaces::SpaceId;

/// Bytes of a stack read at once.
const PAGE: u64 = 4096;

/// Memory of a process, read as the stack is unwound.
struct LiveStack {
    pid: u32,
    /// Pages by address.
    pages: Vec<(u64, Vec<u8>)>,
}

impl Memory for LiveStack {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let begin = at.0 & !(PAGE - 1);
        let known = self.pages.iter().rposition(|(address, _)| *address == begin);
        let index = known.unwrap_or_else(|| {
            let mut page = vec![0; PAGE as usize];
            let read = read_memory(self.pid, begin, &mut page);
            page.truncate(read);
            self.pages.push((begin, page));
            self.pages.len() - 1
        });
        let rest = self.pages.get(index).and_then(|(_, page)| page.get((at.0 - begin) as usize..));
        if let Some(word) = rest.and_then(<[u8]>::first_chunk) {
            return Ok(u64::from_le_bytes(*word));
        }
        // Across two pages, for an unaligned stack.
        let mut word = [0; 8];
        let read = read_memory(self.pid, at.0, &mut word);
        (read == word.len()).then_some(u64::from_le_bytes(word)).ok_or(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        read_memory(self.pid, at.0, to) == to.len()
    }
}

/// The stack of a stopped thread, in its process' addresses.
#[derive(Clone, Debug)]
pub struct StoppedStack {
    /// The stack pointer.
    sp: u64,
    walked: Vec<Walked>,
    end: End,
}

impl StoppedStack {
    /// Unwinds the stack of a thread of a known process. `in_system_call`: the program counter is past the instruction that
    /// made the call.
    pub(crate) fn walk(
        processes: &mut Processes,
        pid: u32,
        registers: &Registers,
        in_system_call: bool,
        memory: &mut impl Memory,
    ) -> Self {
        let (sp, mut walked) = (registers.sp(), Vec::new());
        let Some(space) = processes.tasks.space(pid) else { return Self { sp, walked, end: End::NotMapped } };
        let spaces = &mut processes.spaces;
        let end = spaces.walk(space, registers, memory, &mut walked);
        let end = if in_system_call && walked.len() == 1 && matches!(end, End::NoUnwindInfo | End::NotMapped)
        {
            // Past a `syscall` that may end its function; no rule applies to that place in particular, so look before it.
            let moved = at_ip(registers, registers.ip().wrapping_sub(1));
            let end = spaces.walk(space, &moved, memory, &mut walked);
            spaces.scan((pid, space), &moved, memory, &mut walked, end)
        } else {
            spaces.scan((pid, space), registers, memory, &mut walked, end)
        };
        Self { sp, walked, end }
    }

    /// The reason why unwinding ended.
    pub fn end(&self) -> End {
        self.end
    }

    /// The frames whose end is known, innermost first: all but the outermost.
    pub fn frames(&self) -> impl Iterator<Item = NativeFrame> {
        let mut sp = self.sp;
        self.walked.iter().zip(self.walked.iter().skip(1)).map(move |(frame, caller)| {
            let cfa = caller.slot.0.saturating_add(8);
            let pc = frame.pc.0.wrapping_sub(frame.is_return.into());
            NativeFrame { pc, sp: std::mem::replace(&mut sp, cfa), cfa }
        })
    }

    /// Index of the frame, innermost first, that contains this stack address. The end of the outermost is not known.
    pub fn frame_at(&self, at: u64) -> Option<usize> {
        let callers = self.walked.iter().skip(1);
        let index = callers.take_while(|caller| at >= caller.slot.0.saturating_add(8)).count();
        (at >= self.sp && index + 1 < self.walked.len()).then_some(index)
    }
}

impl StackBuilder<'_> {
    /// Appends the frames of a stopped thread, and the reason if they end before the root.
    pub(crate) fn push_stopped(&mut self, stack: &StoppedStack) {
        let Some(space) = self.space() else { return };
        self.push_native(space, stack);
        self.push_end(space, stack);
    }

    /// Appends the frames of a thread that is off the CPU, with its script frames, which only change while it runs.
    fn push_off_user(&mut self, stack: &StoppedStack, thread_pointer: u64) {
        let Some(space) = self.space() else { return };
        match self.read_script(space, thread_pointer) {
            Some(Ok(script)) => {
                self.push_with_script(space, (&stack.walked, stack.walked.len()), (stack.sp, &script));
            }
            Some(Err(file)) => {
                self.push_native(space, stack);
                self.push_unreadable(file);
            }
            None => self.push_native(space, stack),
        }
        self.push_end(space, stack);
    }

    fn push_native(&mut self, space: SpaceId, stack: &StoppedStack) {
        for frame in &stack.walked {
            let id = self.walked_frame(space, frame);
            self.draft.leaf_first.push(id);
        }
    }

    /// Appends the reason why a stack ends before the root, if it does.
    fn push_end(&mut self, space: SpaceId, stack: &StoppedStack) {
        if let Some(cut) = cut_of(stack.end)
            && let Ending::Truncation(cut, blamed) = self.blame(space, cut, stack.walked.last())
        {
            let marker = self.out.profile.frames.add(Frame::marker(cut, blamed));
            self.draft.leaf_first.push(marker);
        }
    }

    /// Appends the frames of a thread that is off the CPU.
    pub(crate) fn push_off(&mut self, thread: &OffThread) {
        self.push_kernel(thread.kernel.iter().enumerate().map(|(index, &address)| (address, index > 0)));
        match &thread.user {
            OffUser::Absent => {}
            OffUser::Compat => self.push_cut(Truncation::OtherArchitecture),
            OffUser::At(registers) => {
                let mut memory = LiveStack { pid: self.pid, pages: Vec::new() };
                let stack = StoppedStack::walk(self.processes, self.pid, registers, true, &mut memory);
                self.push_off_user(&stack, thread.thread_pointer);
            }
        }
        if self.draft.leaf_first.is_empty() {
            self.push_cut(Truncation::NoUserStack);
        }
    }

    fn push_cut(&mut self, cut: Truncation) {
        let marker = self.out.profile.frames.add(Frame::marker(cut, None));
        self.draft.leaf_first.push(marker);
    }

    /// Puts the stack into the profile without a sample.
    pub(crate) fn finish_uncounted(self) -> Option<StackId> {
        let stack = self.out.profile.add_stack(&self.draft.leaf_first);
        self.stacks.keep_room(self.draft.leaf_first, self.walked);
        stack
    }
}
