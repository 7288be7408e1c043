//! Handles for a recorder of this machine: what it says and asks besides records and samples, by subject.

use std::ops::Range;
use std::sync::Arc;

use plumb_capture_api::{CodeId, Counted, TimeOff, UnwindInfoRef};
use plumb_process::{Backing, Program, Vma};
use plumb_profile::{EventId, Profile, Sample};
use plumb_table_cache::TableCache;

use crate::Ingest;
use crate::cgroups::EndedCgroups;
use crate::output::Output;
use crate::processes::Processes;
use crate::weights::{self, Weights};

impl Ingest {
    /// The recorded processes.
    pub fn processes(&mut self) -> RecordedProcesses<'_> {
        let Self { processes, out, cgroups, .. } = self;
        RecordedProcesses { processes, profile: &mut out.profile, cgroups }
    }

    /// The weights of samples.
    pub fn weights(&mut self) -> SampleWeights<'_> {
        let Self { weights, out, .. } = self;
        SampleWeights { weights, out }
    }

    /// The mapped code.
    pub fn code(&mut self) -> MappedCode<'_> {
        let Self { processes, out, .. } = self;
        MappedCode { processes, profile: &mut out.profile }
    }
}

/// The recorded processes: which they are, their CPU time and waits, and their ends.
pub struct RecordedProcesses<'i> {
    processes: &'i mut Processes,
    profile: &'i mut Profile,
    cgroups: &'i mut EndedCgroups,
}

impl<'i> RecordedProcesses<'i> {
    /// Follows `pid` and its future children. Has no effect on what is kept under [`Filter::All`](crate::Filter::All).
    pub fn follow(&mut self, pid: u32) {
        self.processes.scope.follow(pid);
    }
    /// Follows processes that exec this program from now on. Without effect under [`Filter::All`](crate::Filter::All).
    pub fn await_program(&mut self, program: Program) {
        self.processes.scope.await_program(program);
    }

    /// Processes that have started the program since the last call.
    pub fn take_arrived(&mut self) -> Vec<u32> {
        self.processes.scope.take_arrived()
    }

    /// Reads names, parents and mappings of a running process and its threads from /proc
    /// ([`Source::Live`](crate::Source::Live) only): for processes that started before the recording.
    pub fn read_process(&mut self, pid: u32) {
        self.processes.read_process(self.profile, pid);
    }

    /// [`Self::read_process`] for all running processes.
    pub fn read_all_processes(&mut self) {
        if self.processes.scope.is_live() {
            plumb_process::pids().into_iter().for_each(|pid| self.read_process(pid));
        }
    }

    /// Adds the CPU time of a task since its fork; the task has just exec'd or ended.
    pub fn spent(&mut self, task: (u32, u32), runtime_ns: u64, at_exec: bool) {
        let accounts = &mut self.processes.lives.accounts;
        accounts.spent(&self.processes.tasks, self.profile, task, (runtime_ns, at_exec));
    }

    /// Notes that a process has ended in a control group with this path.
    pub fn ended_in(&mut self, pid: u32, path: String) {
        self.cgroups.add(pid, path);
    }

    /// The control groups reported since the last call.
    pub fn take_cgroups(&mut self) -> EndedCgroups {
        std::mem::take(self.cgroups)
    }

    /// Number of ended lifetimes whose CPU time is still to come.
    pub fn open_accounts(&self) -> usize {
        self.processes.lives.accounts.open()
    }

    /// Starts to measure run-queue waits: of threads that are kept now, and of those they start.
    pub fn watch_queues(&mut self) {
        self.processes.watch_queues();
    }

    /// Starts to measure those of a process that is kept from now on.
    pub fn watch_queues_of(&mut self, pid: u32) {
        self.processes.watch_queues_of(pid);
    }

    /// Reads the times of all threads again, if due or `now`.
    pub fn look_at_queues(&mut self, now: bool) {
        self.processes.look_at_queues(now);
    }
}

/// The weights of samples, by event.
pub struct SampleWeights<'i> {
    weights: &'i mut Weights,
    out: &'i mut Output,
}

