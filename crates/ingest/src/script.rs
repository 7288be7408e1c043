//! Frames of interpreted programs: from where a thread was seen in the interpreter's code to functions and lines.
//!
//! What code is called is read from the process' memory when the code is seen first: by the kernel, and what it could not read,
//! from here. Where that comes too late the frame says so; it never gets the name of other code that has taken the place.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use plumb_capture_api::ScriptPlace;
use plumb_interpreters::{CodeId, Function, Interpreter, Memory};
use plumb_process::{Backing, FileId, Mapping};
use plumb_profile::{
    Address, AddressSpace, Dso, DsoId, DsoKind, Found, Frame, FrameId, FrameKind, Function as FunctionRow,
    FunctionId, Line, Profile, StringId,
};
use rustc_hash::FxHashMap;

use super::spaces::SpaceId;
use super::{Ingest, Source};
use crate::memory::ProcessMemory;

/// What stands for frames that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// There were more than are sent.
    TooMany,
    /// The interpreter's memory did not say.
    Unreadable,
}

/// Text in the place of a name.
const GONE: &str = "[gone before its name was read]";
const TOO_MANY: &str = "[more frames than are read]";
const UNREADABLE: &str = "[frames that can't be read]";
/// Between native frames and frames that none of those was found to run.
const UNPLACED: &str = "[native frames between these are missing]";

/// Interpreters that processes have mapped.
#[derive(Debug, Default)]
struct SeenInterpreters {
    /// Processes that have mapped a known one, and an address in it, since that was asked for last.
    mapped: Vec<(u32, u64)>,
    /// Those that were sampled and are not known.
    unknown: BTreeSet<String>,
}

/// What is known of code in one address space and those forked from it.
pub(super) type SharedScripts = Rc<RefCell<Scripts>>;

/// Functions and frames of code.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    /// `None`: it was gone when it was to be read.
    functions: FxHashMap<CodeId, Option<Known>>,
    /// Frames by code, instruction and whether it is a generator; `None`: it had not begun, and is in no traceback.
    frames: FxHashMap<(CodeId, u32, bool), Option<FrameId>>,
    /// Memory with code that no frame was of yet.
    memory: FxHashMap<CodeId, Vec<(u64, Vec<u8>)>>,
}

/// A function of the profile and what tells its lines.
#[derive(Debug)]
struct Known {
    id: FunctionId,
    function: Function,
}

/// What was named so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    seen: SeenInterpreters,
    dsos: FxHashMap<&'static str, DsoId>,
    /// By name, file and first line.
    functions: FxHashMap<(DsoId, StringId, StringId, u32), FunctionId>,
}

impl Names {
    /// What stands in the place of a file for code of a language.
    fn dso(&mut self, profile: &mut Profile, language: &'static str) -> DsoId {
        *self.dsos.entry(language).or_insert_with(|| {
            let path = profile.strings.add(&format!("[{language}]"));
            let (kind, addresses) = (DsoKind::Script, AddressSpace::Line);
            profile.dsos.add(Dso { path, build_id: None, kind, addresses })
        })
    }

    fn function(
        &mut self,
        profile: &mut Profile,
        dso: DsoId,
        name: &str,
        (file, line): (&str, u32),
    ) -> FunctionId {
        let (name, source_file) = (profile.strings.add(name), profile.strings.add(file));
        let next = self.functions.len() as u64;
        *self.functions.entry((dso, name, source_file, line)).or_insert_with(|| {
            let start = Some(Address(next << 32));
            let linkage_name = profile.strings.add("");
            profile.symbols.functions.add(FunctionRow {
                name,
                linkage_name,
                dso: Some(dso),
                start,
                source_file,
            })
        })
    }
}

/// The frame of a line of a function.
fn frame(profile: &mut Profile, function: FunctionId, line: u32) -> FrameId {
    let FunctionRow { dso, start, source_file, .. } = profile.symbols.functions[function];
    let address = Address(start.map_or(0, |start| start.0) | u64::from(line));
    let frame = Frame { kind: FrameKind::User, dso, address, is_return: false, found: Found::Sampled };
    let id = profile.frames.add(frame);
    if profile.symbols.of(id).is_empty() {
        profile.symbols.set(id, &[Line { function, file: source_file, line, inlined: false }]);
    }
    id
}

impl Ingest {
    /// Keeps memory that says what code is called until there is a frame of it.
    pub fn learn_code(&mut self, pid: u32, code: CodeId, memory: Vec<(u64, Vec<u8>)>) {
        self.meet_process(pid);
        let Some(space) = self.tasks.processes.get(&pid).and_then(|process| process.space) else { return };
        let mut scripts = self.spaces.get(space).scripts.borrow_mut();
        if !matches!(scripts.functions.get(&code), Some(Some(_))) {
            scripts.functions.remove(&code);
            scripts.memory.insert(code, memory);
        }
    }

    /// Notes that a process has mapped an interpreter, if it has.
    pub(super) fn look_for_interpreter(&mut self, pid: u32, mapping: &Mapping) {
        let (Backing::File(id), Source::Live) = (mapping.backing, self.source) else { return };
        let Some(process) = self.tasks.processes.get(&pid) else { return };
        self.code.look_for_interpreter(id, &process.executable);
        let is_known = self.code.interpreter(id).is_some();
        if is_known {
            self.scripts.seen.mapped.push((pid, mapping.start));
        }
        if (is_known || self.code.unknown_interpreter(id).is_some())
            && let Some(space) = process.space
        {
            self.spaces.get_mut(space).interpreter = Some(id);
        }
    }

