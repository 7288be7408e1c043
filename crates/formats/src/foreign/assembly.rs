//! Builds a profile from the contents of a foreign format: names are always known, the rest sometimes.
//!
//! Frames without an address have one of [`AddressSpace::Line`]: equal frames share it, others never do.

use std::collections::HashMap;

use plumb_profile::{
    Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, Event, EventId, Found, Frame, FrameId, FrameKind,
    Function, Line, Process, ProcessId, Profile, Sample, StackId, StringId, Thread, ThreadId, Truncation,
    unnamed_function_start,
};

/// Path of a function's file if the format has none.
const NOT_TOLD: &str = "[unknown]";

/// Most samples that counts are split into.
const MOST_SAMPLES: u64 = 2_000_000;

/// First address of the kernel's half of the address space, on the architectures that are known.
const KERNEL_HALF: u64 = 0xff00_0000_0000_0000;

/// A profile in the making.
pub(crate) struct Assembly {
    pub profile: Profile,
    placed: HashMap<(FrameKind, DsoId, Vec<Line>), FrameId>,
    processes: HashMap<(u32, StringId), ProcessId>,
    threads: HashMap<(ProcessId, u32, StringId), ThreadId>,
    /// Sum of the weights of all samples.
    total: u64,
}

/// Why a weight is refused.
pub(crate) const TOO_LARGE: &str =
    "with its weight the sum of all is more than 2^64 - 1, which nothing can have measured";

/// A function and a place in it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub name: &'a str,
    /// The linker's name, empty if unknown.
    pub linkage: &'a str,
    /// Source file, empty if unknown.
    pub file: &'a str,
    /// Line in the source file, 0 if unknown.
    pub line: u32,
    /// Line where the function begins, 0 if unknown.
    pub start_line: u32,
    /// Whether it was inlined into what comes next.
    pub inlined: bool,
}

/// Equal samples: whose they are and how many.
pub(crate) struct Counted {
    pub thread: ThreadId,
    pub event: EventId,
    pub stack: Option<StackId>,
    pub count: u64,
    pub weight: u64,
}

impl Assembly {
    pub fn new() -> Self {
        Assembly {
            profile: Profile::default(),
            placed: HashMap::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            total: 0,
        }
    }

    pub fn event(&mut self, name: &str, unit: &str) -> EventId {
        let event = Event { name: self.profile.strings.add(name), unit: self.profile.strings.add(unit) };
        let known = self.profile.events.iter().find(|(_, known)| **known == event).map(|(id, _)| id);
        known.unwrap_or_else(|| self.profile.events.push(event))
    }

    /// Returns a thread. An unknown thread ID or process ID is [`Process::UNKNOWN`].
    pub fn thread(&mut self, pid: Option<u32>, tid: Option<u32>, comm: &str, exe: &str) -> ThreadId {
        let pid = pid.unwrap_or(Process::UNKNOWN);
        let (comm, exe) = (self.profile.strings.add(comm), self.profile.strings.add(exe));
        let (processes, threads) = (&mut self.profile.processes, &mut self.profile.threads);
        let process = self.processes.entry((pid, exe));
        let process = *process.or_insert_with(|| processes.push(Process { pid, ppid: 0, exe }));
        let tid = tid.unwrap_or(Process::UNKNOWN);
        let thread = self.threads.entry((process, tid, comm));
        *thread.or_insert_with(|| threads.push(Thread { process, tid, comm }))
    }

    /// Returns the file at `path`; the name determines its kind. `address` is one in it, at run time if `addresses` are.
    pub fn dso(
        &mut self,
        path: &str,
        build_id: Option<BuildId>,
        addresses: AddressSpace,
        address: u64,
    ) -> DsoId {
        let kind = match path {
            "[vdso]" => DsoKind::Vdso,
            _ if path.starts_with("[kernel") || path.starts_with("[guest.kernel") => DsoKind::Kernel,
            _ if path.starts_with('[') && address >= KERNEL_HALF => DsoKind::KernelModule,
            _ => DsoKind::File,
        };
        let addresses = if kind.is_kernel() { AddressSpace::Avma } else { addresses };
        self.add_dso(if path.is_empty() { NOT_TOLD } else { path }, build_id, kind, addresses)
    }

    fn add_dso(
        &mut self,
        path: &str,
        build_id: Option<BuildId>,
        kind: DsoKind,
        addresses: AddressSpace,
    ) -> DsoId {
        let path = self.profile.strings.add(path);
        self.profile.dsos.add(Dso { path, build_id, kind, addresses })
    }

    /// Returns the kind of code in this file.
    pub fn kind_in(&self, dso: DsoId) -> FrameKind {
        if self.profile.dsos[dso].kind.is_kernel() { FrameKind::Kernel } else { FrameKind::User }
    }

