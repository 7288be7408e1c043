//! Threads that are inspected once rather than sampled: their registers, and memory with their whole stack. They are stopped, or
//! off the CPU.

use plumb_capture_api::{OffThread, OffUser};
use plumb_interpreters::NativeFrame;
use plumb_process::read_memory;
use plumb_profile::Truncation;
use plumb_unwind::{Avma, End, Memory, ReadError, Registers, Walked};

use super::builder::StackBuilder;
use super::copied::{at_ip, push_with_script};
use super::draft::{Ending, cut_of};
use super::on_stack::{self, Read, native_frames};
use super::script::read_script;
use crate::memory::ProcessMemory;
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
        native_frames(self.sp, &self.walked)
    }

    /// An address within the running instruction or the call of each frame, innermost first.
    pub fn calls(&self) -> impl Iterator<Item = u64> {
        self.walked.iter().map(|frame| frame.call().0)
    }

    /// Index of the frame, innermost first, that contains this stack address. The end of the outermost is not known.
    pub fn frame_at(&self, at: u64) -> Option<usize> {
        let callers = self.walked.iter().skip(1);
        let index = callers.take_while(|caller| at >= caller.slot.0.saturating_add(8)).count();
        (at >= self.sp && index + 1 < self.walked.len()).then_some(index)
    }

    /// Appends the frames, and the reason if they end before the root.
    pub(crate) fn append_to(&self, stack: &mut StackBuilder<'_>) {
        if let Some(space) = stack.space() {
            self.push_native(stack, space);
            self.push_end(stack, space);
        }
    }

    /// Appends the frames of a thread that is off the CPU, with its script frames, which only change while it runs.
    fn append_with_script(&self, stack: &mut StackBuilder<'_>, thread_pointer: u64) {
        let Some(space) = stack.space() else { return };
        let memory = ProcessMemory(stack.pid);
        if on_stack::push(stack, space, (&self.walked, self.walked.len()), (self.sp, &memory, Read::Now)) {
            return self.push_end(stack, space);
        }
        let thread = (stack.pid, stack.tid, thread_pointer);
        match read_script(&stack.processes.spaces, space, thread) {
            Some(Ok(script)) => {
                push_with_script(stack, space, (&self.walked, self.walked.len()), (self.sp, &script));
            }
            Some(Err(file)) => {
                self.push_native(stack, space);
                stack.scripts(space).push_unreadable(file);
            }
            None => self.push_native(stack, space),
        }
        self.push_end(stack, space);
    }

    fn push_native(&self, stack: &mut StackBuilder<'_>, space: SpaceId) {
        let (mut frames, draft) = stack.frames(space);
        draft.leaf_first.extend(self.walked.iter().map(|frame| frames.walked(frame)));
    }

    /// Appends the reason why the stack ends before the root, if it does.
    fn push_end(&self, stack: &mut StackBuilder<'_>, space: SpaceId) {
        if let Some(cut) = cut_of(self.end) {
            let ending = stack.frames(space).0.blame(cut, self.walked.last());
            stack.push_ending(ending);
        }
    }
}

/// Appends the frames of a thread that is off the CPU.
pub(crate) fn push_off(stack: &mut StackBuilder<'_>, thread: &OffThread) {
    stack.push_kernel(thread.kernel.iter().enumerate().map(|(index, &address)| (address, index > 0)));
    match &thread.user {
        OffUser::Absent => {}
        OffUser::Compat => stack.push_ending(Ending::Truncation(Truncation::OtherArchitecture, None)),
        OffUser::At(registers) => {
            let mut memory = LiveStack { pid: stack.pid, pages: Vec::new() };
            let stopped = StoppedStack::walk(stack.processes, stack.pid, registers, true, &mut memory);
            stopped.append_with_script(stack, thread.thread_pointer);
        }
    }
    if stack.draft.leaf_first.is_empty() {
        stack.push_ending(Ending::Truncation(Truncation::NoUserStack, None));
    }
}
