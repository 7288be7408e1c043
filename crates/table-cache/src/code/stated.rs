//! Functions without rules that the symbol table states, with their sizes: hand-written assembly, and code that another compiler made and an
//! assembler only stored, such as V8's builtins.
//!
//! The starts and ends of these are certain, so that the state of each instruction follows from the paths to it alone, and need not be proven by where they
//! lead. A called function may take its arguments from the stack, as those of JavaScript do: behind calls, a frame with a frame pointer is
//! known by that alone, and one without is known only if all paths end as they should. Code that no path leads to, such as handlers of exceptions, has
//! the function's frame.

use std::collections::BTreeMap;
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
    let mut paths = Paths::new(flow, function, Calls::KeepStack);
    paths.follow_all();
    if paths.ends_odd {
        paths = Paths::new(flow, function, Calls::MayPop);
        paths.follow_all();
    }
    paths.record();
}

/// The effect of calls on the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    KeepStack,
    /// A called function may take its arguments from the stack.
    MayPop,
}

/// The paths through a function.
struct Paths<'p, 't> {
    flow: &'p mut Flow<'t>,
    function: &'p Range<u64>,
    calls: Calls,
    /// Instructions to follow from, with their states, if these are known.
    from: Vec<(u64, Option<State>)>,
    /// States at instructions; `None`: unknown, or different on different paths.
    states: BTreeMap<u64, (Option<State>, u8)>,
    /// The end of what was searched for code that no path has led to.
    searched: u64,
    /// The function's frame, once its frame pointer is set.
    frame: Option<State>,
    /// Whether a path ends with another stack pointer than it began with.
    ends_odd: bool,
}

impl<'p, 't> Paths<'p, 't> {
    fn new(flow: &'p mut Flow<'t>, function: &'p Range<u64>, calls: Calls) -> Self {
        let from = vec![(function.start, Some(flow.begin()))];
        Self {
            flow,
            function,
            calls,
            from,
            states: BTreeMap::new(),
            searched: function.start,
            frame: None,
            ends_odd: false,
        }
    }
}

impl Paths<'_, '_> {
    /// Follows all paths, then those of code that none has led to, which has the function's frame.
    fn follow_all(&mut self) {
        self.follow();
        while let Some(frame) = self.frame
            && let Some(at) = self.unreached()
        {
            self.from.push((at, Some(frame)));
            self.follow();
        }
    }

    fn follow(&mut self) {
        while let Some((mut at, mut state)) = self.from.pop() {
            while let Some(next) = self.step(at, state) {
                (at, state) = next;
            }
        }
    }

    /// Notes the state at an instruction, and returns the next one with its state. `None`: the path ends here, or was followed.
    fn step(&mut self, at: u64, state: Option<State>) -> Option<(u64, Option<State>)> {
        if !self.function.contains(&at) || self.flow.known(at) != Known::Nothing {
            return None;
        }
        let (state, visits) = match self.states.get(&at) {
            None => (state, 1),
            Some(&(known, visits)) => {
                let both = known.zip(state).and_then(|(known, state)| known.or(state));
                (Some(both).filter(|both| *both != known && visits < MOST_VISITS)?, visits + 1)
            }
        };
        let instruction =
            self.flow.instruction(at).filter(|instruction| instruction.next() <= self.function.end)?;
        self.states.insert(at, (state, visits));
        if let Some(framed) = state.filter(|state| state.is_known_by_fp()) {
            self.frame.get_or_insert(framed.by_fp());
        }
        self.after(&instruction, state)
    }

    fn after(&mut self, instruction: &Instruction, state: Option<State>) -> Option<(u64, Option<State>)> {
        let exit = instruction.exit();
        match exit {
            Exit::Next => {
                let after = state.map(|state| self.flow.after(instruction, state));
                match after {
                    Some((next, After::Known(after))) => Some((next, Some(after))),
                    // Code that has moved the return address goes on with an ordinary frame.
                    _ if self.begins_frame(instruction) => Some((instruction.next(), Some(State::FRAMED))),
                    Some((next, _)) => Some((next, None)),
                    None => Some((instruction.next(), None)),
                }
            }
            Exit::Call(_) => Some((instruction.next(), state.and_then(|state| self.returned(state)))),
            Exit::Jump { to, is_conditional } => {
                self.from.extend(to.map(|to| (to, state)));
                let leaves = to.is_some_and(|to| !self.function.contains(&to));
                self.end(leaves, state);
                is_conditional.then_some((instruction.next(), state))
            }
            Exit::Return | Exit::Indirect => {
                self.end(true, state);
                None
            }
            Exit::Nowhere => None,
        }
    }

    /// Whether an instruction sets the frame pointer just after the caller's was pushed.
    fn begins_frame(&mut self, instruction: &Instruction) -> bool {
        // A push of the frame pointer is one byte long.
        let before = self.flow.instruction(instruction.address().wrapping_sub(1));
        match (before, instruction) {
            (Some(Instruction::X86_64(before)), Instruction::X86_64(instruction)) => {
                before.pushes_frame_pointer() && instruction.sets_frame_pointer()
            }
            _ => false,
        }
    }

    /// The state behind a call.
    fn returned(&self, state: State) -> Option<State> {
        // The call has put its own return address in the link register.
        if state.ra == ReturnAddress::InLink {
            return None;
        }
        let by_fp = state.by_fp();
        (self.calls == Calls::KeepStack || by_fp.sp.is_none()).then_some(by_fp)
    }

    /// Notes how a path ends. A function with a frame pointer is left in other ways too, such as a switch.
    fn end(&mut self, leaves: bool, state: Option<State>) {
        let is_odd = state.is_some_and(|state| !state.is_known_by_fp() && !state.is_as_at_begin());
        self.ends_odd |= leaves && is_odd;
    }

    /// The next instruction that no path has led to, except padding.
    fn unreached(&mut self) -> Option<u64> {
        while self.searched < self.function.end {
            let at = self.searched;
            let instruction = self.flow.instruction(at);
            self.searched = instruction.map_or(at + 1, |instruction| instruction.next());
            let is_padding = instruction.is_none_or(|instruction| instruction.is_padding());
            if !is_padding && !self.states.contains_key(&at) && self.flow.known(at) == Known::Nothing {
                return Some(at);
            }
        }
        None
    }

    /// Records the states.
    fn record(self) {
        let Self { flow, states, .. } = self;
        for (at, (state, _)) in states {
            if let (Some(state), Some(instruction)) = (state, flow.instruction(at)) {
                flow.learn(&instruction, state);
                flow.note(&instruction);
            }
        }
    }
}
