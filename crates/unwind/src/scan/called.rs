//! Determines which function a call leads to, as far as code and rules show. If rules do not show where functions
//! begin, other calls do.
//!
//! Recognizing calls is elsewhere (`calls`), and so is choosing words on a stack (`scan`).

use crate::address::{Avma, Svma};
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::memory::Memory;
use crate::module::Extent;

use super::calls::{self, CallTarget, Jump};
use super::places::{ReadCode, is_code};

/// Maximum number of jumps followed from the target of a call.
const MAX_JUMPS: u32 = 4;
/// Maximum size of a function without rules, in bytes.
const MAX_FUNCTION: u64 = 1 << 20;
/// Number of bytes of code on either side that are searched for calls; below, the number searched at a time.
const AROUND: u64 = 16 << 10;
const CHUNK: usize = 512;
/// Maximum number of bytes of a function's code that are searched for jumps to another.
const MAX_JUMPING: u64 = 16 << 10;

/// A function that is known by one address in it.
#[derive(Clone, Copy)]
pub(super) struct Callee {
    at: Avma,
    /// Lower bound of the function's start, from other calls.
    pub(super) floor: Avma,
    begin: Begin,
}

impl Callee {
    /// Returns the function that holds an address, using rules only.
    pub(super) fn at<C: CodeMap>(code: &C, at: Avma, floor: Avma) -> Self {
        Callee { at, floor, begin: Begin::of(code, at) }
    }
}

/// Knowledge about the start of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// The exact start, from rules.
    At(Avma),
    /// A lower bound, in a file without rules for the function.
    From(Avma),
    /// Unknown: the memory has no file, or the file cannot be read.
    Somewhere,
    /// The address is not code.
    Nowhere,
}

impl Begin {
    fn of<C: CodeMap>(code: &C, at: Avma) -> Self {
        match code.locate(at) {
            Located::Module { module, bias } => {
                let there = |stated: Svma| Avma(stated.0.wrapping_add(bias));
                match module.extent(at.to_svma(bias)) {
                    Extent::Function(range) => Begin::At(there(range.start)),
                    Extent::Gap { start } => Begin::From(there(start)),
                }
            }
            Located::NoInfo | Located::Unreadable => Begin::Somewhere,
            Located::Unmapped => Begin::Nowhere,
        }
    }
}

/// Evidence that a call gives about its callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Called {
    /// Leads to another function.
    Elsewhere,
    /// Could lead anywhere: it goes through a register or memory, or to a function of another file.
    Perhaps,
    /// Leads to the function in question.
    Directly,
}

/// Estimates the start of a function that has no rules from the calls in the code around it. The last target of these
/// calls at or before an address is the start of its function, or of an earlier one if nothing calls its function
/// directly.
pub(super) fn nearest<A: Architecture, C: CodeMap>(code: &C, text: &mut dyn ReadCode, at: Avma) -> Callee {
    let mut callee = Callee::at(code, at, Avma(0));
    if matches!(callee.begin, Begin::At(_)) {
        return callee;
    }
    let mut bytes = [0; CHUNK + calls::LONGEST];
    let first = Avma(at.0.saturating_sub(AROUND) & !(CHUNK as u64 - 1));
    for chunk in 0..2 * AROUND / CHUNK as u64 {
        let start = first.offset((chunk * CHUNK as u64) as i64);
        // At the end of the code, the overlap with the next chunk may be missing.
        let length = [bytes.len(), CHUNK].into_iter().find(|&length| {
            is_code(code, start) && bytes.get_mut(..length).is_some_and(|bytes| text.read(start, bytes))
        });
        let Some(read) = length.and_then(|length| bytes.get(..length)) else { continue };
        calls::targets(A::ISA, read, start, |target| {
            if target > callee.floor && begins(code, target, callee) {
                callee.floor = target;
            }
        });
    }
    callee
}

/// Returns whether the instruction before `pc` may have called the function that holds `callee`. `None` if it is not
/// a call.
pub(super) fn follows_call<A: Architecture, C: CodeMap>(
    code: &C,
    text: &mut dyn ReadCode,
    pc: Avma,
    callee: Callee,
) -> Option<Called> {
    let mut bytes = [0; calls::LONGEST];
    let mut found = None;
    for call in calls::before(A::ISA, code_before::<A>(text, pc, &mut bytes), pc) {
        let says = match call {
            CallTarget::Direct(target) => leads_to::<A, C>(code, text, target, callee, MAX_JUMPS),
            CallTarget::Indirect => Called::Perhaps,
        };
        found = found.max(Some(says));
    }
    found
}

/// Returns the function of a file that a direct call before `pc` leads to, if known, following jumps; and whether the
/// call may be one through a pointer.
pub(super) fn calls_before<A: Architecture, C: CodeMap>(
    code: &C,
    text: &mut dyn ReadCode,
    pc: Avma,
) -> (Option<Avma>, bool) {
    let mut bytes = [0; calls::LONGEST];
    let (mut direct, mut through_pointer) = (None, false);
    for call in calls::before(A::ISA, code_before::<A>(text, pc, &mut bytes), pc) {
        match call {
            CallTarget::Direct(target) if is_code(code, target) => {
                direct = Some(destination::<A, C>(code, text, target))
            }
            CallTarget::Direct(_) => {}
            CallTarget::Indirect => through_pointer = true,
        }
    }
    (direct, through_pointer)
}

/// Follows functions that do nothing but jump on, starting at `target`.
fn destination<A: Architecture, C: CodeMap>(code: &C, text: &mut dyn ReadCode, mut target: Avma) -> Avma {
    for _ in 0..MAX_JUMPS {
        let mut bytes = [0; calls::STUB];
        if !is_code(code, target) || !text.read(target, &mut bytes) {
            break;
        }
        let Some(Jump::To(next)) = calls::jump(A::ISA, &bytes, target) else { break };
        target = next;
    }
    target
}

