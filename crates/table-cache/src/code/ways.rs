//! Ways through code that may be, and which of them are believed.
//!
//! Believed is a state from which ways lead to an end that fits: a return with the stack pointer where it was at the begin, or a jump to another
//! function; and what those lead through. A state that leads to an end which does not fit is none. What is behind a call counts as an end
//! that fits only if it is one, and never against what is before it: the call may not return. A function that leads to no end at all, as one that
//! never returns, is believed if what is believed calls it.

use iced_x86::{FlowControl, Instruction, OpKind};
use rustc_hash::FxHashMap;

use super::effect::{After, State};
use super::flow::{ALIGNED, Flow, Known, goes_on};

/// So many states are followed from one place.
const MOST_STATES: usize = 4;

/// A stretch of code from an instruction in some state to the first that may lead elsewhere.
struct Block {
    start: u64,
    state: State,
    /// Where it leads to.
    next: Vec<u32>,
    /// Where it leads to if its last instruction, a call, returns.
    returned: Option<u32>,
    /// It ends as a function does.
    ends_well: bool,
    /// It leads to an end that does not fit.
    is_bad: bool,
    /// It is believed.
    is_good: bool,
    is_learnt: bool,
}

/// The ways from some places.
pub(super) struct Ways {
    blocks: Vec<Block>,
    /// Blocks by where they start.
    at: FxHashMap<u64, Vec<u32>>,
    /// Where they begin is guessed.
    is_guess: bool,
}

impl Ways {
    /// Follows all ways from these places on.
    pub(super) fn follow(flow: &mut Flow<'_>, from: &[(u64, State)], is_guess: bool) -> Self {
        let mut ways = Self { blocks: Vec::new(), at: FxHashMap::default(), is_guess };
        for &(start, state) in from {
            ways.block(start, state);
        }
        let mut done = 0;
        while let Some(block) = ways.blocks.get(done) {
            let (start, state) = (block.start, block.state);
            ways.explore(flow, done, start, state);
            done += 1;
        }
        ways
    }

    /// The block that starts there in that state. `None`: too many do.
    fn block(&mut self, start: u64, state: State) -> Option<u32> {
        let there = self.at.entry(start).or_default();
        let mut state = state;
        for &block in there.iter() {
            let both = self.blocks[block as usize].state.or(state);
            if both == Some(self.blocks[block as usize].state) {
                return Some(block);
            }
            state = both.unwrap_or(state);
        }
        if there.len() == MOST_STATES {
            return None;
        }
        let block = u32::try_from(self.blocks.len()).ok()?;
        there.push(block);
        let (next, returned) = (Vec::new(), None);
        self.blocks.push(Block {
            start,
            state,
            next,
            returned,
            ends_well: false,
            is_bad: false,
            is_good: false,
            is_learnt: false,
        });
        Some(block)
    }

    /// Notes that a block ends, as functions do or as none does.
    fn end(&mut self, index: usize, is_well: bool) {
        let block = &mut self.blocks[index];
        block.ends_well |= is_well;
        block.is_bad |= !is_well;
    }

    /// Finds out where a block leads to.
    fn explore(&mut self, flow: &mut Flow<'_>, index: usize, mut at: u64, mut state: State) {
        loop {
            match flow.known(at) {
                Known::State(known) => return self.end(index, known.or(state).is_some()),
                Known::Other => return self.end(index, false),
                Known::Nothing => {}
            }
            let Some(instruction) = flow.instruction(at) else { return self.end(index, false) };
            if !goes_on(&instruction) {
                return self.leave(flow, index, &instruction, state);
            }
            let (next, after) = flow.after(&instruction, state);
            match after {
                After::Known(after) => (at, state) = (next, after),
                After::Unknown => return,
                After::Never => return self.end(index, false),
            }
        }
    }

    /// What a block does that ends with this instruction.
    fn leave(&mut self, flow: &mut Flow<'_>, index: usize, instruction: &Instruction, state: State) {
        match instruction.flow_control() {
            FlowControl::Return => self.end(index, state.is_as_at_begin()),
            FlowControl::Call | FlowControl::IndirectCall => self.call(flow, index, instruction, state),
            FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
            | FlowControl::XbeginXabortXend => {
                let is_conditional = instruction.flow_control() != FlowControl::UnconditionalBranch;
                let is_near = instruction.op0_kind() == OpKind::NearBranch64;
                let target = is_near.then(|| instruction.near_branch_target());
                for target in target.into_iter().chain(is_conditional.then(|| instruction.next_ip())) {
                    if flow.contains(target) {
                        let next = self.block(target, state);
                        self.blocks[index].next.extend(next);
                    } else {
                        self.end(index, state.is_as_at_begin());
                    }
                }
            }
            // A switch, or a call that is the last thing that a function does; a trap.
            _ => {}
        }
    }

