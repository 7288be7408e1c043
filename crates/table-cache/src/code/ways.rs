//! Possible paths through code, and the selection of the accepted ones.
//!
//! A state is accepted if paths lead from it to a matching end: a return with the stack pointer at its initial value,
//! or a jump to another function. The states on those paths are accepted too. A state that leads to an end that does
//! not match is rejected. The code after a call counts as a matching end only if it is one, and never against the
//! code before the call, which may not return. A function that leads to no end at all, for example because it never
//! returns, is accepted if accepted code calls it.

use rustc_hash::FxHashMap;

use super::effect::{After, ReturnAddress, State};
use super::exit::Exit;
use super::flow::{ALIGNED, Flow, Known};
use super::isa::Instruction;

/// Maximum number of states that are followed from one address.
const MOST_STATES: usize = 4;

/// Basic block: the code from an instruction in some state to the first instruction that may lead elsewhere.
struct Block {
    start: u64,
    state: State,
    /// Successors.
    next: Vec<u32>,
    /// Successor if the block ends with a call and that returns.
    returned: Option<u32>,
    /// Whether the block ends like a function.
    ends_well: bool,
    /// Whether the block leads to an end that does not match.
    is_bad: bool,
    /// Whether the block is accepted.
    is_good: bool,
    is_learnt: bool,
}

/// The paths from a set of addresses.
pub(super) struct Ways {
    blocks: Vec<Block>,
    /// Blocks by start address.
    at: FxHashMap<u64, Vec<u32>>,
    /// Whether the start addresses are guesses.
    is_guess: bool,
}

impl Ways {
    /// Follows all paths from these addresses and states.
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

    /// Returns the block that starts there in that state. `None` if there are too many.
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

    /// Records the end of a block: one that functions have, or an impossible one.
    fn end(&mut self, index: usize, is_well: bool) {
        let block = &mut self.blocks[index];
        block.ends_well |= is_well;
        block.is_bad |= !is_well;
    }

    /// Finds the successors of a block.
    fn explore(&mut self, flow: &mut Flow<'_>, index: usize, mut at: u64, mut state: State) {
        loop {
            match flow.known(at) {
                Known::State(known) => return self.end(index, known.or(state).is_some()),
                Known::Other => return self.end(index, false),
                Known::Nothing => {}
            }
            let Some(instruction) = flow.instruction(at) else { return self.end(index, false) };
            if instruction.exit() != Exit::Next {
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

    /// Handles the instruction that ends a block.
    fn leave(&mut self, flow: &mut Flow<'_>, index: usize, instruction: &Instruction, state: State) {
        match instruction.exit() {
            Exit::Return => self.end(index, state.is_as_at_begin()),
            Exit::Call(to) => self.call(flow, index, (instruction.next(), to), state),
            Exit::Jump { to, is_conditional } => {
                for target in to.into_iter().chain(is_conditional.then(|| instruction.next())) {
                    if flow.contains(target) {
                        let next = self.block(target, state);
                        self.blocks[index].next.extend(next);
                    } else {
                        self.end(index, state.is_as_at_begin());
                    }
                }
            }
            // A switch, a tail call through a pointer, or a trap.
            Exit::Indirect | Exit::Nowhere | Exit::Next => {}
        }
    }

    /// Handles a call that ends a block. `to`: the called function, if the instruction names it.
    fn call(&mut self, flow: &mut Flow<'_>, index: usize, (next, to): (u64, Option<u64>), state: State) {
        // Calls of other functions follow the ABI's stack alignment. Compilers omit it for functions of which they
        // know all callers.
        let is_doubtful = self.is_guess && state.sp.is_some_and(|sp| sp % ALIGNED as i32 != 0);
        if is_doubtful && !to.is_some_and(|to| flow.is_begin(to)) {
            return self.end(index, false);
        }
        let may_be_next = is_doubtful && (next.is_multiple_of(ALIGNED) || flow.is_padded(next));
        // The call has put its own return address in the link register.
        let may_return = state.ra != ReturnAddress::InLink;
        if may_return && flow.contains(next) && !may_be_next && !flow.is_next_function(next) {
            self.blocks[index].returned = self.block(next, state);
        }
    }

    /// Accepts blocks that lead to matching ends, and the blocks between.
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

    /// Accepts functions without any end, such as ones that never return, if accepted code calls them: up to their
    /// first calls, because another function begins after the last one.
    fn endless(&mut self, flow: &Flow<'_>) -> Vec<u32> {
        let is_called = |block: &Block| block.state == flow.begin() && flow.is_called(block.start);
        let endless = self.those(|block| !block.is_bad && !block.is_good && is_called(block));
        endless.iter().for_each(|&index| self.blocks[index as usize].is_good = true);
        endless
    }

    /// Records accepted blocks that were not recorded yet.
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

    /// Propagates a change from some blocks to others, and further from those that it changes.
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

/// Records the states of a block.
fn learn(flow: &mut Flow<'_>, mut at: u64, mut state: State) {
    while flow.known(at) != Known::Other
        && let Some(instruction) = flow.instruction(at)
    {
        flow.learn(&instruction, state);
        if instruction.exit() != Exit::Next {
            return flow.note(&instruction);
        }
        let (next, After::Known(after)) = flow.after(&instruction, state) else { return };
        (at, state) = (next, after);
    }
}