    /// Returns a frame with an address. If other lines are already known for this address, the frame has none.
    pub fn frame_at(&mut self, dso: DsoId, address: u64, places: &[Place<'_>]) -> FrameId {
        let kind = self.kind_in(dso);
        let address = Address(address);
        let frame = Frame { kind, dso: Some(dso), address, is_return: false, found: Found::Sampled };
        let lines = self.lines(dso, places);
        let id = self.profile.frames.add(frame);
        let known = self.profile.symbols.recorded(id);
        if known.is_empty() && !lines.is_empty() {
            self.profile.symbols.set(id, &lines);
        } else if !lines.is_empty() && known != lines {
            let path = self.profile.strings.get(self.profile.dsos[dso].path).to_owned();
            return self.frame(kind, &path, places);
        }
        id
    }

    /// A frame without an address: `places` from the innermost inlined call to the function itself. An empty `path`: nor is its
    /// file.
    pub fn frame(&mut self, kind: FrameKind, path: &str, places: &[Place<'_>]) -> FrameId {
        let (path, dso_kind) = match (path, kind) {
            ("", FrameKind::Kernel) => ("[kernel.kallsyms]", DsoKind::Kernel),
            ("", _) => (NOT_TOLD, DsoKind::File),
            (path, FrameKind::Kernel) => (path, DsoKind::Kernel),
            (path, _) => (path, DsoKind::File),
        };
        let dso = self.add_dso(path, None, dso_kind, AddressSpace::Line);
        let lines = self.lines(dso, places);
        let key = (kind, dso, lines);
        if let Some(&known) = self.placed.get(&key) {
            return known;
        }
        let line = key.2.first().map_or(0, |line| line.line);
        let address = Address((self.placed.len() as u64 + 1) << 32 | u64::from(line));
        let frame = Frame { kind, dso: Some(dso), address, is_return: false, found: Found::Sampled };
        let id = self.profile.frames.add(frame);
        self.profile.symbols.set(id, &key.2);
        self.placed.insert(key, id);
        id
    }

    /// Returns the truncation marker that a name in brackets represents, as in plumb's own exports.
    pub fn marker(&mut self, name: &str) -> Option<FrameId> {
        let cut = Truncation::from_text(name.strip_prefix('[')?.strip_suffix(']')?)?;
        Some(self.profile.frames.add(Frame::marker(cut, None)))
    }

    fn lines(&mut self, dso: DsoId, places: &[Place<'_>]) -> Vec<Line> {
        match self.unnamed_start(dso, places) {
            Some(start) => vec![self.line_of(dso, &Place::default(), Some(start))],
            None => places.iter().map(|place| self.line(dso, place)).collect(),
        }
    }

    /// Returns the start of a function whose name is only its file and address, as in plumb's own exports: it has no name.
    fn unnamed_start(&self, dso: DsoId, places: &[Place<'_>]) -> Option<Address> {
        let [Place { name, .. }] = places else { return None };
        unnamed_function_start(name, self.profile.strings.get(self.profile.dsos[dso].path))
    }

    fn line(&mut self, dso: DsoId, place: &Place<'_>) -> Line {
        self.line_of(dso, place, None)
    }

    fn line_of(&mut self, dso: DsoId, place: &Place<'_>, start: Option<Address>) -> Line {
        let strings = &mut self.profile.strings;
        let file = strings.add(place.file);
        // Both are there only if they differ.
        let linkage = if place.linkage == place.name { "" } else { place.linkage };
        let function = Function {
            name: strings.add(place.name),
            linkage_name: strings.add(linkage),
            dso: Some(dso),
            start,
            source_file: file,
            start_line: place.start_line,
        };
        let function = self.profile.symbols.functions.add(function);
        Line { function, file, line: place.line, inlined: place.inlined }
    }

    /// Takes a sample's weight into account: sums must be numbers. `None`: with it they would be none.
    pub fn weigh(&mut self, weight: u64) -> Option<u64> {
        self.total = self.total.checked_add(weight)?;
        Some(weight)
    }

    /// Adds a sample whose CPU is unknown.
    pub fn sample(&mut self, time_ns: u64, one: &Counted) {
        let &Counted { thread, event, stack, weight, .. } = one;
        self.profile.samples.push(Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight });
    }

    /// Samples that a file has as counts: as many as there were, with the weight of all shared among them. Of too many there is one for
    /// each count, which a warning says.
    pub fn counted(&mut self, counted: Vec<Counted>) {
        let total = counted.iter().fold(0_u64, |sum, one| sum.saturating_add(one.count));
        let apart = total <= MOST_SAMPLES;
        if !apart {
            let text = format!("the file counts {total} samples: they are shown as {}", counted.len());
            self.profile.meta.warnings.push(text);
            // Other weights than counts don't tell how many there were.
            self.profile.meta.untold.samples |= counted.iter().any(|one| one.weight != one.count);
        }
        for one in counted {
            let parts = if apart { one.count.max(1) } else { 1 };
            let (each, rest) = (one.weight / parts, one.weight % parts);
            for part in 0..parts {
                let weight = each + u64::from(part < rest);
                self.sample(0, &Counted { weight, ..one });
            }
        }
    }

    /// Whether there are addresses without names, and these can be found: all of them are in files that their build ids tell from others of
    /// their path. With what lies where the others were, here and now, addresses would get wrong names.
    fn lacks_names(&self) -> bool {
        let profile = &self.profile;
        let nameless = profile
            .frames
            .iter()
            .filter(|(id, frame)| frame.cut().is_none() && profile.symbols.of(*id).is_empty());
        let mut dsos = nameless.filter_map(|(_, frame)| frame.dso).map(|dso| &profile.dsos[dso]).peekable();
        let is_known = |dso: &Dso| {
            matches!(dso.addresses, AddressSpace::Svma | AddressSpace::FileOffset) && dso.build_id.is_some()
        };
        dsos.peek().is_some() && dsos.all(is_known)
    }

    /// Returns the profile, with its samples in order of time. Names in the input are kept; other names are left to symbolization.
    pub fn finish(mut self, recorder: &str) -> Profile {
        self.profile.meta.symbolized = !self.lacks_names();
        self.profile.meta.recorder = recorder.into();
        // Profiles written by plumb contain markers of truncation.
        self.profile.meta.untold.cuts = !recorder.starts_with("plumb ");
        self.profile.samples.sort_by_time();
        let times = || self.profile.samples.iter().map(|sample| sample.time_ns);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        self.profile.meta.start_ns = first;
        if self.profile.meta.duration_ns == 0 {
            self.profile.meta.duration_ns = last - first;
        }
        self.profile
    }
}
