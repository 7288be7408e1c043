//! Follows the paths through the code of gaps from the starts of functions, and finds the state at each instruction.
//!
//! Two facts are not always visible: whether a call returns, and where functions begin. The code after the last call
//! of a function, which does not return, may be the next function. So all possible paths are followed, and those are
//! accepted that lead to a matching end (`ways`). Accepted code is not examined again.
//!
//! Functions begin at targets of calls and at addresses that the code computes. Unknown code after code that has
//! ended may be another function, or a case of a switch. A case has the state of the jump before it, except for
//! memory that another case may have allocated on the stack.

use std::ops::Range;

use indexmap::IndexSet;
use plumb_unwind::Isa;
use rustc_hash::FxHashSet;

use super::effect::{After, State};
use super::exit::Exit;
use super::isa::{Decoder, Instruction, behind};
use super::pieces::Pieces;
use super::stated;
use super::ways::Ways;

/// A function or a part of one, with the state from each of these addresses on.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) range: Range<u64>,
    pub(super) rows: Vec<(u64, State)>,
    /// Whether this is the first part, which calls lead to.
    pub(super) is_first: bool,
}

/// Values in `Flow::known` that are not numbers of states: nothing known; below, within an instruction, or states
/// differ.
const NOTHING: u16 = 0;
const OTHER: u16 = 1;
const FIRST_STATE: usize = 2;

/// Maximum number of instructions examined per byte of a gap. Compilers do not generate code that needs more.
const MOST_STEPS: u64 = 16;

/// Maximum number of rounds that search for further functions and switch cases.
const MOST_ROUNDS: usize = 3;

/// Alignment of functions, and of the stack at a call.
pub(super) const ALIGNED: u64 = 16;

/// Knowledge about an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    State(State),
    /// Within an instruction, or states differ.
    Other,
}

pub(super) struct Flow<'t> {
    pieces: &'t Pieces,
    /// Starts of functions, sorted.
    begins: &'t [u64],
    /// Functions whose start and end are certain, sorted.
    stated: &'t [Range<u64>],
    decoder: Decoder<'t>,
    /// State at the start of a function.
    begin: State,
    /// Knowledge about each byte of the pieces: number of a state, or one of the constants above.
    known: Vec<u16>,
    states: IndexSet<State>,
    /// Targets of calls in accepted code; below, targets of jumps.
    called: FxHashSet<u64>,
    jumped: FxHashSet<u64>,
    /// Number of accepted instructions.
    learnt: u64,
    /// Number of instructions that may still be examined.
    steps: u64,
}

impl<'t> Flow<'t> {
    /// Creates a flow over the code of gaps. `begins` has the starts of functions, sorted; `stated` those whose start and end are certain.
    pub(super) fn new(isa: Isa, pieces: &'t Pieces, begins: &'t [u64], stated: &'t [Range<u64>]) -> Self {
        let bytes = pieces.bytes();
        Self {
            begins,
            stated,
            decoder: Decoder::new(isa, bytes),
            begin: State::begin(isa),
            known: vec![NOTHING; bytes.len()],
            states: IndexSet::new(),
            called: FxHashSet::default(),
            jumped: FxHashSet::default(),
            learnt: 0,
            steps: MOST_STEPS * bytes.len() as u64,
            pieces,
        }
    }

    /// Returns the functions, in order.
    pub(super) fn functions(mut self) -> Vec<Function> {
        self.stated.iter().for_each(|function| stated::follow(&mut self, function));
        let begins: Vec<_> = self.begins.iter().map(|&begin| (begin, self.begin)).collect();
        Ways::follow(&mut self, &begins, false).believe(&mut self);
        for _ in 0..MOST_ROUNDS {
            let (others, before) = (self.others(), self.learnt);
            Ways::follow(&mut self, &others, true).believe(&mut self);
            if self.learnt == before {
                break;
            }
        }
        self.rows()
    }

    /// Returns the state at the start of a function.
    pub(super) fn begin(&self) -> State {
        self.begin
    }

    pub(super) fn is_begin(&self, at: u64) -> bool {
        self.begins.binary_search(&at).is_ok() || self.is_stated(at)
    }

    /// Returns whether a function is stated to begin at an address.
    fn is_stated(&self, at: u64) -> bool {
        self.stated.binary_search_by_key(&at, |function| function.start).is_ok()
    }

    /// Returns whether an address is in a gap.
    pub(super) fn contains(&self, at: u64) -> bool {
        self.pieces.offset(at).is_some()
    }

    /// Returns what is known at an address; `Known::Nothing` outside of gaps.
    pub(super) fn known(&self, at: u64) -> Known {
        let number = self.pieces.offset(at).and_then(|(offset, _)| self.known.get(offset));
        match number {
            None | Some(&NOTHING) => Known::Nothing,
            Some(&number) => {
                let state = usize::from(number)
                    .checked_sub(FIRST_STATE)
                    .and_then(|index| self.states.get_index(index));
                state.map_or(Known::Other, |&state| Known::State(state))
            }
        }
    }

    /// Decodes the instruction at an address. `None` if it is not entirely in its gap, or too many were examined.
    pub(super) fn instruction(&mut self, at: u64) -> Option<Instruction> {
        self.steps = self.steps.checked_sub(1)?;
        let (offset, rest) = self.pieces.offset(at)?;
        self.decoder.decode(offset, at).filter(|instruction| instruction.length() <= rest)
    }

