//! One file's share of the work: the addresses to look up, and the answer in a form that threads can pass on.
//!
//! Strings and functions are interned within the answer; the profile's own tables are accessed by one thread only.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use plumb_profile::{
    Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, FrameId, FrameKind, Function, FunctionId, Line,
    Profile,
};

use crate::demangle::demangle;
use crate::roots::ProcessRoot;
use crate::summary::{DsoSummary, Missing};

/// The addresses to look up in one file.
#[derive(Debug)]
pub(crate) struct Job {
    /// Id of the file.
    pub dso: DsoId,
    /// Path of the file.
    pub path: String,
    /// Build id as recorded.
    pub build_id: Option<BuildId>,
    /// Kind of the file.
    pub kind: DsoKind,
    /// Address space of its addresses.
    pub addresses: AddressSpace,
    /// Pids of processes that had it mapped, to reach its path in their mount namespace.
    pub pids: Vec<u32>,
    /// Root directories of those processes that differ from ours, held open.
    pub roots: Vec<Arc<ProcessRoot>>,
    /// The file itself, held open, if no path leads to it.
    pub held: Option<File>,
    /// Frames and the addresses to look up, sorted by address.
    pub frames: Vec<FrameAddress>,
    /// The generation of the profile that the ids belong to, see [`Session::renew`](crate::Session::renew).
    pub generation: u32,
}

/// A frame and its lookup address; ordered by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameAddress {
    /// The address to look up: for a call, one inside the call instruction.
    pub address: u64,
    /// Id of the frame.
    pub frame: FrameId,
    /// Whether the address is the byte before a return address.
    pub is_return: bool,
}

/// The identity of a file across profiles.
pub(crate) type FileIdentity = (String, Option<BuildId>, DsoKind, AddressSpace);

impl Job {
    /// Returns the identity of its file.
    pub fn identity(&self) -> FileIdentity {
        (self.path.clone(), self.build_id.clone(), self.kind, self.addresses)
    }

    /// Creates a job to find a file of `profile`, without addresses.
    pub fn without_frames(profile: &Profile, dso: DsoId) -> Job {
        let Dso { path, build_id, kind, addresses } = profile.dsos[dso].clone();
        let path = profile.strings.get(path).to_owned();
        let pids = pids(profile).remove(&dso).unwrap_or_default();
        let (roots, frames) = Default::default();
        Job { dso, path, build_id, kind, addresses, pids, roots, held: None, frames, generation: 0 }
    }

    /// For kernel frames, returns the module as the kernel calls it; empty for the kernel itself.
    pub fn module(&self) -> &str {
        if self.kind == DsoKind::Kernel { "" } else { &self.path }
    }
}

/// Returns, for each file, some pids of processes that had it mapped.
fn pids(profile: &Profile) -> HashMap<DsoId, Vec<u32>> {
    let mut pids: HashMap<DsoId, Vec<u32>> = HashMap::new();
    for mapping in &profile.mappings {
        let pids = pids.entry(mapping.dso).or_default();
        let pid = profile.processes[mapping.process].pid;
        if !pids.contains(&pid) && pids.len() < 8 {
            pids.push(pid);
        }
    }
    pids
}

/// Returns the files of `profile` with frames without lines, counted from frame number `since`.
pub(crate) fn jobs(profile: &Profile, since: usize) -> Vec<Job> {
    let mut frames: HashMap<DsoId, Vec<FrameAddress>> = HashMap::new();
    for (id, frame) in profile.frames.iter().skip(since) {
        let Some(dso) = frame.dso else { continue };
        if matches!(frame.kind, FrameKind::Truncation(_)) || !profile.symbols.of(id).is_empty() {
            continue;
        }
        let address = frame.lookup().0;
        // A return address of 0 has no byte before it.
        let is_return = address != frame.address.0;
        frames.entry(dso).or_default().push(FrameAddress { address, frame: id, is_return });
    }
    let mut pids = pids(profile);
    let jobs = profile.dsos.iter().filter_map(|(id, dso)| {
        let mut frames = frames.remove(&id)?;
        frames.sort_unstable();
        let Dso { path, build_id, kind, addresses } = dso.clone();
        let path = profile.strings.get(path).to_owned();
        let pids = pids.remove(&id).unwrap_or_default();
        let roots = Vec::new();
        Some(Job { dso: id, path, build_id, kind, addresses, pids, roots, held: None, frames, generation: 0 })
    });
    jobs.collect()
}

