//! Frames of interpreted programs: turns positions in the interpreter's code into functions and lines.
//!
//! The name of code is read from the process' memory when the code is first seen: by the kernel, or from here if that
//! failed. If that is too late, the frame says so; it never gets the name of other code at the same address.

use std::rc::Rc;

use plumb_capture_api::{Script, ScriptPlace};
use plumb_interpreters::{
    CodeId, CompiledCode, FrameSource, Function, Interpreter, Memory, RuntimeProcess, StackFrames, places_of,
};
use plumb_process::{Backing, FileId};
use plumb_profile::{FrameId, FunctionId, Profile};

use super::draft::Draft;
use super::names::{ScriptNames, line_frame};
use crate::memory::{CopiedMemory, ProcessMemory};
use crate::spaces::{AddressSpaces, Scripts, SpaceId};

/// The reason for missing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There were more frames than are sent.
    TooMany,
    /// The interpreter's memory could not be read.
    Unreadable,
}

/// Placeholder for a name.
const GONE: &str = "[gone before its name was read]";
const UNREADABLE: &str = "[frames that can't be read]";

/// Appends frames of interpreted programs to a stack.
pub(crate) struct ScriptFrames<'a> {
    pub(crate) names: &'a mut ScriptNames,
    pub(crate) spaces: &'a AddressSpaces,
    pub(crate) profile: &'a mut Profile,
    pub(crate) draft: &'a mut Draft,
    pub(crate) space: SpaceId,
    /// Processes whose memory may have the code: that of the stack, that for which the space was created, and its parent.
    pub(crate) pids: [u32; 3],
}

impl ScriptFrames<'_> {
    /// Appends the frames of one eval frame of an interpreter, and the native frame of the loop, which is at `pc`. `rest`: further
    /// frames are missing.
    pub(crate) fn push_round(
        &mut self,
        (native, pc): (FrameId, u64),
        round: &[ScriptPlace],
        rest: Option<Rest>,
    ) {
        let file = match self.spaces.find(self.space, pc).map(|mapping| mapping.backing) {
            Some(Backing::File(id)) => Some(id),
            // Compiled at run time by the process' interpreter.
            Some(Backing::Anonymous) => self.spaces.get(self.space).interpreter,
            _ => None,
        };
        if let Some(id) = file {
            if let Some(FrameSource::NativeStack(stack)) =
                self.spaces.interpreter(id).map(Interpreter::source)
            {
                return self.push_compiled(stack, (native, pc), round);
            }
            self.push_script(id, round, rest);
        }
        self.draft.leaf_first.push(native);
    }

    /// Appends the functions that a native frame runs in its place. `at`: an address within the call that has not returned.
    fn push_compiled(
        &mut self,
        stack: &dyn StackFrames,
        (native, at): (FrameId, u64),
        round: &[ScriptPlace],
    ) {
        let Some(&place) = round.last() else { return self.draft.leaf_first.push(native) };
        let scripts = Rc::clone(&self.spaces.get(self.space).scripts);
        let mut scripts = scripts.borrow_mut();
        if let Some(known) = scripts.native(&(place.code, place.offset, at)) {
            return self.draft.leaf_first.extend(known.unwrap_or(&[native]));
        }
        let is_compiled = self.spaces.is_anonymous(self.space, at);
        let code =
            is_compiled.then(|| scripts.compiled(at, place.code, || self.compiled(stack, at))).flatten();
        let places = places_of(place, code.as_deref(), at);
        let before = self.draft.leaf_first.len();
        self.push_places(stack, &mut scripts, &places);
        let is_own = scripts.is_in_language(place.code);
        let frames: Box<[FrameId]> = self.draft.leaf_first.get(before..).unwrap_or_default().into();
        if !is_own {
            self.draft.leaf_first.truncate(before);
            self.draft.leaf_first.push(native);
        }
        scripts.learn_native((place.code, place.offset, at), is_own.then_some(frames));
    }

    /// Appends the functions of compiled code at an address, which has no frame yet or whose function was not found, in place of a native frame.
    pub(crate) fn push_code(&mut self, native: FrameId, at: u64) {
        let Some((stack, _)) = self.spaces.stack_frames(self.space) else {
            return self.draft.leaf_first.push(native);
        };
        let scripts = Rc::clone(&self.spaces.get(self.space).scripts);
        let mut scripts = scripts.borrow_mut();
        let pid = self.pids[0];
        let has = |code: &CompiledCode| self.with(pid, |process| stack.has(process, code)).unwrap_or(false);
        let code =
            scripts.code(at, has, || self.with(pid, |process| stack.compiled(process, at).ok()).flatten());
        let place = code.and_then(|code| code.places(at)?.last().copied());
        drop(scripts);
        match place {
            Some(place) => self.push_compiled(stack, (native, at), &[place]),
            None => self.draft.leaf_first.push(native),
        }
    }

    /// Reads the compiled code at an address from the first process that still has it.
    fn compiled(&self, stack: &dyn StackFrames, at: u64) -> Option<CompiledCode> {
        let from = |pid| self.with(pid, |process| stack.compiled(process, at).ok()).flatten();
        self.pids.into_iter().find_map(from)
    }

    /// Asks about the runtime of the space, with the memory of a process. `None`: it has none.
    fn with<T>(&self, pid: u32, ask: impl FnOnce(&mut RuntimeProcess<'_>) -> T) -> Option<T> {
        let (_, bias) = self.spaces.stack_frames(self.space)?;
        let mut state = self.spaces.get(self.space).runtime.borrow_mut();
        Some(ask(&mut RuntimeProcess { memory: &ProcessMemory(pid), bias, state: &mut state }))
    }

    /// Appends frames for which no native frame of the interpreter's loop was found, after a mark that says so.
    pub(crate) fn push_unplaced(&mut self, frames: &[ScriptPlace], rest: Option<Rest>) {
        let Some(file) = self.spaces.get(self.space).interpreter else { return };
        if frames.is_empty() || self.spaces.interpreter(file).is_none() {
            return;
        }
        self.push_mark(file, Profile::APART);
        self.push_script(file, frames, rest);
    }

    /// Appends a mark for frames that could not be read.
    pub(crate) fn push_unreadable(&mut self, file: FileId) {
        self.push_mark(file, UNREADABLE);
    }

    /// Appends frames of the interpreter in a file.
    fn push_script(&mut self, file: FileId, round: &[ScriptPlace], rest: Option<Rest>) {
        let Some(interpreter) = self.spaces.interpreter(file) else { return };
        let scripts = Rc::clone(&self.spaces.get(self.space).scripts);
        self.push_places(interpreter, &mut scripts.borrow_mut(), round);
        match rest {
            Some(Rest::TooMany) => self.push_mark(file, Profile::MORE_FRAMES),
            Some(Rest::Unreadable) => self.push_mark(file, UNREADABLE),
            None => {}
        }
    }

    /// Appends the functions at these positions.
    fn push_places(
        &mut self,
        interpreter: &(impl Interpreter + ?Sized),
        scripts: &mut Scripts,
        places: &[ScriptPlace],
    ) {
        let Self { names, profile, draft, pids, .. } = self;
        let dso = names.dso(profile, interpreter.language().tag);
        for place in places {
            let key = (place.code, place.offset, place.is_generator);
            let id = match scripts.frames.get(&key) {
                Some(&known) => known,
                None => {
                    let function =
                        scripts.function(place.code, |copied| read(interpreter, place.code, copied, *pids));
                    let id = match function {
                        Some(known) => {
                            let first = (known.file.as_str(), known.first_line);
                            let id = names.function(profile, dso, &known.name, first);
                            at(profile, (id, known), place)
                        }
                        None => {
                            let gone = names.function(profile, dso, GONE, ("", 0));
                            Some(line_frame(profile, gone, 0))
                        }
                    };
                    scripts.frames.insert(key, id);
                    id
                }
            };
            draft.leaf_first.extend(id);
        }
    }

    /// Appends a mark for missing frames.
    fn push_mark(&mut self, file: FileId, text: &str) {
        let Self { names, profile, .. } = self;
        let Some(interpreter) = self.spaces.interpreter(file) else { return };
        let dso = names.dso(profile, interpreter.language().tag);
        let function = names.function(profile, dso, text, ("", 0));
        self.draft.leaf_first.push(line_frame(profile, function, 0));
    }
}

