//! Threads that are looked at once, not sampled: their registers, and memory in which all of their stack can be read.

use plumb_profile::{EventId, Frame, Sample};
use plumb_unwind::{End, Memory, Registers};

use super::Ingest;
use super::user::{Ending, at_ip, cut_of, found_of};

impl Ingest {
    /// Learns of a process and its threads. `maps` is the text of its maps file.
    pub(crate) fn meet_stopped(&mut self, pid: u32, maps: &[u8]) {
        self.meet(pid);
        self.map_text(pid, maps);
    }

    /// Walks the stack of a thread of a process that was met. What was found is kept by [`Ingest::keep_stopped`].
    pub(crate) fn walk_stopped(
        &mut self,
        pid: u32,
        registers: &Registers,
        in_system_call: bool,
        memory: &mut impl Memory,
    ) -> End {
        self.walked.clear();
        let Some(space) = self.tasks.processes.get(&pid).and_then(|process| process.space) else {
            return End::NotMapped;
        };
        let end = self.walk(space, registers, memory);
        if in_system_call && self.walked.len() == 1 && matches!(end, End::NoUnwindInfo | End::NotMapped) {
            // Past a `syscall` that may end its function; nothing is known of that place, so look before it.
            let moved = at_ip(registers, registers.ip().wrapping_sub(1));
            let end = self.walk(space, &moved, memory);
            return self.scan(pid, space, &moved, memory, end);
        }
        self.scan(pid, space, registers, memory, end)
    }

    /// Keeps the stack that was walked last as a sample of its own. Samples come out in the order of these calls.
    pub(crate) fn keep_stopped(&mut self, event: EventId, pid: u32, tid: u32, end: End) {
        self.leaf_first.clear();
        let walked = std::mem::take(&mut self.walked);
        let space = self.tasks.processes.get(&pid).and_then(|process| process.space);
        if let Some(space) = space {
            for frame in &walked {
                let id = self.user_frame(space, frame.pc.0, frame.is_return, found_of(frame.found));
                self.leaf_first.push(id);
            }
            if let Some(cut) = cut_of(end)
                && let Ending::Cut(cut, blamed) = self.blame(space, cut, walked.last())
            {
                let marker = self.profile.frames.add(Frame::marker(cut, blamed));
                self.leaf_first.push(marker);
            }
        }
        self.walked = walked;
        let stack = self.profile.add_stack(&self.leaf_first);
        let (thread, process) = self.tasks.rows(&mut self.profile, tid);
        self.note_space(pid, process);
        let time_ns = self.profile.samples.len() as u64;
        self.profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    }
}
