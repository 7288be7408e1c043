//! Unwinds stacks in one address space: by rules, and, where these are missing, by scanning.
//!
//! Elsewhere: the memory that the stack is read from.

use std::fs::File;
use std::os::unix::fs::FileExt;

use plumb_process::{AddressSpace as Mappings, Backing};
use plumb_unwind::scan::{self, ReadCode};
use plumb_unwind::{
    Architecture, Avma, Cache, CodeMap, End, Located, Memory, ReadError, RegisterSet, RuntimeFrame,
    RuntimeRule, Walked, Window, walk,
};

use super::AddressSpaces;
use super::code::Code;
use super::runtime::Runtime;
use super::space::{Space, SpaceId};
use crate::Source;

/// More frames than any sensible stack of 64 KiB has; a longer stack is marked as truncated. The BPF programs unwind as many.
pub(crate) const MAX_FRAMES: usize = 4096;

/// Prefix of the names of Erlang's runtime: beam.smp, beam.debug.smp.
const ERLANG: &[u8] = b"beam.";

/// One address space, as the unwinder accesses it.
struct View<'a> {
    code: &'a Code,
    mappings: &'a Mappings,
    runtime: Option<Runtime<'a>>,
}

impl<'a> View<'a> {
    /// The view of a space, and the space's cache.
    fn of(code: &'a Code, space: &'a mut Space) -> (View<'a>, &'a mut Cache) {
        let Space { mappings, interpreter, owner, runtime, cache, .. } = space;
        let runtime = Runtime::of(code, (mappings, *interpreter, *owner), runtime);
        (View { code, mappings, runtime }, cache)
    }

    /// Copies code from the file mapped at `at`. False unless all of it is in one mapping and can be read.
    fn read(&self, at: Avma, to: &mut [u8]) -> bool {
        let Some(mapping) = self.mappings.find(at.0) else { return false };
        let Backing::File(id) = mapping.backing else { return false };
        to.len() as u64 <= mapping.end.saturating_sub(at.0)
            && self.code.read_text(id, mapping.file_offset(at.0), to)
    }
}

impl CodeMap for View<'_> {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match self.mappings.find(pc.0) {
            Some(mapping) => self.code.located(mapping, pc),
            None => Located::Unmapped,
        }
    }

    fn runtime_rule<M: Memory>(&self, frame: &RuntimeFrame, memory: &mut M) -> RuntimeRule {
        self.runtime.as_ref().map_or(RuntimeRule::None, |runtime| runtime.rule(frame, memory))
    }

    /// Only Erlang's does. Java's code, without an option, keeps any value in the register.
    fn ends_chains_with_zero(&self) -> bool {
        let is_erlang = |backing| matches!(backing, Backing::File(id) if self.code.is_named(id, ERLANG));
        self.mappings.mappings().iter().any(|mapping| is_erlang(mapping.backing))
    }
}

/// Memory, with code from the mapped files: reading it needs no system call, and no process that still exists. Only code
/// without a file, or whose file is gone, is read from the process. (Code that was changed in memory is read as in
/// the file: the rules are the file's too.)
struct WithFiles<'a, M> {
    memory: &'a mut M,
    view: &'a View<'a>,
}

impl<M: Memory> Memory for WithFiles<'_, M> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.memory.read_u64(at)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.view.read(at, to) || self.memory.read_code(at, to)
    }

    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        self.memory.window()
    }
}

/// The code of a process: from its files, and from its memory while it runs.
struct Text<'a> {
    view: &'a View<'a>,
    memory: Option<File>,
}

impl ReadCode for Text<'_> {
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.view.read(at, to)
            || self.memory.as_ref().is_some_and(|memory| memory.read_exact_at(to, at.0).is_ok())
    }
}

impl AddressSpaces {
    /// Sets whether stacks that end for lack of unwind information are scanned for return addresses everywhere, and guesses are kept.
    pub(crate) fn scan_stacks(&mut self, wanted: bool) {
        self.wants_guesses = wanted;
    }

    /// Unwinds a stack by rules. The frames are in `walked`, innermost first.
    pub(crate) fn walk<A: Architecture>(
        &mut self,
        space: SpaceId,
        registers: &RegisterSet<A>,
        memory: &mut impl Memory,
        walked: &mut Vec<Walked>,
    ) -> End {
        let space = self.spaces.get_mut(space);
        space.walked = true;
        let (view, cache) = View::of(&self.code, space);
        let mut memory = WithFiles { memory, view: &view };
        walk(&view, &mut memory, cache, registers, MAX_FRAMES, walked)
    }

    /// Continues a walk of a stack of process `pid` that ended with `end` by scanning the stack, if that may help. Unless guesses are wanted, only in
    /// files, whose contents confirm the frames.
    pub(crate) fn scan<A: Architecture>(
        &mut self,
        (pid, space): (u32, SpaceId),
        registers: &RegisterSet<A>,
        memory: &mut impl Memory,
        walked: &mut Vec<Walked>,
        end: End,
    ) -> End {
        let known = self.spaces.get_mut(space);
        let view = View { code: &self.code, mappings: &known.mappings, runtime: None };
        if !scan::may_help::<A, _>(&view, &mut known.cache, end, walked) {
            return end;
        }
        let wants_guesses = self.wants_guesses;
        let live = (wants_guesses && self.source == Source::Live)
            .then(|| File::open(format!("/proc/{}/mem", plumb_process::living_thread(pid))).ok());
        let (view, cache) = View::of(&self.code, self.spaces.get_mut(space));
        let mut text = Text { view: &view, memory: live.flatten() };
        let mut memory = WithFiles { memory, view: &view };
        let with: (_, &mut dyn ReadCode, _, _) = (&view, &mut text, &mut memory, cache);
        scan::resume(!wants_guesses, with, registers, end, MAX_FRAMES, walked)
    }
}
