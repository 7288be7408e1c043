//! Samples whose stacks were walked in the kernel, and what it needs to do so.

use linux_perf_event_reader::constants::PERF_CONTEXT_MAX;
use plumb_capture_api::{CodeSegment, Counted, Parts, UnwindInfoRef, WalkedSample};
use plumb_process::Backing;
use plumb_profile::{EventId, Found, Sample, Truncation};

use super::script::Rest;
use super::spaces::{SpaceId, frame_key};
use super::user::Ending;
use super::wire::{self, Stack};
use super::{Ingest, Source};

/// A user frame that is no return address has this bit.
const NO_RETURN: u64 = 1 << 63;
/// One that is a round of an interpreter's loop of which script frames tell has this one.
const LOOP: u64 = 1 << 62;
/// One that was found by scanning the stack has this one.
const SCANNED: u64 = 1 << 61;

impl Ingest {
    /// Takes a sample that was walked already. Returns what it became, unless it is filtered out.
    pub fn walked(&mut self, event: EventId, walked: &WalkedSample, parts: Parts<'_>) -> Option<Sample> {
        let sample = wire::Sample {
            ip: None,
            pid: walked.pid,
            tid: walked.tid,
            time: walked.time_ns,
            cpu: walked.cpu,
            period: walked.period,
            callchain: None,
            asked_registers: false,
            registers: None,
            stack: Stack::NotAsked,
            in_kernel: walked.in_kernel,
        };
        self.came(event, 1);
        let Some((pid, tid)) = self.task_of(event, &sample) else {
            self.statistics.filtered += 1;
            return None;
        };
        self.leaf_first.clear();
        self.base = None;
        self.kept = 0;
        self.now_ns = walked.time_ns;
        // The kernel marks in a call chain whose addresses follow, in the place of an address.
        let kernel = || parts.kernel.iter().copied().filter(|&address| address < PERF_CONTEXT_MAX);
        let before = self.ways.before(event, kernel());
        for (index, address) in kernel().enumerate().skip(before) {
            let frame = self.kernel.frame(&mut self.profile, address, index > 0);
            self.leaf_first.push(frame);
        }
        let kernel_frames = self.leaf_first.len();
        let ending = match walked.has_user && pid != 0 {
            true => self.walked_user((pid, tid), parts, walked.script_is_cut),
            false => Ending::Absent,
        };
        let sample = self.make_sample((event, walked.syscall), (pid, tid), &sample, kernel_frames, ending);
        if !walked.is_stack_only {
            self.profile.samples.push(sample);
        }
        Some(sample)
    }

    /// The user frames of a complete stack, but for those that were made for the thread's last one.
    fn walked_user(&mut self, (pid, tid): (u32, u32), parts: Parts<'_>, script_is_cut: bool) -> Ending {
        let own_space = |ingest: &Self| ingest.tasks.processes.get(&pid).and_then(|process| process.space);
        let is_plain = parts.script.is_empty();
        if is_plain && own_space(self).is_some_and(|space| self.new_frames(space, tid, parts.user)) {
            return Ending::Root;
        }
        let mut space = own_space(self);
        if space.is_none_or(|space| !self.knows_all(space, parts.user)) && self.refresh(pid) {
            space = own_space(self);
        }
        let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
        let mut script = parts.script;
        let loops = self.loops(space, parts);
        let mut was_round = false;
        for (index, &word) in parts.user.iter().enumerate() {
            let id = self.user_frame(space, address(word), is_return(word), found_at(index, word));
            let is_round = loops.get(index) == Some(&true) && !script.is_empty();
            // A stub that runs the function: its name is that of the frame that is there.
            if was_round && self.is_anonymous(space, address(word)) {
                was_round = false;
                continue;
            }
            was_round = is_round;
            if !is_round {
                self.leaf_first.push(id);
                continue;
            }
            let last = script.iter().position(|place| place.is_entry);
            let (round, rest) = script.split_at(last.map_or(script.len(), |last| last + 1));
            script = rest;
            let rest = last.is_none().then_some(if script_is_cut { Rest::TooMany } else { Rest::Unreadable });
            let mapping = self.spaces.get(space).mappings.find(address(word)).copied();
            self.script_round((pid, space), (id, mapping), round, rest);
        }
        let rest = script_is_cut.then_some(Rest::TooMany);
        self.unplaced_script((pid, space), script, rest);
        Ending::Root
    }

