//! The share of complete stacks in a profile, and the causes of truncation by reason and file.

use std::collections::{BTreeMap, HashMap};

use plumb_analyze::View;
use plumb_capture_perf::MAX_STACK_COPY;
use plumb_profile::{DsoId, DsoKind, EventId, Found, Profile, Sample, StackId, Truncation};

use crate::{
    compilers::{is_haskell, is_poly_ml},
    runtimes::Runtime,
    told::Told,
};
use plumb_analyze::{is_off_cpu, part_of};

/// Remedies for code of a file without unwind information.
const TABLES: &str = "build it with -fasynchronous-unwind-tables or -fno-omit-frame-pointer";
const TABLES_OR_SCAN: &str =
    "build it with -fasynchronous-unwind-tables or -fno-omit-frame-pointer, or guess callers with --scan";
/// Remedies for code that no compiler option and no scan helps.
const HASKELL: &str = "none: Haskell keeps callers on a stack of its own, which plumb does not read";
const POLY_ML: &str = "none: code of Poly/ML has neither unwind information nor frame pointers";
const SBCL: &str = "none: SBCL runs Lisp on a stack of its own, and plumb does not find the way back from it";

/// Numbers of samples by the completeness of their stacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// All samples.
    pub samples: u64,
    /// Samples with a stack that reaches its root.
    pub complete: u64,
    /// Complete ones with frames taken from earlier samples.
    pub stitched: u64,
    /// Complete ones with a caller that was found by scanning the stack.
    pub scanned: u64,
    /// Complete ones with script frames whose native frames are not known.
    pub apart: u64,
    /// Causes of truncation, most frequent first.
    pub causes: Vec<Cause>,
}

/// A cause of truncated stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The reason.
    pub cut: Truncation,
    /// The file responsible, if any.
    pub file: Option<String>,
    /// Number of samples.
    pub samples: u64,
    /// Whether stacks were copied up to the kernel's limit.
    full_copy: bool,
    /// Whether stacks were unwound in the kernel where possible.
    by_kernel: bool,
    /// Whether samples are off-CPU times.
    off_cpu: bool,
    /// Whether stacks were scanned wherever unwind information is missing.
    by_guesses: bool,
    /// Remedy for JIT code of a runtime, or code of a compiler that writes no unwind information.
    runtime: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Complete { stitched: bool, scanned: bool, apart: bool },
    Truncation(Truncation, Option<DsoId>),
}

impl Completeness {
    /// Counts the stacks of a profile.
    pub fn of(profile: &Profile) -> Self {
        StackCounts::default().and(profile).stacks(profile)
    }

    /// Counts the stacks of a view's samples.
    pub fn of_view(view: &View<'_>) -> Self {
        let samples = view.samples().map(|kept| kept.sample);
        StackCounts::default().with(view.profile(), samples).stacks(view.profile())
    }

    /// Shares of samples whose complete stacks do not rely on unwind information alone, such as `3% stitched from earlier samples`.
    pub fn limits(&self) -> Vec<String> {
        let limits = [
            (self.stitched, "stitched from earlier samples"),
            (self.scanned, "with a caller by stack scan"),
            (self.apart, "with script functions apart from the native frames that ran them"),
        ];
        let limits = limits.into_iter().filter(|(count, _)| *count > 0);
        limits.map(|(count, how)| format!("{} {how}", part_of(count, self.samples))).collect()
    }
}

/// Counts of the stacks of a profile, or of successive parts of one.
#[derive(Clone, Debug, Default)]
pub struct StackCounts {
    samples: u64,
    complete: u64,
    stitched: u64,
    scanned: u64,
    apart: u64,
    causes: BTreeMap<(Truncation, Option<DsoId>), u64>,
    /// Whether stacks were unwound in the kernel where possible.
    pub by_kernel: bool,
    /// Whether stacks were scanned wherever unwind information is missing.
    by_guesses: bool,
    /// Number of samples of each event, and their total weight.
    events: BTreeMap<EventId, (u64, u64)>,
}

impl StackCounts {
    /// Adds the samples that the profile has now.
    pub fn and(&self, profile: &Profile) -> Self {
        self.with(profile, profile.samples.iter())
    }

    fn with(&self, profile: &Profile, samples: impl Iterator<Item = Sample>) -> Self {
        let mut outcomes: HashMap<StackId, Outcome> = HashMap::new();
        let mut stacks = self.clone();
        for sample in samples {
            stacks.samples += 1;
            let event = stacks.events.entry(sample.event).or_default();
            *event = (event.0 + 1, event.1.saturating_add(sample.weight));
            let outcome = match sample.stack {
                Some(stack) => *outcomes.entry(stack).or_insert_with(|| outcome(profile, stack)),
                None => Outcome::Truncation(Truncation::NoUserStack, None),
            };
            match outcome {
                Outcome::Complete { stitched, scanned, apart } => {
                    stacks.complete += 1;
                    stacks.stitched += u64::from(stitched);
                    stacks.scanned += u64::from(scanned);
                    stacks.apart += u64::from(apart);
                }
                Outcome::Truncation(cut, dso) => *stacks.causes.entry((cut, dso)).or_default() += 1,
            }
        }
        stacks
    }

