//! Functions without rules that the symbol table states, with their sizes: hand-written assembly, and code that another compiler made and an
//! assembler only stored, such as V8's builtins.
//!
//! Where a function begins and ends is certain, so that the state of each instruction follows from the paths to it alone, and need not be proven by where
//! they lead. A called function may take its arguments from the stack, as those of JavaScript do: behind calls, a frame with a frame pointer is
//! known by that alone. Code that no path leads to, such as handlers of exceptions, has the function's frame.

use std::ops::Range;

use plumb_process::SectionReader;

use super::effect::{After, ReturnAddress, State};
use super::exit::Exit;
use super::flow::{Flow, Known};
use super::isa::Instruction;

/// Bytes of a symbol (gABI, "Symbol Table").
const SYMBOL: usize = 24;
/// Symbols in memory at a time.
const AT_ONCE: usize = 1 << 15;
/// Most bytes of a symbol table.
const MOST_SYMBOLS: u64 = 256 << 20;
/// The type of a function's symbol.
const FUNCTION: u8 = 2;
/// Most states that are followed to one instruction.
const MOST_VISITS: u8 = 4;

/// The functions in gaps that a symbol table states, in order. Of two that overlap, the first.
pub(super) fn functions(symbols: &SectionReader, gaps: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut bytes = vec![0; SYMBOL * AT_ONCE];
    for offset in (0..symbols.size().min(MOST_SYMBOLS)).step_by(bytes.len()) {
        let read = symbols.read_at(offset, &mut bytes);
        let some = bytes.get(..read).unwrap_or_default().as_chunks::<SYMBOL>().0;
        found.extend(some.iter().filter_map(|symbol| function(symbol, gaps)));
    }
    found.sort_unstable_by_key(|function| (function.start, function.end));
    found.dedup_by(|next, function| next.start < function.end);
    found
}

/// The function of a symbol, if it is in one of the gaps.
fn function(symbol: &[u8; SYMBOL], gaps: &[Range<u64>]) -> Option<Range<u64>> {
    let word = |at: usize| symbol.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
    let (start, size) = (word(8)?, word(16)?);
    let end = start.checked_add(size).filter(|_| symbol[4] & 0xf == FUNCTION && size > 0)?;
    let after = gaps.partition_point(|gap| gap.start <= start);
    let gap = gaps.get(after.checked_sub(1)?)?;
    (end <= gap.end).then_some(start..end)
}

/// Follows the paths of a function from its start, and records the state at each instruction.
pub(super) fn follow(flow: &mut Flow<'_>, function: &Range<u64>) {
    let size = usize::try_from(function.end - function.start).unwrap_or(0);
    let begin = flow.begin();
    let mut paths =
        Paths { flow, function, from: vec![(function.start, begin)], visits: vec![0; size], frame: None };
    paths.follow();
    let Some(frame) = paths.frame else { return };
    while let Some(at) = paths.unreached() {
        paths.from.push((at, frame));
        paths.follow();
    }
}

/// The paths through a function.
struct Paths<'p, 't> {
    flow: &'p mut Flow<'t>,
    function: &'p Range<u64>,
    /// Instructions to follow from, with their states.
    from: Vec<(u64, State)>,
    /// How often each byte was followed from.
    visits: Vec<u8>,
    /// The function's frame, once its frame pointer is set.
    frame: Option<State>,
}

impl Paths<'_, '_> {
    fn follow(&mut self) {
        while let Some((mut at, mut state)) = self.from.pop() {
            while let Some(next) = self.step(at, state) {
                (at, state) = next;
            }
        }
    }

    /// Records the state at an instruction, and returns the next one with its state. `None`: the path ends here, or was followed.
    fn step(&mut self, at: u64, state: State) -> Option<(u64, State)> {
        if !self.function.contains(&at) {
            return None;
        }
        let state = match self.flow.known(at) {
            Known::Nothing => state,
            Known::State(known) => known.or(state).filter(|both| *both != known)?,
            Known::Other => return None,
        };
        let visits = self.visits.get_mut((at - self.function.start) as usize)?;
        *visits = visits.checked_add(1).filter(|visits| *visits <= MOST_VISITS)?;
        let instruction =
            self.flow.instruction(at).filter(|instruction| instruction.next() <= self.function.end)?;
        self.flow.learn(&instruction, state);
        self.flow.note(&instruction);
        if state.is_known_by_fp() {
            self.frame.get_or_insert(state.by_fp());
        }
        self.after(&instruction, state)
    }

    fn after(&mut self, instruction: &Instruction, state: State) -> Option<(u64, State)> {
        match instruction.exit() {
            Exit::Next => match self.flow.after(instruction, state) {
                (next, After::Known(after)) => Some((next, after)),
                (_, After::Unknown | After::Never) => None,
            },
            // The call has put its own return address in the link register.
            Exit::Call(_) if state.ra == ReturnAddress::InLink => None,
            Exit::Call(_) => Some((instruction.next(), state.by_fp())),
            Exit::Jump { to, is_conditional } => {
                self.from.extend(to.map(|to| (to, state)));
                is_conditional.then_some((instruction.next(), state))
            }
            Exit::Return | Exit::Indirect | Exit::Nowhere => None,
        }
    }

    /// The first instruction that no path has led to and that is no padding.
    fn unreached(&mut self) -> Option<u64> {
        let mut at = self.function.start;
        while at < self.function.end {
            let instruction = self.flow.instruction(at);
            let is_padding = instruction.is_none_or(|instruction| instruction.is_padding());
            let visits = self.visits.get((at - self.function.start) as usize).copied()?;
            if visits == 0 && !is_padding && self.flow.known(at) == Known::Nothing {
                return Some(at);
            }
            at = instruction.map_or(at + 1, |instruction| instruction.next());
        }
        None
    }
}