    /// Processes that have mapped a known interpreter since the last call, and an address in it.
    pub fn take_interpreted(&mut self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.scripts.seen.mapped)
    }

    /// Notes the interpreter of a process that is sampled, if it is not known.
    pub(super) fn note_interpreter(&mut self, space: SpaceId) {
        let unknown = self.spaces.get(space).interpreter.and_then(|id| self.code.unknown_interpreter(id));
        if let Some(name) = unknown
            && !self.scripts.seen.unknown.contains(name)
        {
            self.scripts.seen.unknown.insert(name.to_owned());
        }
    }

    /// The interpreters that were sampled and are not known.
    pub fn unknown_interpreters(&self) -> impl Iterator<Item = &str> {
        self.scripts.seen.unknown.iter().map(String::as_str)
    }

    /// Appends the frames of a round of an interpreter's loop, and the loop's own frame. `rest`: there are further ones that are
    /// not known.
    pub(super) fn script_round(
        &mut self,
        (pid, space): (u32, SpaceId),
        (native, mapping): (FrameId, Option<Mapping>),
        round: &[ScriptPlace],
        rest: Option<Rest>,
    ) {
        if let Some(Backing::File(id)) = mapping.map(|mapping| mapping.backing) {
            self.script_frames((pid, space), id, round, rest);
        }
        self.leaf_first.push(native);
    }

    /// Appends frames for which no native frame of the interpreter's loop was found, behind a mark that says so.
    pub(super) fn unplaced_script(
        &mut self,
        (pid, space): (u32, SpaceId),
        frames: &[ScriptPlace],
        rest: Option<Rest>,
    ) {
        let Some(file) = self.spaces.get(space).interpreter else { return };
        if frames.is_empty() || self.code.interpreter(file).is_none() {
            return;
        }
        self.script_mark(file, UNPLACED);
        self.script_frames((pid, space), file, frames, rest);
    }

    /// Appends frames of the interpreter in a file.
    fn script_frames(
        &mut self,
        (pid, space): (u32, SpaceId),
        file: FileId,
        round: &[ScriptPlace],
        rest: Option<Rest>,
    ) {
        let scripts = Rc::clone(&self.spaces.get(space).scripts);
        let Scripts { functions, frames, memory } = &mut *scripts.borrow_mut();
        let Some(interpreter) = self.code.interpreter(file) else { return };
        let parent = self.tasks.processes.get(&pid).map_or(0, |process| process.parent);
        let pids = [pid, self.spaces.get(space).owner, parent];
        let dso = self.scripts.dso(&mut self.profile, interpreter.language());
        for place in round {
            let key = (place.code, place.offset, place.is_generator);
            let id = match frames.get(&key) {
                Some(&known) => known,
                None => {
                    let function = functions.entry(place.code).or_insert_with(|| {
                        let copied = memory.remove(&place.code).unwrap_or_default();
                        let function = read(interpreter, place.code, &copied, pids)?;
                        let at = (function.file.as_str(), function.first_line);
                        let id = self.scripts.function(&mut self.profile, dso, &function.name, at);
                        Some(Known { id, function })
                    });
                    let id = match function {
                        Some(known) => at(&mut self.profile, known, place),
                        None => {
                            let gone = self.scripts.function(&mut self.profile, dso, GONE, ("", 0));
                            Some(frame(&mut self.profile, gone, 0))
                        }
                    };
                    frames.insert(key, id);
                    id
                }
            };
            self.leaf_first.extend(id);
        }
        match rest {
            Some(Rest::TooMany) => self.script_mark(file, TOO_MANY),
            Some(Rest::Unreadable) => self.script_mark(file, UNREADABLE),
            None => {}
        }
    }

    /// Appends what stands for frames that are not there.
    fn script_mark(&mut self, file: FileId, text: &str) {
        let Some(interpreter) = self.code.interpreter(file) else { return };
        let dso = self.scripts.dso(&mut self.profile, interpreter.language());
        let function = self.scripts.function(&mut self.profile, dso, text, ("", 0));
        self.leaf_first.push(frame(&mut self.profile, function, 0));
    }
}

/// The frame of a function that is known; `None`: it had not begun.
fn at(profile: &mut Profile, known: &Known, place: &ScriptPlace) -> Option<FrameId> {
    let offset = place.offset;
    let has_begun = place.is_generator || known.function.has_begun(offset);
    has_begun.then(|| frame(profile, known.id, known.function.line(offset)))
}

/// Reads a function from what was copied of it, or, if that is not all, from the first process that still has its code.
fn read(
    interpreter: &dyn Interpreter,
    code: CodeId,
    copied: &[(u64, Vec<u8>)],
    pids: [u32; 3],
) -> Option<Function> {
    let from = |memory: &dyn Memory| interpreter.function(memory, code).ok();
    let known = from(&Copied(copied));
    if known.as_ref().is_some_and(Function::has_all_lines) {
        return known;
    }
    pids.into_iter().find_map(|pid| from(&ProcessMemory(pid))).or(known)
}

/// Memory as it was.
struct Copied<'a>(&'a [(u64, Vec<u8>)]);

impl Memory for Copied<'_> {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let part = self.0.iter().find_map(|(start, copied)| {
            let from = usize::try_from(at.checked_sub(*start)?).ok()?;
            copied.get(from..)?.get(..bytes.len())
        });
        part.map(|part| bytes.copy_from_slice(part)).is_some()
    }
}