    /// Number of samples of an event, and their total weight.
    pub fn of_event(&self, event: EventId) -> (u64, u64) {
        self.events.get(&event).copied().unwrap_or_default()
    }

    /// Sets whether stacks were unwound in the kernel, and whether they were scanned for guesses.
    pub fn walked(self, by_kernel: bool, by_guesses: bool) -> Self {
        Self { by_kernel, by_guesses, ..self }
    }

    /// The summary, with the files responsible.
    pub fn stacks(self, profile: &Profile) -> Completeness {
        let Self { samples, complete, stitched, scanned, apart, causes, by_kernel, by_guesses, .. } = self;
        let mut causes = by_file(profile, causes);
        let off_cpu = is_off_cpu(profile);
        for cause in &mut causes {
            cause.by_kernel = by_kernel || profile.meta.by_kernel;
            (cause.by_guesses, cause.off_cpu) = (by_guesses, off_cpu);
        }
        Completeness { samples, complete, stitched, scanned, apart, causes }
    }
}

fn outcome(profile: &Profile, stack: StackId) -> Outcome {
    let root = &profile.frames[profile.stacks.root(stack)];
    match root.cut() {
        Some(Truncation::OtherStack) if root.dso.is_none() => {
            // The frames of the code that switched to the other stack.
            let frames = profile.frames_of(Some(stack)).map(|frame| profile.frames[frame]);
            let outermost = frames.filter(|frame| frame.cut().is_none()).last();
            Outcome::Truncation(Truncation::OtherStack, outermost.and_then(|frame| frame.dso))
        }
        Some(cut) => Outcome::Truncation(cut, root.dso),
        None if profile.frames_of(Some(stack)).any(|frame| profile.is_more_frames(frame)) => {
            Outcome::Truncation(Truncation::TooManyFrames, None)
        }
        None => {
            let has =
                |found| profile.frames_of(Some(stack)).any(|frame| profile.frames[frame].found == found);
            let apart = profile.frames_of(Some(stack)).any(|frame| profile.is_apart(frame));
            Outcome::Complete { stitched: has(Found::Stitched), scanned: has(Found::Scan), apart }
        }
    }
}

fn by_file(profile: &Profile, counts: BTreeMap<(Truncation, Option<DsoId>), u64>) -> Vec<Cause> {
    let mut merged: BTreeMap<(Truncation, Option<String>), u64> = BTreeMap::new();
    let mut runtimes: BTreeMap<String, &'static str> = BTreeMap::new();
    for ((cut, dso), samples) in counts {
        // The depth of a stack is not caused by a file.
        let file = dso.filter(|_| cut != Truncation::CopyTooShort).map(|dso| name(profile, dso));
        let remedy = match (cut, dso.map(|dso| (dso, profile.dsos[dso].kind))) {
            (Truncation::JitCode, Some((_, DsoKind::Anonymous { pid }))) => of_runtime(profile, pid),
            (Truncation::NoUnwindInfo, Some((dso, DsoKind::File))) => {
                let ml = || is_poly_ml(profile, dso).then_some(POLY_ML);
                is_haskell(profile, dso).then_some(HASKELL).or_else(ml)
            }
            (Truncation::OtherStack, Some((dso, DsoKind::File))) => {
                name(profile, dso).ends_with("/sbcl").then_some(SBCL)
            }
            _ => None,
        };
        if let (Some(remedy), Some(file)) = (remedy, &file) {
            runtimes.insert(file.clone(), remedy);
        }
        *merged.entry((cut, file)).or_default() += samples;
    }
    let full_copy = profile.meta.stack_copy_bytes >= MAX_STACK_COPY;
    let cause = |((cut, file), samples): ((Truncation, Option<String>), u64)| {
        let has_remedy =
            matches!(cut, Truncation::JitCode | Truncation::NoUnwindInfo | Truncation::OtherStack);
        let runtime = file.as_ref().filter(|_| has_remedy).and_then(|file| runtimes.get(file)).copied();
        let (by_kernel, by_guesses, off_cpu) = (false, false, false);
        Cause { cut, runtime, file, samples, full_copy, by_kernel, by_guesses, off_cpu }
    };
    let mut causes: Vec<Cause> = merged.into_iter().map(cause).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.samples));
    causes
}

/// Remedy for code generated by a process. `None`: nothing is known of the process.
fn of_runtime(profile: &Profile, pid: u32) -> Option<&'static str> {
    let told = Told::of(profile, pid);
    match Runtime::of(profile, pid) {
        Some(runtime) => Some(runtime.frames(&told)),
        // The option that makes an interpreter name its code is already set.
        None if told.has_map => Some(""),
        None => None,
    }
}

fn name(profile: &Profile, dso: DsoId) -> String {
    let dso = &profile.dsos[dso];
    let path = profile.strings.get(dso.path);
    match dso.kind {
        DsoKind::Anonymous { pid } => format!("{path} of process {pid}"),
        _ => path.to_owned(),
    }
}

