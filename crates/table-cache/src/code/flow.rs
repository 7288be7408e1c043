//! The ways through the code of gaps, from where functions begin on, and the state at each instruction.
//!
//! Whether a call returns is not seen, nor always where functions begin: what comes after the last call of one, which does not, may be the next
//! one. So all that may be is followed, and believed is what leads to an end that fits (`ways`). What has been believed is not asked again.
//!
//! Functions begin where calls lead to and addresses are taken of; then, wherever nothing is known yet after code that has ended, one may begin, or
//! it is a case of a switch, which has the state of the jump before it, but for memory
//! that another case may have taken of the stack.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind};
use indexmap::IndexSet;
use rustc_hash::FxHashSet;

use super::effect::{After, State};
use super::pieces::Pieces;
use super::probes;
use super::ways::Ways;

/// A function, or a part of one, and the state from each of these addresses on.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) range: Range<u64>,
    pub(super) rows: Vec<(u64, State)>,
    /// It is the first part, which is what calls lead to.
    pub(super) is_first: bool,
}

/// What is known at an address, if it is not the number of a state: nothing; or it is within an instruction, or states differ.
const NOTHING: u16 = 0;
const OTHER: u16 = 1;
const FIRST_STATE: usize = 2;

/// So many instructions are looked at for each byte of a gap: code that jumps all over itself is no compiler's.
const MOST_STEPS: u64 = 16;

/// Functions that others lead to, and the cases of their switches, are found one after the other.
const MOST_ROUNDS: usize = 3;

/// How functions are aligned, and the stack where one is called.
pub(super) const ALIGNED: u64 = 16;

/// What is known at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    State(State),
    /// It is within an instruction, or states differ.
    Other,
}

pub(super) struct Flow<'t> {
    pieces: &'t Pieces,
    /// Where functions begin, in order.
    begins: &'t [u64],
    decoder: Decoder<'t>,
    info: InstructionInfoFactory,
    /// For each byte of the pieces.
    known: Vec<u16>,
    states: IndexSet<State>,
    /// What is called by what is believed, and what is jumped to.
    called: FxHashSet<u64>,
    jumped: FxHashSet<u64>,
    /// So many instructions were believed.
    learnt: u64,
    /// So many more may be looked at.
    steps: u64,
}

impl<'t> Flow<'t> {
    /// Of gaps with this code. Functions begin at `begins`, which are in order.
    pub(super) fn new(pieces: &'t Pieces, begins: &'t [u64]) -> Self {
        let bytes = pieces.bytes();
        Self {
            begins,
            decoder: Decoder::new(64, bytes, DecoderOptions::NONE),
            info: InstructionInfoFactory::new(),
            known: vec![NOTHING; bytes.len()],
            states: IndexSet::new(),
            called: FxHashSet::default(),
            jumped: FxHashSet::default(),
            learnt: 0,
            steps: MOST_STEPS * bytes.len() as u64,
            pieces,
        }
    }