impl SampleWeights<'_> {
    /// Number of samples of an event so far, including those that are not kept.
    pub fn samples_of(&self, event: EventId) -> u64 {
        self.weights.samples_of(event)
    }

    /// Sets the weight of an event's samples that have no period. The default is 1.
    pub fn weigh_each(&mut self, event: EventId, each: u64) {
        self.weights.weigh_each(event, each);
    }

    /// Changes the weight of an event's samples that have no period, from a time on.
    pub fn weigh_from(&mut self, event: EventId, since_ns: u64, each: u64) {
        self.weights.weigh_from(event, since_ns, each);
    }

    /// Keeps the event's samples of the idle task, which are otherwise dropped from recordings of this machine ([`Source::Live`](crate::Source::Live)).
    pub fn keep_idle(&mut self, event: EventId) {
        self.weights.keep_idle(event);
    }

    /// Takes the weight of an event's samples from the BPF program that writes them. `way_in`: the functions through which it is
    /// called, if the samples have kernel stacks.
    pub fn weigh_as_said(&mut self, event: EventId, way_in: Option<Arc<[Range<u64>]>>) {
        self.weights.weigh_as_said(event, way_in);
    }

    /// Scales an event's samples in a time range to a total weight of `counted`, the kernel's count, each in proportion. The weight in a
    /// software event's sample is too large if the process shares its CPU: the event then restarts at
    /// each switch with the current period (perf_swevent_add in kernel/events/core.c). Lost samples are in no other's weight.
    pub fn scale(&mut self, event: EventId, time_ns: Range<u64>, counted: u64) {
        weights::scale(&mut self.out.profile, event, time_ns, counted);
    }

    /// Scales all samples of an event, if they weigh more than `counted`.
    pub fn scale_down(&mut self, event: EventId, counted: u64) {
        let samples = self.out.profile.samples.iter().filter(|sample| sample.event == event);
        if samples.map(|sample| u128::from(sample.weight)).sum::<u128>() > u128::from(counted) {
            self.scale(event, 0..u64::MAX, counted);
        }
    }

    /// Scales the samples of successive time ranges. A range whose samples were all lost is represented by those of the others.
    pub fn scale_parts(&mut self, event: EventId, parts: &[(Range<u64>, u64)]) {
        weights::scale_parts(&mut self.out.profile, event, parts);
    }

    /// Adds further samples that equal `first`.
    pub fn add_counted(&mut self, first: Sample, counted: &Counted) {
        self.weights.add_counted(self.out, first, counted);
    }

    /// Takes the weight of the samples of event `blocked` from [`Self::add_time_off`], and that of `waited` from the run-queue wait in
    /// those times.
    pub fn weigh_by_time_off(&mut self, blocked: EventId, waited: EventId) {
        self.weights.weigh_by_time_off(blocked, waited);
    }

    /// Adds a time off the CPU. `like`: a sample with the stack at its start; `None`: a record brings the stack, if any.
    pub fn add_time_off(&mut self, like: Option<Sample>, time: TimeOff) {
        self.weights.add_time_off(self.out, like, time);
    }

    /// Adds summed times of a thread that have no stack.
    pub fn add_times_without_stack(&mut self, sum: &TimeOff) {
        self.weights.add_times_without_stack(sum);
    }

    /// Counts samples that the kernel dropped, if the caller learns of them other than from records.
    pub fn add_lost(&mut self, samples: u64) {
        self.out.statistics.lost_samples += samples;
    }
}

/// Mapped code: its unwind information, and its interpreters.
pub struct MappedCode<'i> {
    processes: &'i mut Processes,
    profile: &'i mut Profile,
}

impl<'i> MappedCode<'i> {
    /// Uses cached tables for unwind rules of files with many look-ups, and has such tables made.
    pub fn use_tables(&mut self, kept: TableCache) {
        self.processes.spaces.use_tables(kept);
    }

    /// Maintains tables and unwind information, to be called periodically: at most `most_bytes` of unused unwind information are kept.
    pub fn look_at_tables(&mut self, most_bytes: usize) {
        self.processes.spaces.look_at_tables(most_bytes);
    }

    /// Drops unwind information that is in use, if there is far more than the last [`Self::look_at_tables`] allowed.
    pub fn make_room(&mut self) {
        self.processes.spaces.make_room();
    }

    /// Sets whether stacks that end for lack of unwind information are scanned for return addresses everywhere
    /// ([`plumb_unwind::scan`]): frames found that way, marked as [`plumb_profile::Found::Scan`], are guesses. By default,
    /// only stacks that end in code of files are scanned, and the result has to be confirmed by more evidence ([`plumb_unwind::scan::resume`],
    /// checked).
    pub fn scan_stacks(&mut self, wanted: bool) {
        self.processes.spaces.scan_stacks(wanted);
    }

    /// The file or memory mapped at an address of a process.
    pub fn mapped_at(&mut self, pid: u32, address: u64) -> Option<Backing> {
        self.processes.mapped_at(self.profile, pid, address)
    }

    /// The unwind information for mapped code.
    pub fn lend(self, backing: Backing) -> Option<UnwindInfoRef<'i>> {
        self.processes.spaces.lend(backing)
    }

    /// Processes in which a mapping was replaced since the last call.
    pub fn take_remapped(&mut self) -> Vec<u32> {
        self.processes.spaces.take_remapped()
    }

    /// Anonymous memory with a copy of a file's text since the last call, as that file's mapping, with its process.
    pub fn take_copied_text(&mut self) -> Vec<(u32, Vma)> {
        self.processes.spaces.take_copied_text()
    }

    /// Processes that have mapped a known interpreter since the last call, and an address in it.
    pub fn take_interpreted(&mut self) -> Vec<(u32, u64)> {
        self.processes.spaces.take_interpreted()
    }
    /// Keeps memory from which the name of an interpreted function can be read, until there is a frame of it.
    pub fn learn_code(&mut self, pid: u32, code: CodeId, memory: Vec<(u64, Vec<u8>)>) {
        self.processes.meet_process(self.profile, pid);
        if let Some(space) = self.processes.tasks.space(pid) {
            self.processes.spaces.get(space).scripts.borrow_mut().learn(code, memory);
        }
    }
}
