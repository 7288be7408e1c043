//! Keys that distinguish the rows of a report.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

use plumb_profile::{Id, Profile, Thread, ThreadId};

use crate::frame::{FrameIndex, Kind, ViewFrame};
use crate::view::View;

/// A property that distinguishes rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// Name of the thread.
    Comm,
    /// Process id.
    Pid,
    /// Thread id.
    Tid,
    /// Path of the process' executable.
    Exe,
    /// File that the code is in.
    Dso,
    /// Function.
    Symbol,
    /// Source file and line.
    SrcLine,
}

impl Key {
    /// All keys.
    pub const ALL: [Key; 7] = [Key::Comm, Key::Pid, Key::Tid, Key::Exe, Key::Dso, Key::Symbol, Key::SrcLine];

    /// The name used in options.
    pub fn name(self) -> &'static str {
        match self {
            Key::Comm => "comm",
            Key::Pid => "pid",
            Key::Tid => "tid",
            Key::Exe => "exe",
            Key::Dso => "dso",
            Key::Symbol => "sym",
            Key::SrcLine => "srcline",
        }
    }
}

/// A name that is not a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKey(pub String);

impl std::fmt::Display for BadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = Key::ALL.iter().map(|key| key.name()).collect();
        write!(f, "`{}` is no sort key; there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for BadKey {}

impl std::str::FromStr for Key {
    type Err = BadKey;

    fn from_str(name: &str) -> Result<Self, BadKey> {
        let name = if name == "symbol" { "sym" } else { name };
        Key::ALL.into_iter().find(|key| key.name() == name).ok_or_else(|| BadKey(name.into()))
    }
}

/// The subject of a row: one of its threads and one of its frames. They represent the others in the row only
/// for the report's keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowKey {
    /// A thread.
    pub thread: ThreadId,
    /// A frame.
    pub frame: FrameIndex,
}

impl RowKey {
    /// Returns the row's text for a key of the report: long names in full, paths with their directories.
    pub fn text<'v>(&self, view: &'v View<'_>, key: Key) -> Cow<'v, str> {
        let profile = view.profile();
        let thread = &profile.threads[self.thread];
        let process = &profile.processes[thread.process];
        let frame = view.frame(self.frame);
        match key {
            Key::Comm => profile.strings.get(thread.comm).into(),
            Key::Pid => process.pid.to_string().into(),
            Key::Tid => thread.tid.to_string().into(),
            Key::Exe => exe_of(profile, thread),
            Key::Dso => dso_text(frame),
            Key::Symbol => (&*frame.name).into(),
            Key::SrcLine if frame.line > 0 => format!("{}:{}", frame.file, frame.line).into(),
            // Without a line the function is the closest location.
            Key::SrcLine => (&*frame.name).into(),
        }
    }

    /// Returns the sort key for rows of equal cost: numbers by value, everything else by its text.
    pub(crate) fn order(&self, view: &View<'_>, key: Key) -> (u32, String) {
        let profile = view.profile();
        let thread = &profile.threads[self.thread];
        match key {
            Key::Pid => (profile.processes[thread.process].pid, String::new()),
            Key::Tid => (thread.tid, String::new()),
            _ => (0, self.text(view, key).into_owned()),
        }
    }
}

/// Returns the path of the executable that a thread runs.
fn exe_of<'p>(profile: &'p Profile, thread: &Thread) -> Cow<'p, str> {
    let exe = profile.strings.get(profile.processes[thread.process].exe);
    exe_text(exe, profile.strings.get(thread.comm))
}

/// Returns an executable's path; if it is unknown, the thread's name in brackets.
pub(crate) fn exe_text<'p>(exe: &'p str, comm: &str) -> Cow<'p, str> {
    if exe.is_empty() { format!("[{comm}]").into() } else { exe.into() }
}

fn dso_text<'v>(frame: &'v ViewFrame<'_>) -> Cow<'v, str> {
    match (frame.dso_path, frame.kind) {
        ("", Kind::Marker) => (&*frame.name).into(),
        ("", _) => "[not mapped]".into(),
        (path, _) => path.into(),
    }
}

/// Numbers distinct keys 0, 1, 2 … in order of first appearance, with the first value of each.
struct Numbers<K, T> {
    numbers: Vec<u32>,
    first: Vec<T>,
    seen: HashMap<K, u32>,
}

impl<K: Eq + Hash, T> Numbers<K, T> {
    fn new() -> Self {
        Self { numbers: Vec::new(), first: Vec::new(), seen: HashMap::new() }
    }

    fn push(&mut self, key: K, thing: T) {
        let next = self.first.len() as u32;
        let number = *self.seen.entry(key).or_insert(next);
        if number == next {
            self.first.push(thing);
        }
        self.numbers.push(number);
    }
}

/// Groups frames into rows.
pub(super) struct FrameKeys {
    numbers: Vec<u32>,
    first: Vec<FrameIndex>,
    inlined: Vec<bool>,
}

impl FrameKeys {
    pub fn new(view: &View<'_>, keys: &[Key]) -> Self {
        let has = |key| keys.contains(&key);
        let mut numbers = Numbers::new();
        for (index, frame) in view.frames() {
            let line = (has(Key::SrcLine) && frame.line > 0).then_some((frame.file, frame.line));
            // A location without a line is identified by its function, so that it is not merged with all others.
            let symbol = (has(Key::Symbol) || has(Key::SrcLine) && line.is_none()).then_some(frame.symbol);
            let dso = (has(Key::Dso) || has(Key::Symbol)).then(|| dso_text(frame));
            numbers.push((dso, symbol, line), index);
        }
        let mut inlined = vec![true; numbers.first.len()];
        for ((_, frame), &number) in view.frames().zip(&numbers.numbers) {
            inlined[number as usize] &= frame.inlined;
        }
        Self { numbers: numbers.numbers, first: numbers.first, inlined }
    }

    pub fn len(&self) -> usize {
        self.first.len()
    }

    pub fn of(&self, frame: FrameIndex) -> usize {
        self.numbers[frame.0 as usize] as usize
    }

    pub fn representative(&self, key: usize) -> FrameIndex {
        self.first[key]
    }

    pub fn is_inlined(&self, key: usize) -> bool {
        self.inlined[key]
    }
}

/// Groups threads into rows.
pub(super) struct ThreadKeys {
    numbers: Vec<u32>,
    first: Vec<ThreadId>,
}

impl ThreadKeys {
    pub fn new(profile: &Profile, keys: &[Key]) -> Self {
        let has = |key| keys.contains(&key);
        let mut numbers = Numbers::new();
        for (id, thread) in profile.threads.iter() {
            let process = &profile.processes[thread.process];
            // Without a known executable the thread's name replaces it, see `RowKey::text`.
            let nameless = process.exe == profile.strings.empty();
            let comm = (has(Key::Comm) || has(Key::Exe) && nameless).then_some(thread.comm);
            let pid = has(Key::Pid).then_some(process.pid);
            let tid = has(Key::Tid).then_some(thread.tid);
            numbers.push((comm, pid, tid, has(Key::Exe).then_some(process.exe)), id);
        }
        Self { numbers: numbers.numbers, first: numbers.first }
    }

    pub fn of(&self, thread: ThreadId) -> u32 {
        self.numbers[thread.index()]
    }

    pub fn representative(&self, number: u32) -> ThreadId {
        self.first[number as usize]
    }
}
