//! Finds the caller of a frame by the instructions of its function before the program counter: assembly that replaces all registers, as `longjmp`
//! does, has rules for the registers that it loads, which hold only where all or none are there.

use super::code::Code;
use super::decode::{Access, Effect, effect};
use super::numbers::{SP, X29, X30};
use crate::address::Avma;
use crate::architecture::{Architecture, Origin};
use crate::memory::Memory;
use crate::registers::RegisterSet;

/// Maximum number of instructions that are followed, and of those up to a jump.
const MOST: u64 = 128;
const MOST_TO_JUMP: u64 = 16;
/// Maximum number of branches whose targets are yet to come.
const BRANCHES: usize = 8;

/// Follows the function that begins at `begin` to the program counter. `None` if that is not possible, or if the function has saved its return
/// address, so that rules say where it is.
pub(super) fn origin<A: Architecture, M: Memory>(
    begin: Avma,
    registers: &RegisterSet<A>,
    memory: &mut M,
) -> Option<Origin<A>> {
    let mut code = Code::new(memory);
    let state = follow(begin.0, registers.ip(), &mut code)?;
    let Some(moved) = state.moved else {
        let target = target(registers, &mut code)?;
        let mut caller = *registers;
        caller.set(A::PC, target);
        return Some(Origin::Target(caller));
    };
    let Some(holder) = (0..=X30).rev().find(|&register| state.holders >> register & 1 != 0) else {
        return (!state.is_saved).then_some(Origin::Lost);
    };
    let Some(pc) = registers.get(holder) else { return Some(Origin::Lost) };
    let mut caller = *registers;
    let is_lost = |&register: &u16| register < 19 || register == X30 || state.changed >> register & 1 != 0;
    (0..=X30).filter(is_lost).for_each(|register| caller.forget(register));
    caller.set(SP, registers.sp().wrapping_sub(moved as u64));
    caller.set(A::PC, pc);
    Some(Origin::Caller(caller))
}

/// Effect of the instructions since the beginning of a function.
#[derive(Clone, Copy)]
struct State {
    /// Distance that the stack pointer has moved by; `None` if it was replaced.
    moved: Option<i64>,
    /// The registers that hold the return address, as bits.
    holders: u32,
    /// The registers that have been changed, as bits.
    changed: u32,
    /// The return address has been stored on the stack.
    is_saved: bool,
}

impl State {
    /// Runs an instruction that goes on behind it.
    fn run(&mut self, effect: Effect) {
        match effect {
            Effect::Access(access) => self.access(access),
            Effect::Add { to: SP, from: SP, offset } => {
                self.moved = self.moved.map(|moved| moved.wrapping_add(offset));
            }
            Effect::Add { to, .. } | Effect::Writes(to) => self.write(to),
            Effect::Loads(registers) => {
                registers.into_iter().flatten().for_each(|register| self.write(register));
            }
            Effect::Move { to, from } => self.copy(to, from),
            // Code that keeps its return address in another register knows that the callee does not change it.
            Effect::Call => self.write(X30),
            _ => {}
        }
    }

    fn write(&mut self, register: u16) {
        match register {
            SP => self.moved = None,
            _ => {
                self.holders &= !(1 << register);
                self.changed |= 1 << register;
            }
        }
    }

    fn access(&mut self, access: Access) {
        for register in access.registers.into_iter().flatten() {
            match access.loads {
                true => self.write(register),
                false => self.is_saved |= self.holders >> register & 1 != 0,
            }
        }
        self.moved = self.moved.map(|moved| moved.wrapping_add(access.moved));
    }

    fn copy(&mut self, to: u16, from: u16) {
        let holds = from <= X30 && self.holders >> from & 1 != 0;
        self.write(to);
        if holds && to <= X30 {
            self.holders |= 1 << to;
        }
    }
}

/// Follows the code from `begin` to `end`, in the order of addresses. Any way to an instruction leaves the same frame, so that one is enough: behind an
/// instruction that does not go on, that of a branch from further up.
fn follow<M: Memory>(begin: u64, end: u64, code: &mut Code<'_, M>) -> Option<State> {
    let mut state = State { moved: Some(0), holders: 1 << X30, changed: 0, is_saved: false };
    let mut later = [None; BRANCHES];
    let mut at = begin;
    for _ in 0..MOST {
        if at >= end {
            return (at == end).then_some(state);
        }
        let branch = match effect(code.word(at)?) {
            Effect::Branch(distance) => (false, Some(distance)),
            Effect::MayBranch(distance) => (true, Some(distance)),
            Effect::Jump(_) | Effect::Return | Effect::Stops => (false, None),
            // A frame's end, not another stack.
            Effect::Add { to: SP, from: X29, .. } => return None,
            other => {
                state.run(other);
                (true, None)
            }
        };
        let target = branch.1.map(|distance| at.wrapping_add_signed(distance));
        if let Some(target) = target.filter(|&target| target > at)
            && let Some(free) = later.iter_mut().find(|branch| branch.is_none_or(|(to, _)| to <= at))
        {
            *free = Some((target, state));
        }
        at = at.wrapping_add(4);
        if !branch.0 {
            (at, state) =
                later.into_iter().flatten().filter(|&(to, _)| to >= at).min_by_key(|&(to, _)| to)?;
        }
    }
    None
}

/// Returns the address that the code jumps to, if that is in its register already.
fn target<A: Architecture, M: Memory>(registers: &RegisterSet<A>, code: &mut Code<'_, M>) -> Option<u64> {
    let mut written = 0_u64;
    for at in (0..MOST_TO_JUMP).map(|index| registers.ip().wrapping_add(4 * index)) {
        let register = match effect(code.word(at)?) {
            Effect::Plain => continue,
            Effect::Add { to, .. } | Effect::Writes(to) | Effect::Move { to, .. } => {
                written |= 1 << to;
                continue;
            }
            Effect::Loads(registers) => {
                registers.into_iter().flatten().for_each(|register| written |= 1 << register);
                continue;
            }
            Effect::Return => X30,
            Effect::Jump(register) => register,
            _ => return None,
        };
        return registers.get(register).filter(|_| written & (1 << SP | 1 << register) == 0);
    }
    None
}
