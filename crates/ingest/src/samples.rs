//! Samples, from each kind of source: records, stacks unwound in the kernel, threads inspected once.

use plumb_capture_api::{OffThread, Parts, Script, WalkedSample};
use plumb_profile::{EventId, Sample};
use plumb_unwind::{Memory, Registers};

use crate::header::SampleHeader;
use crate::sideband::SidebandQueue;
use crate::stacks::walked::{self, WalkedUser};
use crate::stacks::{Ending, StackBuilder, StoppedStack, cookie, record, stopped};
use crate::{Ingest, perf_records};

/// Facts on samples that arrive before their records.
#[derive(Debug, Default)]
pub(crate) struct Sideband {
    /// Interrupted system calls.
    calls: SidebandQueue<Option<u32>>,
    /// Frames of interpreted programs.
    scripts: SidebandQueue<Script>,
}

impl Ingest {
    /// Notes the system call that a sample interrupted if it was taken in the kernel: a sample of this thread at about this time, whose record
    /// follows.
    pub fn note_interrupted_call(&mut self, tid: u32, time_ns: u64, syscall: Option<u32>) {
        self.sideband.calls.keep(tid, time_ns, syscall);
    }

    /// Notes the script frames of a sample whose record follows.
    pub fn note_script(&mut self, tid: u32, script: Script) {
        self.sideband.scripts.keep(tid, script.time_ns, script);
    }

    /// Handles a sample in a record.
    pub(crate) fn sample(&mut self, event: EventId, sample: &perf_records::Sample<'_>) {
        let syscall = self.sideband.calls.of(sample.tid, sample.time).flatten();
        let header = SampleHeader::of_record(event, sample, syscall.filter(|_| sample.in_kernel));
        let Some(task) = self.admit(&header) else { return };
        let mut stack = StackBuilder::new(&mut self.stacks, &mut self.processes, &mut self.out, task);
        record::push_kernel(&mut stack, sample, |kernel| self.weights.before(event, kernel));
        let ending = match stack.pid {
            0 => Ending::Absent,
            _ => record::push_user(&mut stack, sample, &mut self.sideband.scripts),
        };
        let made = stack.finish(&header, ending, sample.may_be_in_exec());
        self.processes.spaces.make_room();
        if let Some(cookie) = sample.callchain.and_then(cookie) {
            self.deferred_stacks.wait(sample.tid, cookie, self.out.profile.samples.len());
        }
        self.out.profile.samples.push(made);
        if let Some(recorded) = sample.registers.as_ref().filter(|_| !sample.in_kernel) {
            self.registers_of_record(task.0, &made, recorded);
        }
    }

    /// Handles a sample whose stack was unwound in the kernel. Returns the result, unless it is filtered out.
    pub fn walked(&mut self, event: EventId, sample: &WalkedSample, parts: Parts<'_>) -> Option<Sample> {
        let header = SampleHeader::of_walked(event, sample);
        let task = self.admit(&header)?;
        let mut stack = StackBuilder::new(&mut self.stacks, &mut self.processes, &mut self.out, task);
        walked::push_kernel(&mut stack, parts.kernel, |kernel| self.weights.before(event, kernel));
        let ending = match sample.has_user && stack.pid != 0 {
            true => WalkedUser { parts, script_is_cut: sample.script_is_cut }.append_to(&mut stack),
            false => Ending::Absent,
        };
        let made = stack.finish(&header, ending, false);
        if !sample.is_stack_only {
            self.out.profile.samples.push(made);
        }
        Some(made)
    }

    /// The stack of a thread that is off the CPU, as a sample not yet in the profile: its weight is the duration. `None`:
    /// the thread is not recorded.
    pub fn stack_off(&mut self, event: EventId, thread: &OffThread) -> Option<Sample> {
        let task = self.task_of(&SampleHeader::of_off(event, thread))?;
        let mut stack = StackBuilder::new(&mut self.stacks, &mut self.processes, &mut self.out, task);
        stopped::push_off(&mut stack, thread);
        let stack = stack.finish_uncounted();
        let row = self.processes.note_sample(&mut self.out.profile, task.0, task.1);
        let syscall = thread.syscall;
        Some(Sample { time_ns: thread.time_ns, thread: row, cpu: 0, event, stack, syscall, weight: 0 })
    }

    /// Notes a process and its threads. `maps` is the text of its maps file.
    pub fn meet_stopped(&mut self, pid: u32, maps: &[u8]) {
        self.processes.meet(pid);
        self.processes.map_text(&mut self.out.profile, pid, maps);
    }

    /// Unwinds the stack of a thread of a known process. [`Ingest::keep_stopped`] makes a sample of it.
    pub fn walk_stopped(
        &mut self,
        pid: u32,
        registers: &Registers,
        in_system_call: bool,
        memory: &mut impl Memory,
    ) -> StoppedStack {
        StoppedStack::walk(&mut self.processes, pid, registers, in_system_call, memory)
    }

    /// Adds a stack as a sample of its own. Samples are in the order of these calls.
    pub fn keep_stopped(&mut self, event: EventId, pid: u32, tid: u32, stack: &StoppedStack) {
        let mut builder = StackBuilder::new(&mut self.stacks, &mut self.processes, &mut self.out, (pid, tid));
        stack.append_to(&mut builder);
        let stack = builder.finish_uncounted();
        let profile = &mut self.out.profile;
        let thread = self.processes.note_stopped(profile, pid, tid);
        let time_ns = profile.samples.len() as u64;
        profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    }

    /// Counts a sample. Returns its process and thread; `None` if it is not kept.
    fn admit(&mut self, header: &SampleHeader) -> Option<(u32, u32)> {
        self.weights.came(header.event, 1);
        let task = self.task_of(header);
        match task {
            Some(_) => self.now_ns = header.time_ns,
            None => self.out.statistics.filtered += 1,
        }
        task
    }

    fn task_of(&mut self, header: &SampleHeader) -> Option<(u32, u32)> {
        let &SampleHeader { pid, tid, cpu, .. } = header;
        if self.is_idle(header) {
            return None;
        }
        self.processes.task_of(&mut self.out.profile, (pid, tid), cpu)
    }

    /// Whether a sample of this machine belongs to the idle task. A hardware counter may attribute it to the target
    /// when the CPU switches to or from it; the clock excludes it itself. A task of another PID namespace has PID 0 too, but runs
    /// user code.
    fn is_idle(&self, header: &SampleHeader) -> bool {
        header.pid == 0
            && header.in_kernel
            && self.processes.scope.is_live()
            && !self.weights.keeps_idle(header.event)
    }
}