    /// Returns whether accepted code calls a function at this address.
    pub(super) fn is_called(&self, at: u64) -> bool {
        self.called.contains(&at)
    }

    /// Records the target of an accepted instruction.
    pub(super) fn note(&mut self, instruction: &Instruction) {
        match instruction.exit() {
            Exit::Call(Some(to)) => self.called.insert(to),
            Exit::Jump { to: Some(to), .. } => self.jumped.insert(to),
            _ => false,
        };
    }

    /// Returns whether a function begins at an address in a state, as far as is known yet.
    fn is_first(&self, at: u64, state: State) -> bool {
        let is_guess = at.is_multiple_of(ALIGNED) && !self.jumped.contains(&at);
        state == self.begin && (self.is_begin(at) || is_guess)
    }

    /// Returns whether a function is known to begin at an address or after padding there.
    pub(super) fn is_next_function(&mut self, mut at: u64) -> bool {
        loop {
            if self.is_begin(at) {
                return true;
            }
            let Some(instruction) = self.instruction(at).filter(Instruction::is_padding) else {
                return false;
            };
            at = instruction.next();
        }
    }

    /// Returns whether there is padding at an address.
    pub(super) fn is_padded(&mut self, at: u64) -> bool {
        self.instruction(at).is_none_or(|instruction| instruction.is_padding())
    }

    /// Records a state at an accepted instruction.
    pub(super) fn learn(&mut self, instruction: &Instruction, state: State) {
        let both = match self.known(instruction.address()) {
            Known::Nothing => Some(state),
            Known::State(known) => known.or(state),
            Known::Other => None,
        };
        let number = both.and_then(|state| {
            let (index, _) = self.states.insert_full(state);
            u16::try_from(index + FIRST_STATE).ok()
        });
        self.learnt += 1;
        let Some((first, _)) = self.pieces.offset(instruction.address()) else { return };
        let here = self.known.get_mut(first..first + instruction.length()).unwrap_or_default();
        if let Some((first, rest)) = here.split_first_mut() {
            *first = number.unwrap_or(OTHER);
            rest.fill(OTHER);
        }
    }

    /// Returns unknown addresses after code that has ended, with their possible states.
    fn others(&mut self) -> Vec<(u64, State)> {
        let mut others = Vec::new();
        for range in self.pieces.ranges() {
            self.others_of(range, &mut others);
        }
        others
    }

    fn others_of(&mut self, range: Range<u64>, others: &mut Vec<(u64, State)>) {
        let first = self.begins.partition_point(|&begin| begin < range.start);
        let mut begins = self.begins.iter().skip(first).copied().peekable();
        let mut at = range.start;
        // The code before the gap counts as ended. `switched` is the state of the last jump through a register or
        // memory.
        let (mut has_ended, mut switched) = (true, None);
        while at < range.end {
            if begins.next_if(|&begin| begin <= at).is_some() {
                switched = None;
                continue;
            }
            let Some(instruction) = self.instruction(at) else {
                (at, has_ended) = (at + 1, false);
                continue;
            };
            let known = self.known(at);
            at = instruction.next();
            if known == Known::Nothing && instruction.is_padding() {
                continue;
            }
            if known == Known::Nothing && has_ended {
                let start = instruction.address();
                if start.is_multiple_of(ALIGNED) || start == range.start {
                    others.push((start, self.begin));
                }
                let states = switched.map(|state: State| [state, state.by_fp()]);
                others.extend(states.into_iter().flatten().map(|state| (start, state)));
            }
            if let (Exit::Indirect, Known::State(state)) = (instruction.exit(), known) {
                switched = Some(state);
            }
            has_ended = instruction.exit() != Exit::Next;
        }
    }

    /// Returns the accepted states as functions, in order.
    fn rows(mut self) -> Vec<Function> {
        let mut functions: Vec<Function> = Vec::new();
        // Each instruction is examined once.
        self.steps = self.known.len() as u64;
        for range in self.pieces.ranges() {
            self.rows_of(range, &mut functions);
        }
        functions
    }

    fn rows_of(&mut self, range: Range<u64>, functions: &mut Vec<Function>) {
        let mut at = range.start;
        while at < range.end {
            let Known::State(state) = self.known(at) else {
                at += 1;
                continue;
            };
            let Some(instruction) = self.instruction(at) else { break };
            let end = instruction.next();
            match functions.last_mut() {
                Some(last) if last.range.end == at && !self.is_first(at, state) => last.add(at, end, state),
                _ => {
                    let is_first = self.is_first(at, state);
                    functions.push(Function { range: at..end, rows: vec![(at, state)], is_first });
                }
            }
            at = end;
        }
    }

    /// Returns where execution continues after an instruction that continues with the next one, and the state there.
    pub(super) fn after(&mut self, instruction: &Instruction, state: State) -> (u64, After) {
        match behind(self, instruction) {
            Some((behind, taken)) => (behind, state.after_taking(taken)),
            None => (instruction.next(), self.decoder.after(instruction, state)),
        }
    }
}

impl Function {
    fn add(&mut self, at: u64, end: u64, state: State) {
        if self.rows.last().is_none_or(|&(_, last)| last != state) {
            self.rows.push((at, state));
        }
        self.range.end = end;
    }
}
