//! What a recorder of this machine tells and asks beside records and samples.

use crate::cgroups::EndedCgroups;
use std::collections::HashSet;
use std::ops::Range;

use plumb_capture_api::{CodeId, Counted, TimeOff, UnwindInfoRef};
use plumb_process::{Backing, Program, Vma};
use plumb_profile::{EventId, Meta, ProcessId, Profile, Queued, Sample};
use plumb_table_cache::TableCache;

use crate::{Ingest, weights};

/// A profile that was taken out while the recording goes on.
#[derive(Debug)]
pub struct TakenProfile {
    /// What was recorded since the last time.
    pub profile: Profile,
    /// Its processes that go on.
    pub running: HashSet<ProcessId>,
    /// In which control groups processes ended since the last time, where that was told ([`Ingest::ended_in`]).
    pub cgroups: EndedCgroups,
}

/// Whom it records.
impl Ingest {
    /// Follows `pid` and whatever it forks from now on. Has no effect on what is kept under [`Filter::All`](crate::Filter::All).
    pub fn follow(&mut self, pid: u32) {
        self.processes.scope.follow(pid);
    }

    /// The followed processes, also those that have ended.
    pub fn followed(&self) -> impl Iterator<Item = u32> {
        self.processes.scope.followed()
    }

    /// Follows processes that exec this program from now on. Without effect under [`Filter::All`](crate::Filter::All).
    pub fn await_program(&mut self, program: Program) {
        self.processes.scope.await_program(program);
    }

    /// Processes that began to run it since the last call.
    pub fn take_arrived(&mut self) -> Vec<u32> {
        self.processes.scope.take_arrived()
    }

    /// Learns names, parents and mappings of a running process and its threads from /proc
    /// ([`Source::Live`](crate::Source::Live) only): for processes that started before the recording.
    pub fn read_process(&mut self, pid: u32) {
        self.processes.read_process(&mut self.out.profile, pid);
    }

    /// [`Ingest::read_process`] for all that run.
    pub fn read_all_processes(&mut self) {
        if self.processes.scope.is_live() {
            plumb_process::pids().into_iter().for_each(|pid| self.read_process(pid));
        }
    }
}

/// What samples count.
impl Ingest {
    /// Has an event's samples of a time weigh `counted` together, as the kernel counted, each in proportion: what it says that a
    /// sample of a software event stands for is too much where a process shares its processor, as then the event begins anew at
    /// each switch with the period of now (perf_swevent_add in kernel/events/core.c), and lost samples are in no other.
    pub fn scale(&mut self, event: EventId, time_ns: Range<u64>, counted: u64) {
        weights::scale(&mut self.out.profile, event, time_ns, counted);
    }

    /// Likewise of all samples of an event, if they weigh more than was counted.
    pub fn scale_down(&mut self, event: EventId, counted: u64) {
        let samples = self.out.profile.samples.iter().filter(|sample| sample.event == event);
        if samples.map(|sample| u128::from(sample.weight)).sum::<u128>() > u128::from(counted) {
            self.scale(event, 0..u64::MAX, counted);
        }
    }

    /// Likewise for two times, one after the other. Where all samples of one were lost, those of the other stand for it as well.
    pub fn scale_parts(&mut self, event: EventId, parts: [(Range<u64>, u64); 2]) {
        weights::scale_parts(&mut self.out.profile, event, parts);
    }

    /// Adds samples that are like one before.
    pub fn counted(&mut self, first: Sample, counted: &Counted) {
        self.weights.add_counted(&mut self.out, first, counted);
    }

    /// Has samples of the event `blocked` weigh what is told by [`Ingest::time_off`], and those of `waited` what of it was spent
    /// without a processor only.
    pub fn weigh_by_time_off(&mut self, blocked: EventId, waited: EventId) {
        self.weights.weigh_by_time_off(blocked, waited);
    }

    /// Tells how long a thread was off. `like`: a sample with the stack at which that began; `None`: if it has any, a record tells of it.
    pub fn time_off(&mut self, like: Option<Sample>, time: TimeOff) {
        self.weights.add_time_off(&mut self.out, like, time);
    }

    /// Tells of times of a thread, added up, that have no stack.
    pub fn times_without_stack(&mut self, sum: &TimeOff) {
        self.weights.add_times_without_stack(sum);
    }

    /// Counts samples that the kernel dropped, where the caller learns of them by other means than records.
    pub fn lost(&mut self, samples: u64) {
        self.out.statistics.lost_samples += samples;
    }
}

/// Accounts of tasks.
impl Ingest {
    /// A task has used so much since it was forked, and has just exec'd, or ended.
    pub fn spent(&mut self, task: (u32, u32), runtime_ns: u64, at_exec: bool) {
        let accounts = &mut self.processes.lives.accounts;
        accounts.spent(&self.processes.tasks, &mut self.out.profile, task, (runtime_ns, at_exec));
    }

    /// A process has ended in a control group with this path.
    pub fn ended_in(&mut self, pid: u32, path: String) {
        self.cgroups.add(pid, path);
    }

    /// What was told of that since the last time.
    pub fn take_cgroups(&mut self) -> EndedCgroups {
        std::mem::take(&mut self.cgroups)
    }

    /// Of how many lives that have ended the account is still to come.
    pub fn open_accounts(&self) -> usize {
        self.processes.lives.accounts.open()
    }

    /// Begins to look at how long threads wait for a processor: at those that are kept now, and what they start.
    pub fn watch_queues(&mut self) {
        self.processes.watch_queues();
    }