impl Cause {
    /// The cause as text.
    pub fn text(&self) -> String {
        match &self.file {
            Some(file) => format!("{}: {file}", self.cut.text()),
            None => self.cut.text().to_owned(),
        }
    }

    /// The remedy; empty if there is none.
    pub fn remedy(&self) -> &'static str {
        match self.cut {
            // Full copies are the exception there: the summary names the reason.
            Truncation::CopyTooShort if self.full_copy && self.by_kernel => "",
            Truncation::CopyTooShort if self.full_copy => {
                "the kernel copies at most 64 KiB of a stack; as root, --capture bpf reads up to 4,096 frames"
            }
            Truncation::CopyTooShort => {
                "record for longer: plumb record copies more, up to 64 KiB, once stacks are found cut"
            }
            Truncation::NoUnwindInfo => self.runtime.unwrap_or(match self.by_guesses {
                true => TABLES,
                false => TABLES_OR_SCAN,
            }),
            Truncation::BadUnwindInfo => "build it anew, or with -fno-omit-frame-pointer",
            Truncation::JitCode => self.runtime.unwrap_or(match self.by_guesses {
                true => "have its runtime keep frame pointers, if it can",
                false => "have its runtime keep frame pointers, if it can, or record with --scan",
            }),
            Truncation::FileUnreadable => {
                "keep it in place while recording; where it was deleted, restart the program or record as root; if it is on another machine: --symfs DIR"
            }
            Truncation::NoUserStack if self.off_cpu => {
                "record with a higher -F: more waits are recorded with their stack"
            }
            Truncation::NoUserStack => "record it with plumb, or with perf record --call-graph dwarf",
            Truncation::OtherArchitecture => {
                "build it for 64 bit; or with frame pointers, and use perf record -g on its machine"
            }
            Truncation::StackUnreadable if self.by_kernel => "",
            Truncation::StackUnreadable => {
                "the kernel's copy ends at a page that was never touched, as large frames have; as root, --capture bpf reads past it"
            }
            Truncation::OtherStack if self.runtime.is_some() => self.runtime.unwrap_or_default(),
            Truncation::OtherStack if self.by_kernel => "",
            Truncation::OtherStack => "as root, --capture bpf follows it",
            Truncation::TooManyFrames => "",
            Truncation::ProbedReturn if self.by_kernel => "",
            Truncation::ProbedReturn => {
                "another tool traces returns of this function; as root, --capture bpf asks the kernel for the return address"
            }
            Truncation::NotMapped
            | Truncation::RegisterUnknown
            | Truncation::NotAdvancing
            | Truncation::Folded => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::{Address, Event, Frame, FrameKind, Process, Sample, Thread};

    #[test]
    fn causes_are_counted_by_file_and_the_sum_is_all_samples() {
        let mut profile = Profile::default();
        let empty = profile.strings.empty();
        let path = profile.strings.add("/usr/lib/libx.so");
        let dso = profile.dsos.add(plumb_profile::Dso {
            path,
            build_id: None,
            kind: DsoKind::File,
            addresses: plumb_profile::AddressSpace::Svma,
        });
        let event = profile.events.push(Event { name: empty, unit: empty });
        let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
        let code = |found, address| Frame {
            kind: FrameKind::User,
            dso: Some(dso),
            address: Address(address),
            is_return: false,
            found,
        };
        let sampled = profile.frames.add(code(Found::Sampled, 1));
        let scanned = profile.frames.add(code(Found::Scan, 3));
        let stitched = profile.frames.add(code(Found::Stitched, 2));
        let cut = profile.frames.add(Frame::marker(Truncation::NoUnwindInfo, Some(dso)));
        let jit = profile.frames.add(Frame::marker(Truncation::JitCode, None));
        let whole = [&[sampled][..], &[sampled, stitched], &[sampled, scanned]];
        for frames in whole.into_iter().chain([&[sampled, cut][..], &[cut], &[sampled, jit], &[]]) {
            let stack = profile.add_stack(frames);
            profile.samples.push(Sample {
                time_ns: 0,
                thread,
                cpu: 0,
                event,
                stack,
                syscall: None,
                weight: 1,
            });
        }
        let stacks = Completeness::of(&profile);
        assert_eq!((stacks.samples, stacks.complete, stacks.stitched, stacks.scanned), (7, 3, 1, 1));
        assert_eq!(stacks.causes[0].file.as_deref(), Some("/usr/lib/libx.so"));
        assert_eq!(stacks.causes[0].samples, 2);
        assert_eq!(stacks.causes[0].remedy(), TABLES_OR_SCAN);
        let scanned = StackCounts::default().and(&profile).walked(false, true).stacks(&profile);
        assert_eq!(scanned.causes[0].remedy(), TABLES, "it was scanned already");
        let cut: u64 = stacks.causes.iter().map(|cause| cause.samples).sum();
        assert_eq!(stacks.complete + cut, stacks.samples);
    }
}