/// Ways in which a function may have come to run after a call that names another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Came {
    /// None, as far as the code can be read.
    Never,
    /// Nothing is known about the called function and its jumps.
    Unknown,
    /// The called function jumps through memory or a register, usually to one of several places in itself.
    Perhaps,
    /// The function was called, as far as is known, or the called function jumps to it.
    Here,
}

/// Determines how the function that holds `callee` came to run after the call before `pc`.
pub(super) fn came<A: Architecture, C: CodeMap>(
    code: &C,
    text: &mut dyn ReadCode,
    pc: Avma,
    callee: Callee,
) -> Came {
    match follows_call::<A, C>(code, text, pc, callee) {
        None => return Came::Never,
        Some(Called::Elsewhere) => {}
        Some(Called::Perhaps | Called::Directly) => return Came::Here,
    }
    let (Some(target), _) = calls_before::<A, C>(code, text, pc) else { return Came::Never };
    let Located::Module { module, bias } = code.locate(target) else { return Came::Never };
    let Extent::Function(range) = module.extent(target.to_svma(bias)) else { return Came::Unknown };
    let size = range.end.0.saturating_sub(range.start.0).min(MAX_JUMPING);
    let begin = Avma(range.start.0.wrapping_add(bias));
    let mut bytes = [0; CHUNK + calls::LONGEST];
    let mut came = Came::Never;
    for offset in (0..size).step_by(CHUNK) {
        let length = (size - offset).min(bytes.len() as u64) as usize;
        let Some(bytes) = bytes.get_mut(..length) else { break };
        let at = begin.offset(offset as i64);
        if !text.read(at, bytes) {
            break;
        }
        calls::jumps(A::ISA, bytes, at, |target| match target {
            Some(target) if begins(code, target, callee) => came = Came::Here,
            Some(_) => {}
            None => came = came.max(Came::Perhaps),
        });
    }
    came
}

/// Returns whether there is a call before `pc`, or the code there cannot be read.
pub(crate) fn may_follow_call<A: Architecture, M: Memory>(memory: &mut M, pc: Avma) -> bool {
    let mut bytes = [0; calls::LONGEST];
    let mut text = CodeOf(memory);
    let code = code_before::<A>(&mut text, pc, &mut bytes);
    code.is_empty() || calls::before(A::ISA, code, pc).next().is_some()
}

/// Returns how the code at `here` came to run after the call before `pc`; [`Came::Here`] if memory does not provide that call, or
/// no rules say where functions begin.
pub(crate) fn came_from<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    pc: Avma,
    here: Avma,
) -> Came {
    let callee = Callee::at(code, here, Avma(0));
    let is_known = matches!(callee.begin, Begin::At(_) | Begin::From(_));
    let mut text = CodeOf(memory);
    match is_known.then(|| came::<A, C>(code, &mut text, pc, callee)) {
        Some(Came::Never) if code_before::<A>(&mut text, pc, &mut [0; calls::LONGEST]).is_empty() => {
            Came::Here
        }
        came => came.unwrap_or(Came::Here),
    }
}

/// As [`follows_call`], as far as memory provides code, for the function with rules at `here`.
pub(crate) fn called<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    pc: Avma,
    here: Avma,
) -> Option<Called> {
    follows_call::<A, C>(code, &mut CodeOf(memory), pc, Callee::at(code, here, Avma(0)))
}

/// Code read from memory.
struct CodeOf<'m, M>(&'m mut M);

impl<M: Memory> ReadCode for CodeOf<'_, M> {
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.0.read_code(at, to)
    }
}

/// Reads the code that ends at `pc`, up to the length of the longest call.
fn code_before<'b, A: Architecture>(
    text: &mut dyn ReadCode,
    pc: Avma,
    bytes: &'b mut [u8; calls::LONGEST],
) -> &'b [u8] {
    // The code may begin less than that many bytes before `pc`.
    let readable = calls::lengths(A::ISA).iter().copied().find(|&length| {
        let bytes = bytes.get_mut(calls::LONGEST - length..);
        bytes.is_some_and(|bytes| text.read(pc.offset(-(length as i64)), bytes))
    });
    readable.and_then(|length| bytes.get(calls::LONGEST - length..)).unwrap_or_default()
}

/// Returns whether a call of `target` may lead to the function that holds `callee`.
fn leads_to<A: Architecture, C: CodeMap>(
    code: &C,
    text: &mut dyn ReadCode,
    target: Avma,
    callee: Callee,
    jumps: u32,
) -> Called {
    if begins(code, target, callee) {
        return Called::Directly;
    }
    let mut bytes = [0; calls::STUB];
    if jumps == 0 || !is_code(code, target) || !text.read(target, &mut bytes) {
        return Called::Elsewhere;
    }
    match calls::jump(A::ISA, &bytes, target) {
        Some(Jump::To(next)) => leads_to::<A, C>(code, text, next, callee, jumps - 1),
        Some(Jump::Imported) => Called::Perhaps,
        None => Called::Elsewhere,
    }
}

/// Returns whether `target` may be the start of the function.
fn begins<C: CodeMap>(code: &C, target: Avma, callee: Callee) -> bool {
    let is_near =
        target >= callee.floor && callee.at.0.checked_sub(target.0).is_some_and(|size| size < MAX_FUNCTION);
    match callee.begin {
        Begin::At(begin) => target == begin,
        Begin::From(start) => is_near && target >= start,
        Begin::Somewhere => {
            is_near && !matches!(code.locate(target), Located::Module { .. } | Located::Unmapped)
        }
        Begin::Nowhere => target == callee.at,
    }
}