/// Reads the script frames of a thread that is not running. `None`: its process has no known interpreter,
/// or the interpreter doesn't know the thread. An error, with the interpreter's file: they can't be read.
pub(crate) fn read_script(
    spaces: &AddressSpaces,
    space: SpaceId,
    (pid, tid, thread_pointer): (u32, u32, u64),
) -> Option<Result<Script, FileId>> {
    let (file, interpreter, bias) = spaces.mapped_interpreter(space)?;
    let lists = interpreter.lists()?;
    let memory = ProcessMemory(pid);
    let thread = (pid, tid, thread_pointer);
    let scripts = &spaces.get(space).scripts;
    let state = scripts.borrow_mut().thread_state(thread, || lists.threads(&memory, bias));
    let rounds = match state {
        Ok(state) => lists.rounds(&memory, state?),
        Err(error) => Err(error),
    };
    match rounds {
        Ok(rounds) if rounds.is_empty() => None,
        Ok(rounds) => Some(Ok(Script { time_ns: 0, rounds, is_cut: false })),
        Err(_) => Some(Err(file)),
    }
}

/// The frame of a known function; `None`: it had not begun.
fn at(
    profile: &mut Profile,
    (id, function): (FunctionId, &Function),
    place: &ScriptPlace,
) -> Option<FrameId> {
    let offset = place.offset;
    let has_begun = place.is_generator || function.has_begun(offset);
    has_begun.then(|| line_frame(profile, id, function.line(offset)))
}

/// Reads a function from its copied memory, or, if that is incomplete, from the first process that still has its code.
fn read(
    interpreter: &(impl Interpreter + ?Sized),
    code: CodeId,
    copied: &[(u64, Vec<u8>)],
    pids: [u32; 3],
) -> Option<Function> {
    let from = |memory: &dyn Memory| interpreter.function(memory, code).ok();
    let known = from(&CopiedMemory { parts: copied, process: None::<ProcessMemory> });
    if known.as_ref().is_some_and(Function::has_all_lines) {
        return known;
    }
    pids.into_iter().find_map(|pid| from(&ProcessMemory(pid))).or(known)
}
