//! One sample: whose it is, its stack, what it counts as.

use std::ops::Range;

use plumb_capture_api::Script;
use plumb_profile::{EventId, Frame, ProcessId, Sample, StackId, Truncation};

use super::exec::Pending;
use super::user::Ending;
use super::{Filter, Ingest, Source, kernel, wire};

/// What perf gives as pid and tid of a task that has been reaped already.
const REAPED: u32 = u32::MAX;

impl Ingest {
    /// A sample of this thread at about this time, of which there will be a record, interrupted this system call if it was taken in
    /// the kernel.
    pub fn is_in_call(&mut self, tid: u32, time_ns: u64, syscall: Option<u32>) {
        self.tasks.calls.keep(tid, time_ns, syscall);
    }

    /// Likewise is of one with these frames of an interpreted program.
    pub fn is_in_script(&mut self, tid: u32, script: Script) {
        self.tasks.scripts.keep(tid, script.time_ns, script);
    }

    pub(super) fn sample(&mut self, event: EventId, sample: &wire::Sample<'_>) {
        self.came(event, 1);
        let syscall = self.tasks.calls.of(sample.tid, sample.time).flatten().filter(|_| sample.in_kernel);
        let Some((pid, tid)) = self.task_of(event, sample) else {
            self.statistics.filtered += 1;
            return;
        };
        self.leaf_first.clear();
        self.base = None;
        self.kept = 0;
        self.now_ns = sample.time;
        self.kernel_part(event, sample);
        let kernel_frames = self.leaf_first.len();
        let ending = if pid == 0 { Ending::Absent } else { self.user_part(sample, pid, tid) };
        let sample = self.make_sample((event, syscall), (pid, tid), sample, kernel_frames, ending);
        self.profile.samples.push(sample);
    }

    /// Makes a sample, whose frames are in `self.leaf_first`, to be put into the profile next. With its event comes the system call
    /// that it is known to have interrupted.
    pub(super) fn make_sample(
        &mut self,
        (event, syscall): (EventId, Option<u32>),
        (pid, tid): (u32, u32),
        sample: &wire::Sample<'_>,
        kernel_frames: usize,
        mut ending: Ending,
    ) -> Sample {
        if self.is_old_image(pid, sample, ending) {
            self.leaf_first.truncate(kernel_frames);
            self.kept = 0;
            self.tasks.threads.entry(tid).or_default().last.forget();
            ending = Ending::Absent;
        }
        // Nothing at all to show: say so.
        if self.leaf_first.is_empty() && ending == Ending::Absent {
            ending = Ending::Truncation(Truncation::NoUserStack, None);
        }
        let stack = self.finish_stack(tid, sample, kernel_frames, ending);
        let (thread, process) = self.tasks.rows(&mut self.profile, tid);
        self.note_space(pid, process);
        self.note_life(pid, process);
        let &wire::Sample { time: time_ns, cpu, period: weight, .. } = sample;
        Sample { time_ns, thread, cpu, event, stack, syscall, weight }
    }

    /// Has an event's samples of a time weigh `counted` together, as the kernel counted, each in proportion: what it says that a
    /// sample of a software event stands for is too much where a process shares its processor, as then the event begins anew at
    /// each switch with the period of now (perf_swevent_add in kernel/events/core.c), and lost samples are in no other.
    pub fn scale(&mut self, event: EventId, time_ns: Range<u64>, counted: u64) {
        let samples = std::mem::take(&mut self.profile.samples);
        let is_scaled = |sample: &Sample| sample.event == event && time_ns.contains(&sample.time_ns);
        let sum: u128 = samples.iter().filter(is_scaled).map(|sample| u128::from(sample.weight)).sum();
        let (mut seen, mut given) = (0_u128, 0_u64);
        for mut sample in samples.iter() {
            if is_scaled(&sample) && sum > 0 {
                seen += u128::from(sample.weight);
                // No more than `counted`, as `seen` is no more than `sum`.
                let due = (seen * u128::from(counted) / sum) as u64;
                sample.weight = due - given;
                given = due;
            }
            self.profile.samples.push(sample);
        }
    }

    /// Likewise for two times, one after the other. Where all samples of one were lost, those of the other stand for it as well.
    pub fn scale_parts(&mut self, event: EventId, parts: [(Range<u64>, u64); 2]) {
        let has_weight = |time: &Range<u64>| {
            let is_of_it = |sample: &Sample| sample.event == event && time.contains(&sample.time_ns);
            self.profile.samples.iter().filter(is_of_it).any(|sample| sample.weight > 0)
        };
        if parts.iter().any(|(time, counted)| *counted > 0 && !has_weight(time)) {
            let [(first, before), (second, since)] = parts;
            return self.scale(event, first.start..second.end, before.saturating_add(since));
        }
        parts.into_iter().for_each(|(time, counted)| self.scale(event, time, counted));
    }