/// The results for a job.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The file's part of the summary.
    pub summary: DsoSummary,
    /// The generation of the profile that the ids belong to.
    pub generation: u32,
    dso: DsoId,
    functions: Vec<Arc<FoundFunction>>,
    function_ids: HashMap<Arc<FoundFunction>, u32>,
    files: Vec<Arc<str>>,
    file_ids: HashMap<Arc<str>, u32>,
    places: Vec<Place>,
    frames: Vec<(FrameId, u32, u32)>,
}

/// A function that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FoundFunction {
    /// Readable name, or the linkage name if demangling is still due.
    pub name: String,
    /// Linkage name, empty if there is none.
    pub linkage_name: String,
    /// First address, `None` for an inlined function.
    pub start: Option<u64>,
    /// Source file of its definition, empty if not known.
    pub source_file: String,
    /// Line of its definition, 0 if not known.
    pub start_line: u32,
}

/// A source location in a function, by the answer's own numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Number from [`Answer::function`].
    pub function: u32,
    /// Number from [`Answer::file`].
    pub file: u32,
    /// Line counted from 1, 0 if not known.
    pub line: u32,
    /// Whether this function was inlined into the next place's.
    pub inlined: bool,
}

/// A location in source code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodePlace {
    /// The function, demangled.
    pub function: String,
    /// Source file, empty if not known.
    pub file: String,
    /// Line counted from 1, 0 if not known.
    pub line: u32,
}

