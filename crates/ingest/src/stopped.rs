//! Threads that are looked at once, not sampled: their registers, and memory in which all of their stack can be read. They are stopped, or
//! off the processor.

use plumb_capture_api::{OffThread, OffUser};
use plumb_process::read_memory;
use plumb_profile::{EventId, Frame, Sample, Truncation};
use plumb_unwind::{Avma, End, Memory, ReadError, Registers};

use super::user::{Ending, at_ip, cut_of, found_of};
use super::{Ingest, wire};

/// So much of a stack is read at once.
const PAGE: u64 = 4096;

/// Memory of a process, read where a stack leads to.
struct LiveStack {
    pid: u32,
    /// Pages with their addresses.
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
        // Across two pages, as a stack that is not aligned has it.
        let mut word = [0; 8];
        let read = read_memory(self.pid, at.0, &mut word);
        (read == word.len()).then_some(u64::from_le_bytes(word)).ok_or(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        read_memory(self.pid, at.0, to) == to.len()
    }
}

impl Ingest {
    /// Learns of a process and its threads. `maps` is the text of its maps file.
    pub fn meet_stopped(&mut self, pid: u32, maps: &[u8]) {
        self.meet(pid);
        self.map_text(pid, maps);
    }

    /// Walks the stack of a thread of a process that was met. What was found is kept by [`Ingest::keep_stopped`].
    pub fn walk_stopped(
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
    pub fn keep_stopped(&mut self, event: EventId, pid: u32, tid: u32, end: End) {
        self.leaf_first.clear();
        self.push_walked(pid, end);
        let stack = self.profile.add_stack(&self.leaf_first);
        let (thread, process) = self.tasks.rows(&mut self.profile, tid);
        self.note_space(pid, process);
        let time_ns = self.profile.samples.len() as u64;
        self.profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    }

    /// Appends the frames that were walked last, and the reason if they end before the root.
    fn push_walked(&mut self, pid: u32, end: End) {
        let walked = std::mem::take(&mut self.walked);
        let space = self.tasks.processes.get(&pid).and_then(|process| process.space);
        if let Some(space) = space {
            for frame in &walked {
                let id = self.user_frame(space, frame.pc.0, frame.is_return, found_of(frame.found));
                self.leaf_first.push(id);
            }
            if let Some(cut) = cut_of(end)
                && let Ending::Truncation(cut, blamed) = self.blame(space, cut, walked.last())
            {
                let marker = self.profile.frames.add(Frame::marker(cut, blamed));
                self.leaf_first.push(marker);
            }
        }
        self.walked = walked;
    }

    /// The stack of a thread that is off the processor, as a sample that is in no profile yet: its weight is how long that lasts. `None`:
    /// it is not recorded.
    pub fn stack_off(&mut self, event: EventId, thread: &OffThread) -> Option<Sample> {
        let asked = wire::Sample {
            ip: None,
            pid: thread.pid,
            tid: thread.tid,
            time: thread.time_ns,
            cpu: 0,
            period: 0,
            callchain: None,
            asked_registers: false,
            registers: None,
            stack: wire::Stack::NotAsked,
            in_kernel: true,
        };
        let (pid, tid) = self.task_of(event, &asked)?;
        self.leaf_first.clear();
        for (index, &address) in thread.kernel.iter().enumerate() {
            let frame = self.kernel.frame(&mut self.profile, address, index > 0);
            self.leaf_first.push(frame);
        }
        match &thread.user {
            OffUser::Absent => {}
            OffUser::Compat => self.push_cut(Truncation::OtherArchitecture),
            OffUser::At(registers) => {
                let mut memory = LiveStack { pid, pages: Vec::new() };
                let end = self.walk_stopped(pid, registers, true, &mut memory);
                self.push_walked(pid, end);
            }
        }
        if self.leaf_first.is_empty() {
            self.push_cut(Truncation::NoUserStack);
        }
        let stack = self.profile.add_stack(&self.leaf_first);
        let (row, process) = self.tasks.rows(&mut self.profile, tid);
        self.note_space(pid, process);
        self.note_life(pid, process);
        Some(Sample { time_ns: thread.time_ns, thread: row, cpu: 0, event, stack, syscall: None, weight: 0 })
    }

    fn push_cut(&mut self, cut: Truncation) {
        let marker = self.profile.frames.add(Frame::marker(cut, None));
        self.leaf_first.push(marker);
    }
}