    /// The functions, in order.
    pub(super) fn functions(mut self) -> Vec<Function> {
        let begins: Vec<_> = self.begins.iter().map(|&begin| (begin, State::BEGIN)).collect();
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

    pub(super) fn is_begin(&self, at: u64) -> bool {
        self.begins.binary_search(&at).is_ok()
    }

    /// Whether an address is in a gap.
    pub(super) fn contains(&self, at: u64) -> bool {
        self.pieces.offset(at).is_some()
    }

    /// What is known at an address; nothing outside of gaps.
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

    /// The instruction there, if all of it is in its gap and not too many were looked at.
    pub(super) fn instruction(&mut self, at: u64) -> Option<Instruction> {
        self.steps = self.steps.checked_sub(1)?;
        let (offset, rest) = self.pieces.offset(at)?;
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(at);
        let instruction = self.decoder.decode();
        (!instruction.is_invalid() && instruction.len() <= rest).then_some(instruction)
    }

    /// Whether what is believed calls a function there.
    pub(super) fn is_called(&self, at: u64) -> bool {
        self.called.contains(&at)
    }

    /// Notes where an instruction that is believed leads.
    pub(super) fn note(&mut self, instruction: &Instruction) {
        if instruction.op0_kind() == OpKind::NearBranch64 {
            let to = if instruction.is_call_near() { &mut self.called } else { &mut self.jumped };
            to.insert(instruction.near_branch_target());
        }
    }

    /// Whether a function begins at an address in a state, as far as that is known by now.
    fn is_first(&self, at: u64, state: State) -> bool {
        let is_guess = at.is_multiple_of(ALIGNED) && !self.jumped.contains(&at);
        state == State::BEGIN && (self.is_begin(at) || is_guess)
    }

    /// Whether a function is known to begin at an address, or behind what is there for alignment.
    pub(super) fn is_next_function(&mut self, mut at: u64) -> bool {
        loop {
            if self.is_begin(at) {
                return true;
            }
            let Some(instruction) = self.instruction(at).filter(is_padding) else { return false };
            at = instruction.next_ip();
        }
    }

    /// Whether what is there for alignment is at an address.
    pub(super) fn is_padded(&mut self, at: u64) -> bool {
        self.instruction(at).is_none_or(|instruction| is_padding(&instruction))
    }

    /// Believes a state at an instruction.
    pub(super) fn learn(&mut self, instruction: &Instruction, state: State) {
        let both = match self.known(instruction.ip()) {
            Known::Nothing => Some(state),
            Known::State(known) => known.or(state),
            Known::Other => None,
        };
        let number = both.and_then(|state| {
            let (index, _) = self.states.insert_full(state);
            u16::try_from(index + FIRST_STATE).ok()
        });
        self.learnt += 1;
        let Some((first, _)) = self.pieces.offset(instruction.ip()) else { return };
        let here = self.known.get_mut(first..first + instruction.len()).unwrap_or_default();
        if let Some((first, rest)) = here.split_first_mut() {
            *first = number.unwrap_or(OTHER);
            rest.fill(OTHER);
        }
    }

    /// Places that nothing is known of after code that has ended, and what may be the state there.
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
        // What is before the gap has ended. The state of the last jump through a register or memory.
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
            at = instruction.next_ip();
            if known == Known::Nothing && is_padding(&instruction) {
                continue;
            }
            if known == Known::Nothing && has_ended {
                let start = instruction.ip();
                if start.is_multiple_of(ALIGNED) || start == range.start {
                    others.push((start, State::BEGIN));
                }
                let states = switched.map(|state: State| [state, state.by_fp()]);
                others.extend(states.into_iter().flatten().map(|state| (start, state)));
            }
            if let (FlowControl::IndirectBranch, Known::State(state)) = (instruction.flow_control(), known) {
                switched = Some(state);
            }
            has_ended = !goes_on(&instruction);
        }
    }

    /// The states in order.
    fn rows(mut self) -> Vec<Function> {
        let mut functions: Vec<Function> = Vec::new();
        // Each is looked at once.
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
            let end = instruction.next_ip();
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

    /// Where code goes on after an instruction that leads to the next one, and in which state.
    pub(super) fn after(&mut self, instruction: &Instruction, state: State) -> (u64, After) {
        match probes::behind(self, instruction) {
            Some((behind, taken)) => (behind, state.after_taking(taken)),
            None => (instruction.next_ip(), state.after(instruction, &mut self.info)),
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

/// Whether nothing comes after an instruction but the next one.
pub(super) fn goes_on(instruction: &Instruction) -> bool {
    let is_trap = matches!(instruction.mnemonic(), Mnemonic::Ud2 | Mnemonic::Hlt | Mnemonic::Int3);
    !is_trap && matches!(instruction.flow_control(), FlowControl::Next | FlowControl::Interrupt)
}

/// Whether it is there for alignment alone.
fn is_padding(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}