    /// Which user frames are rounds of an interpreter's loop that script frames are of: those that are marked; where each frame is a
    /// round by itself none is, and there are as many in the loop, or one more that has no frame yet.
    fn loops(&self, space: SpaceId, parts: Parts<'_>) -> Vec<bool> {
        let mut loops: Vec<bool> = parts.user.iter().map(|word| word & LOOP != 0).collect();
        if loops.contains(&true) || parts.script.iter().any(|place| !place.is_entry) {
            return loops;
        }
        for (is_loop, &word) in loops.iter_mut().zip(parts.user) {
            *is_loop = self.is_in_loop(space, address(word).wrapping_sub(is_return(word).into()));
        }
        skip_beginning(&mut loops, parts.script.len());
        loops
    }

    /// Whether an address is in the loop of an interpreter.
    pub(super) fn is_in_loop(&self, space: SpaceId, at: u64) -> bool {
        self.spaces.get(space).mappings.find(at).is_some_and(|mapping| self.code.is_in_loop(mapping, at))
    }

    /// Whether an address is in a file with a known interpreter.
    pub(super) fn has_interpreter(&self, space: SpaceId, at: u64) -> bool {
        match self.spaces.get(space).mappings.find(at).map(|mapping| mapping.backing) {
            Some(Backing::File(id)) => self.code.interpreter(id).is_some(),
            _ => false,
        }
    }

    /// Whether there is code without a file at an address.
    pub(super) fn is_anonymous(&self, space: SpaceId, at: u64) -> bool {
        self.spaces.get(space).mappings.find(at).is_some_and(|mapping| mapping.backing == Backing::Anonymous)
    }

    /// The frames that were not made for the thread's last stack. `false`, and nothing is done, if it is not known what one
    /// of them is in.
    fn new_frames(&mut self, space: SpaceId, tid: u32, user: &[u64]) -> bool {
        let Some(thread) = self.tasks.threads.get_mut(&tid) else { return false };
        let kernel_frames = self.leaf_first.len();
        let kept = thread.last.kept_words(user, space, self.spaces.get(space).changes);
        for (index, &word) in user.iter().enumerate().take(user.len() - kept) {
            let (pc, is_return, found) = (address(word), is_return(word), found_at(index, word));
            let key = frame_key(pc, is_return, found as u8);
            let at = self.spaces.get(space);
            let id = match at.frames.get(&key) {
                Some(&id) => id,
                None if at.mappings.find(pc.wrapping_sub(is_return.into())).is_some() => {
                    self.new_user_frame(space, key, pc, is_return, found)
                }
                None => {
                    self.leaf_first.truncate(kernel_frames);
                    self.tasks.threads.entry(tid).or_default().last.forget();
                    return false;
                }
            };
            self.leaf_first.push(id);
        }
        self.kept = kept;
        true
    }

    /// Whether it is known what all these frames are in. Frames that were made before are in something.
    fn knows_all(&self, space: SpaceId, user: &[u64]) -> bool {
        let space = self.spaces.get(space);
        let call = |word: u64| address(word).wrapping_sub(is_return(word).into());
        user.iter().enumerate().all(|(index, &word)| {
            let key = frame_key(address(word), is_return(word), found_at(index, word) as u8);
            space.frames.contains_key(&key) || space.mappings.find(call(word)).is_some()
        })
    }