    /// Counts how a stack ended and puts it into the profile.
    fn finish_stack(
        &mut self,
        tid: u32,
        sample: &wire::Sample<'_>,
        kernel_frames: usize,
        ending: Ending,
    ) -> Option<StackId> {
        self.statistics.samples += 1;
        let thread = self.tasks.threads.entry(tid).or_default();
        let Ending::Truncation(cut, blamed) = ending else {
            self.statistics.complete += 1;
            if ending == Ending::Root {
                thread.pending.clear();
            }
            return thread.last.intern(&mut self.profile, &self.leaf_first, self.base, self.kept);
        };
        *self.statistics.cut.entry((cut, blamed)).or_default() += 1;
        let marker = self.profile.frames.add(Frame::marker(cut, blamed));
        if Self::may_be_in_exec(sample) {
            let kernel_only = self.profile.add_stack(&self.leaf_first[..kernel_frames]);
            thread.pending.push(Pending {
                sample: self.profile.samples.len(),
                kernel_only,
                cut: (cut, blamed),
            });
        } else {
            thread.pending.clear();
        }
        self.leaf_first.push(marker);
        thread.last.intern(&mut self.profile, &self.leaf_first, self.base, 0)
    }

    /// Process and thread of a sample; `None` if the filter keeps it out.
    pub(super) fn task_of(&mut self, event: EventId, sample: &wire::Sample<'_>) -> Option<(u32, u32)> {
        let (mut pid, mut tid) = (sample.pid, sample.tid);
        if self.is_idle(event, sample) {
            return None;
        }
        if pid == REAPED {
            // The end of an exit, after the task has lost its number: it is the last that exited on this processor.
            (pid, tid) = *self.exits.last.get(&sample.cpu)?;
        }
        self.meet_process(pid);
        if let Filter::Tree(_) = self.filter
            && !self.tree.follows(pid)
        {
            return None;
        }
        if self.tasks.threads.get(&tid).is_none_or(|thread| thread.pid != pid) {
            self.meet_thread(pid, tid);
        }
        Some((pid, tid))
    }

    /// Whether a sample of this machine is of the idle task, which runs when nobody does. A hardware counter may charge the target with it
    /// as the processor switches to or from it; the clock leaves it out itself. A task of another pid namespace has pid 0 too, but runs
    /// user code.
    fn is_idle(&self, event: EventId, sample: &wire::Sample<'_>) -> bool {
        self.source == Source::Live
            && sample.pid == 0
            && sample.in_kernel
            && !self.ways.keeps_idle.contains(&event)
    }

    /// Learns of a process, unless a record told of it.
    pub(super) fn meet_process(&mut self, pid: u32) {
        if self.tasks.processes.contains_key(&pid) {
            return;
        }
        if self.source == Source::Live && pid != 0 {
            let is_tree = matches!(self.filter, Filter::Tree(_));
            if is_tree && plumb_process::parent(pid).is_some_and(|parent| self.tree.follows(parent)) {
                self.tree.follow(pid);
            }
            if !is_tree || self.tree.follows(pid) {
                self.read_process(pid);
            }
        }
        self.tasks.processes.entry(pid).or_default();
    }

    fn kernel_part(&mut self, event: EventId, sample: &wire::Sample<'_>) {
        if let Some(callchain) = sample.callchain {
            let links = || kernel::links(callchain).filter(|link| link.in_kernel);
            let before = self.ways.before(event, links().map(|link| link.address));
            for link in links().skip(before) {
                let frame = self.kernel.frame(&mut self.profile, link.address, link.is_return);
                self.leaf_first.push(frame);
            }
        }
        if let (true, true, Some(ip)) = (self.leaf_first.is_empty(), sample.in_kernel, sample.ip) {
            let frame = self.kernel.frame(&mut self.profile, ip, false);
            self.leaf_first.push(frame);
        }
    }

    /// Remembers which memory a process row had, for the profile's mappings.
    pub(super) fn note_space(&mut self, pid: u32, process: ProcessId) {
        let Some(space) = self.tasks.processes.get(&pid).and_then(|process| process.space) else { return };
        self.note_interpreter(space);
        let used = &self.spaces.get(space).used;
        let noted = self.noted.entry(process).or_default();
        if *noted == used.len() {
            return;
        }
        self.profile.mappings.extend(used.iter().skip(*noted).map(|used| plumb_profile::Mapping {
            process,
            dso: used.dso,
            start: used.start,
            end: used.end,
            bias: used.bias,
        }));
        *noted = used.len();
    }
}