    /// What a block does that ends with this call.
    fn call(&mut self, flow: &mut Flow<'_>, index: usize, instruction: &Instruction, state: State) {
        let next = instruction.next_ip();
        // Elsewhere it is as the ABI wants it; compilers do without for functions that they know all callers of.
        let is_doubtful = self.is_guess && state.sp.is_some_and(|sp| sp % ALIGNED as i32 != 0);
        if is_doubtful {
            let is_near = instruction.op0_kind() == OpKind::NearBranch64;
            if !(is_near && flow.is_begin(instruction.near_branch_target())) {
                return self.end(index, false);
            }
        }
        let may_be_next = is_doubtful && (next.is_multiple_of(ALIGNED) || flow.is_padded(next));
        if flow.contains(next) && !may_be_next && !flow.is_next_function(next) {
            self.blocks[index].returned = self.block(next, state);
        }
    }

    /// Believes what leads to ends that fit, and what that leads through.
    pub(super) fn believe(mut self, flow: &mut Flow<'_>) {
        let mut before = vec![Vec::new(); self.blocks.len()];
        let mut called_before = before.clone();
        for (index, block) in (0..).zip(&self.blocks) {
            block.next.iter().for_each(|&next| before[next as usize].push(index));
            block.returned.iter().for_each(|&next| called_before[next as usize].push(index));
        }
        let bad = self.those(|block| block.is_bad);
        self.spread(
            bad,
            |index, _| before[index].clone(),
            |block| !std::mem::replace(&mut block.is_bad, true),
        );
        let become_good = |block: &mut Block| !block.is_bad && !std::mem::replace(&mut block.is_good, true);
        let ends = self.those(|block| block.ends_well && !block.is_bad);
        ends.iter().for_each(|&index| self.blocks[index as usize].is_good = true);
        self.spread(ends, |index, _| [&before[index][..], &called_before[index]].concat(), become_good);
        let mut good = self.those(|block| block.is_good);
        while !good.is_empty() {
            self.spread(good, |_, block| block.next.clone(), become_good);
            self.learn(flow);
            good = self.endless(flow);
        }
    }

    /// Functions without any end, as those that never return, which are called by what is believed: up to their first calls, as behind the last
    /// another function begins.
    fn endless(&mut self, flow: &Flow<'_>) -> Vec<u32> {
        let is_called = |block: &Block| block.state == State::BEGIN && flow.is_called(block.start);
        let endless = self.those(|block| !block.is_bad && !block.is_good && is_called(block));
        endless.iter().for_each(|&index| self.blocks[index as usize].is_good = true);
        endless
    }

    /// Believes what was not learnt of yet.
    fn learn(&mut self, flow: &mut Flow<'_>) {
        for block in self.blocks.iter_mut().filter(|block| block.is_good) {
            if !std::mem::replace(&mut block.is_learnt, true) {
                learn(flow, block.start, block.state);
            }
        }
    }

    fn those(&self, are: impl Fn(&Block) -> bool) -> Vec<u32> {
        (0..).zip(&self.blocks).filter(|(_, block)| are(block)).map(|(index, _)| index).collect()
    }

    /// Goes from some blocks to others, and on from those that that changes.
    fn spread(
        &mut self,
        mut from: Vec<u32>,
        to: impl Fn(usize, &Block) -> Vec<u32>,
        mut change: impl FnMut(&mut Block) -> bool,
    ) {
        while let Some(index) = from.pop() {
            for next in to(index as usize, &self.blocks[index as usize]) {
                if change(&mut self.blocks[next as usize]) {
                    from.push(next);
                }
            }
        }
    }
}

/// Believes the states of a block.
fn learn(flow: &mut Flow<'_>, mut at: u64, mut state: State) {
    while flow.known(at) != Known::Other
        && let Some(instruction) = flow.instruction(at)
    {
        flow.learn(&instruction, state);
        if !goes_on(&instruction) {
            return flow.note(&instruction);
        }
        let (next, After::Known(after)) = flow.after(&instruction, state) else { return };
        (at, state) = (next, after);
    }
}