    /// Adds samples that are like one before.
    pub fn counted(&mut self, first: Sample, counted: &Counted) {
        if counted.samples == 0 {
            return;
        }
        self.came(first.event, counted.samples);
        self.statistics.samples += counted.samples;
        self.statistics.complete += counted.samples;
        // One row for each, as readers count rows.
        let each = counted.period / counted.samples;
        let rest = counted.period % counted.samples;
        let into = self.ways.times_off.as_mut().map_or(&mut self.profile.samples, |times| &mut times.known);
        for index in 0..counted.samples {
            let weight = each + if index == 0 { rest } else { 0 };
            into.push(Sample { time_ns: counted.time_ns, weight, ..first });
        }
    }

    /// What a process has mapped at an address.
    pub fn mapped_at(&mut self, pid: u32, address: u64) -> Option<Backing> {
        if self.source == Source::Live && !self.tasks.processes.contains_key(&pid) {
            self.read_process(pid);
        }
        let space = self.tasks.processes.get(&pid)?.space?;
        if self.spaces.get(space).mappings.find(address).is_none() {
            self.refresh(pid);
        }
        let space = self.tasks.processes.get(&pid)?.space?;
        let mapping = *self.spaces.get(space).mappings.find(address)?;
        if let Backing::File(id) = mapping.backing {
            let executable = self.tasks.processes.get(&pid).map(|process| &*process.executable);
            self.code.look_for_interpreter(id, executable.unwrap_or_default());
        }
        Some(mapping.backing)
    }

    /// Its code.
    pub fn lend(&self, backing: Backing) -> Option<UnwindInfoRef<'_>> {
        self.code.lend(backing)
    }

    /// Processes of which something was mapped over another mapping since the last call.
    pub fn take_remapped(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.remapped)
    }

    /// Notes whether a new mapping takes the place of another one.
    pub(super) fn note_remapped(&mut self, pid: u32, space: SpaceId, new: &plumb_process::Mapping) {
        let mappings = &self.spaces.get(space).mappings;
        let is_same = mappings.find(new.start) == Some(new);
        if self.source == Source::Live && !is_same && mappings.overlaps(new.start..new.end) {
            self.remapped.push(pid);
        }
    }
}

/// Leaves out the innermost round if there is one more than there are frames: it has no frame yet, or no more.
pub(super) fn skip_beginning(loops: &mut [bool], frames: usize) {
    if loops.iter().filter(|&&is_loop| is_loop).count() == frames + 1
        && let Some(innermost) = loops.iter_mut().find(|is_loop| **is_loop)
    {
        *innermost = false;
    }
}

fn address(word: u64) -> u64 {
    word & !(NO_RETURN | LOOP | SCANNED)
}

fn is_return(word: u64) -> bool {
    word & NO_RETURN == 0
}

/// How the frame of a stack walked in the kernel was found.
fn found_at(index: usize, word: u64) -> Found {
    match index {
        0 => Found::Sampled,
        _ if word & SCANNED != 0 => Found::Scan,
        _ => Found::Cfi,
    }
}

impl super::code::Code {
    /// The unwind information of a file, and where its code is.
    fn lend(&self, backing: Backing) -> Option<UnwindInfoRef<'_>> {
        match backing {
            Backing::Anonymous => None,
            Backing::Vdso => self.vdso_parts(),
            Backing::File(id) => {
                let (build_id, segments) =
                    self.with_elf(id, |elf| (elf.build_id.clone(), segments_of(elf)))?;
                let interpreter = self.interpreter(id).map(|interpreter| interpreter.root());
                Some(UnwindInfoRef {
                    module: self.module(id)?,
                    build_id,
                    segments,
                    interpreter,
                    shelf: self.shelf(),
                })
            }
        }
    }
}

/// What of a file is code.
pub(super) fn segments_of(elf: &plumb_process::Elf) -> Vec<CodeSegment> {
    elf.code().map(|(address, offset, size)| CodeSegment { address, offset: offset.0, size }).collect()
}