    /// Likewise for the threads of a process that is kept from now on.
    pub fn watch_queues_of(&mut self, pid: u32) {
        self.processes.watch_queues_of(pid);
    }

    /// Looks at all threads again, if that is due or `now`.
    pub fn look_at_queues(&mut self, now: bool) {
        self.processes.look_at_queues(now);
    }

    /// All that was seen, up to a time. `None`: it was not looked, or the kernel doesn't tell.
    pub fn queued(&self, end_ns: u64) -> Option<Queued> {
        self.processes.queued(end_ns)
    }
}

/// Code that is mapped.
impl Ingest {
    /// Has rules found by tables that were kept, where many are looked up, and has such tables made.
    pub fn use_tables(&mut self, kept: TableCache) {
        self.processes.spaces.use_tables(kept);
    }

    /// Looks after tables and unwind information, from time to time: no more than so many bytes of it are kept that are not in use.
    pub fn look_at_tables(&mut self, most_bytes: usize) {
        self.processes.spaces.look_at_tables(most_bytes);
    }

    /// Forgets unwind information that is in use, if there is far more than [`Ingest::look_at_tables`] allowed last.
    pub fn make_room(&mut self) {
        self.processes.spaces.make_room();
    }

    /// Whether stacks that end for want of unwind information are scanned for return addresses wherever that is
    /// ([`plumb_unwind::scan`]): frames found that way, marked as [`plumb_profile::Found::Scan`], are guesses. Unless asked for,
    /// stacks that end in code of files are, and what is found there has to be confirmed by more ([`plumb_unwind::scan::resume`],
    /// checked).
    pub fn scan_stacks(&mut self, wanted: bool) {
        self.processes.spaces.scan_stacks(wanted);
    }

    /// What a process has mapped at an address.
    pub fn mapped_at(&mut self, pid: u32, address: u64) -> Option<Backing> {
        self.processes.mapped_at(&mut self.out.profile, pid, address)
    }

    /// Its code.
    pub fn lend(&self, backing: Backing) -> Option<UnwindInfoRef<'_>> {
        self.processes.spaces.lend(backing)
    }

    /// Processes of which something was mapped over another mapping since the last call.
    pub fn take_remapped(&mut self) -> Vec<u32> {
        self.processes.spaces.take_remapped()
    }

    /// Anonymous memory that holds a copy of a file's text since the last call, as that file's mapping, and the process that has it.
    pub fn take_copied_text(&mut self) -> Vec<(u32, Vma)> {
        self.processes.spaces.take_copied_text()
    }

    /// Processes that have mapped a known interpreter since the last call, and an address in it.
    pub fn take_interpreted(&mut self) -> Vec<(u32, u64)> {
        self.processes.spaces.take_interpreted()
    }

    /// The interpreters that were sampled and are not known.
    pub fn unknown_interpreters(&self) -> impl Iterator<Item = &str> {
        self.processes.spaces.unknown_interpreters()
    }

    /// Keeps memory that says what code of an interpreted program is called until there is a frame of it.
    pub fn learn_code(&mut self, pid: u32, code: CodeId, memory: Vec<(u64, Vec<u8>)>) {
        self.processes.meet_process(&mut self.out.profile, pid);
        if let Some(space) = self.processes.tasks.space(pid) {
            self.processes.spaces.get(space).scripts.borrow_mut().learn(code, memory);
        }
    }
}

/// What is taken out of the profile before the end.
impl Ingest {
    /// Takes out the profile so far and begins a new one, with the same events and nothing else: no id of the old one is remembered.
    /// Its samples are in the order in which they came; where they weigh times off the processor, those of times that were told are in it.
    /// Figures ([`Ingest::statistics`]) go on.
    ///
    /// `kept`: samples that later ones will be like ([`Ingest::counted`], [`Ingest::time_off`]): they get the ids of the new profile, which has
    /// what they need.
    pub fn take<'s>(&mut self, kept: impl IntoIterator<Item = &'s mut Sample>) -> TakenProfile {
        self.settle_all();
        let mut without_time = self.weights.take_times(&mut self.processes, &mut self.out.profile);
        let kept = kept.into_iter().map(|sample| -> &mut Sample { sample }).chain(&mut without_time);
        let new = self.out.profile.with_rows_of(kept);
        let running = self.processes.forget_rows();
        self.stacks.forget_rows();
        self.out.statistics.forget_files();
        self.processes.tasks.find_rows(&new);
        let profile = std::mem::replace(&mut self.out.profile, new);
        without_time.iter().for_each(|&sample| self.out.profile.samples.push(sample));
        TakenProfile { profile, running, cgroups: self.take_cgroups() }
    }

    /// Goes on with samples that were taken out before, in a profile with the same events. Processes go on in their rows, if these are
    /// there. Only right after [`Ingest::take`]: what came since is forgotten.
    pub fn put_back(&mut self, past: Profile) {
        let meta: Meta = std::mem::take(&mut self.out.profile.meta);
        self.out.profile = Profile { meta, ..past };
        self.processes.tasks.find_rows(&self.out.profile);
    }

    /// Forgets all stacks and samples, which may be taken out of the profile next.
    pub fn end_part(&mut self) {
        self.settle_all();
        self.processes.tasks.threads.values_mut().for_each(|thread| thread.stacks.forget_samples());
    }

    /// Takes out of the profile what is known of processes that have ended, and is kept elsewhere by now: their lives and mappings. What
    /// the kernel may still tell of a life comes milliseconds after its end.
    pub fn forget_ended(&mut self) {
        self.processes.forget_ended(&mut self.out.profile, self.now_ns);
    }
}