impl Answer {
    /// Creates an empty answer about the file of `job`.
    pub fn new(job: &Job) -> Self {
        let summary = DsoSummary::new(job.dso, &job.path);
        Self {
            summary,
            generation: job.generation,
            dso: job.dso,
            functions: Vec::new(),
            function_ids: HashMap::new(),
            files: vec!["".into()],
            file_ids: HashMap::from([("".into(), 0)]),
            places: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Continues with the same file in the profile of `job`; if that is a new one, notes about frames of the old one are dropped.
    pub fn follow(&mut self, job: &Job) {
        if self.generation != job.generation {
            (self.generation, self.dso, self.summary.dso) = (job.generation, job.dso, job.dso);
            self.places.clear();
            self.frames.clear();
        }
    }

    /// Continues with `new` after the file was reopened. Notes and counts are kept.
    pub fn begin_again(&mut self, new: Answer) {
        let DsoSummary { sources, functions, missing, .. } = new.summary;
        self.summary = DsoSummary { sources, functions, missing, ..self.summary.clone() };
    }

    /// Records that something is missing, once.
    pub fn miss(&mut self, missing: Missing) {
        if !self.summary.missing.contains(&missing) {
            self.summary.missing.push(missing);
        }
    }

    /// Returns the number of a function, adding it if needed.
    pub fn function(&mut self, function: FoundFunction) -> u32 {
        if let Some(&id) = self.function_ids.get(&function) {
            return id;
        }
        let id = self.functions.len() as u32;
        let function = Arc::new(function);
        self.functions.push(Arc::clone(&function));
        self.function_ids.insert(function, id);
        id
    }

    /// Returns the number of a function of another answer.
    fn known_function(&mut self, function: &Arc<FoundFunction>) -> u32 {
        if let Some(&id) = self.function_ids.get(function) {
            return id;
        }
        let id = self.functions.len() as u32;
        self.functions.push(Arc::clone(function));
        self.function_ids.insert(Arc::clone(function), id);
        id
    }

    /// Returns the number of a source file. 0 is the unknown file.
    pub fn file(&mut self, file: &str) -> u32 {
        if let Some(&id) = self.file_ids.get(file) {
            return id;
        }
        let id = self.files.len() as u32;
        let file: Arc<str> = file.into();
        self.files.push(Arc::clone(&file));
        self.file_ids.insert(file, id);
        id
    }

    /// Records a frame's source locations, innermost inlined call first. An empty slice records nothing.
    pub fn set(&mut self, frame: FrameId, places: &[Place]) {
        let Some(innermost) = places.first() else { return };
        let start = self.places.len() as u32;
        self.places.extend_from_slice(places);
        self.frames.push((frame, start, self.places.len() as u32));
        self.summary.named += 1;
        self.summary.lined += usize::from(innermost.line > 0);
        self.summary.inlined += places.len() - 1;
    }

    /// Records that a frame is in a function known only by its first address.
    pub fn set_start(&mut self, frame: FrameId, start: u64) {
        let function = self.function(FoundFunction { start: Some(start), ..FoundFunction::default() });
        let first = self.places.len() as u32;
        self.places.push(Place { function, file: 0, line: 0, inlined: false });
        self.frames.push((frame, first, first + 1));
    }

    /// Returns the notes about frames since the last call as a separate answer. Numbers of functions and files stay valid.
    pub fn take_noted(&mut self) -> Answer {
        let mut noted = Answer {
            summary: self.summary.clone(),
            generation: self.generation,
            dso: self.dso,
            functions: Vec::new(),
            function_ids: HashMap::new(),
            files: vec!["".into()],
            file_ids: HashMap::from([("".into(), 0)]),
            places: std::mem::take(&mut self.places),
            frames: std::mem::take(&mut self.frames),
        };
        let mut places = std::mem::take(&mut noted.places);
        for place in &mut places {
            if let Some(function) = self.functions.get(place.function as usize) {
                place.function = noted.known_function(function);
            }
            place.file = self.files.get(place.file as usize).map_or(0, |file| noted.file(file));
        }
        noted.places = places;
        noted
    }

    /// Drops functions and files, which get new numbers. Only valid if no one has kept the old ones.
    pub fn forget_numbers(&mut self) {
        (self.functions, self.function_ids) = (Vec::new(), HashMap::new());
        (self.files, self.file_ids) = (vec!["".into()], HashMap::from([("".into(), 0)]));
    }

    /// Returns the source locations of each frame with notes, with readable names.
    pub fn noted(&self) -> impl Iterator<Item = (FrameId, Vec<CodePlace>)> {
        let readable = |function: &FoundFunction| match &function.name {
            name if *name == function.linkage_name => demangle(name),
            name => name.clone(),
        };
        let functions: Vec<String> = self.functions.iter().map(|function| readable(function)).collect();
        self.frames.iter().map(move |&(frame, start, end)| {
            let places = self.places[start as usize..end as usize].iter().map(|place| CodePlace {
                function: functions[place.function as usize].clone(),
                file: self.files[place.file as usize].as_ref().to_owned(),
                line: place.line,
            });
            (frame, places.collect())
        })
    }

    /// Returns all functions, by number.
    pub fn functions(&self) -> &[Arc<FoundFunction>] {
        &self.functions
    }

    /// Returns all source files, by number.
    pub fn files(&self) -> &[Arc<str>] {
        &self.files
    }

    /// Returns the source locations of each frame with notes, innermost inlined call first.
    pub fn places(&self) -> impl Iterator<Item = (FrameId, &[Place])> {
        self.frames.iter().map(|&(frame, start, end)| (frame, &self.places[start as usize..end as usize]))
    }

    /// Whether the answer is empty: no frame has notes.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Records that a frame is in a function known only by its name and first address.
    pub fn set_name(&mut self, frame: FrameId, name: String, start: u64) {
        let function = FoundFunction { name, start: Some(start), ..FoundFunction::default() };
        let function = self.function(function);
        self.set(frame, &[Place { function, file: 0, line: 0, inlined: false }]);
    }

    /// Writes the answer into the profile.
    pub fn store(self, profile: &mut Profile) -> DsoSummary {
        let functions: Vec<FunctionId> = self
            .functions
            .iter()
            .map(|function| {
                let function = Function {
                    name: profile.strings.add(&function.name),
                    linkage_name: profile.strings.add(&function.linkage_name),
                    dso: Some(self.dso),
                    start: function.start.map(Address),
                    source_file: profile.strings.add(&function.source_file),
                    start_line: function.start_line,
                };
                profile.symbols.functions.add(function)
            })
            .collect();
        let files: Vec<_> = self.files.iter().map(|file| profile.strings.add(file)).collect();
        let mut lines = Vec::new();
        for (frame, start, end) in self.frames {
            lines.clear();
            lines.extend(self.places[start as usize..end as usize].iter().map(|place| Line {
                function: functions[place.function as usize],
                file: files[place.file as usize],
                line: place.line,
                inlined: place.inlined,
            }));
            profile.symbols.set(frame, &lines);
        }
        self.summary
    }
}
