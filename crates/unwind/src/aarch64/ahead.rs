//! Finds the caller of code without rules by following its instructions up to the return.
//!
//! Every path from an instruction to a return restores the caller's stack pointer, and has its return address in the link
//! register then: it is still there, or is loaded from the stack on the way. So any path will do, and conditional branches
//! are taken only if the code behind them leads nowhere.

use super::code::Code;
use super::decode::{Access, Effect, effect};
use super::{Registers, SP, X29, X30};
use crate::address::Avma;
use crate::memory::Memory;

/// Maximum number of instructions that are followed: in code without rules, and to see whether rules are right, in functions whose
/// frame may be removed and in those that may have made one.
const MOST: usize = 400;
const MOST_OF_EPILOGUE: usize = 12;
const MOST_OF_FRAME: usize = 100;
/// Maximum number of branches that are tried later.
const BRANCHES: usize = 16;
/// `stp x16, x30, [sp, #-16]!`: begins the stub that all stubs for lazy binding go to. It does not return but jumps.
const LAZY: u32 = 0xa9bf_7bf0;
/// Number of bytes of that stub behind this instruction.
const LAZY_REST: i64 = 16;
/// The registers that are followed: those that calls preserve, and the link register.
const FIRST: u16 = 19;
const COUNT: usize = (X30 - FIRST) as usize + 1;

/// Returns the caller's registers, where the program counter is the raw return address, and the address that was read from, or 0.
pub(super) fn caller<M: Memory>(
    registers: &Registers,
    is_return: bool,
    memory: &mut M,
) -> Option<(Registers, Avma)> {
    let end = follow(&Path::begin(registers, is_return)?, MOST, &mut Code::new(memory))?;
    restore(&end, registers, memory)
}

/// As [`caller`], but only if the code contradicts a rule for it. `is_bare`: the rule is that of a function without frame; else it says where
/// in it the return address is. Compilers that describe calls alone (Clang for size, all versions before 15) have one rule from the end of a
/// prologue to the end of the function, and one for what comes before.
pub(super) fn correction<M: Memory>(
    registers: &Registers,
    is_bare: bool,
    memory: &mut M,
) -> Option<Option<(Registers, Avma)>> {
    let mut code = Code::new(memory);
    let before = code.word(registers.ip().wrapping_sub(4)).map(effect);
    let may_be_made = matches!(before, Some(Effect::Access(Access { loads: false, .. })))
        || matches!(before, Some(Effect::Add { to: SP | X29, from: SP, .. }));
    // Behind a call, the link register has the address of this instruction.
    let has_called = registers.get(X30) == Some(registers.ip());
    if is_bare && !may_be_made && !has_called {
        return None;
    }
    let most = if is_bare { MOST_OF_FRAME } else { MOST_OF_EPILOGUE };
    let end = follow(&Path::begin(registers, false)?, most, &mut code)?;
    let is_saved = end.value(X30) != Value::Same;
    (is_saved == is_bare).then(|| restore(&end, registers, memory))
}

/// Returns the registers at the end of a path.
fn restore<M: Memory>(end: &Path, registers: &Registers, memory: &mut M) -> Option<(Registers, Avma)> {
    let mut caller = *registers;
    caller.set(SP, end.sp?);
    (0..FIRST).for_each(|register| caller.forget(register));
    for register in FIRST..X30 {
        match end.value(register) {
            Value::Same => {}
            Value::At(slot) => match memory.read_u64(Avma(slot)) {
                Ok(value) => caller.set(register, value),
                Err(_) => caller.forget(register),
            },
            Value::Of(other) => caller.set(register, registers.get(other)?),
            Value::Lost => return None,
        }
    }
    let (pc, slot) = match end.value(X30) {
        Value::Same => (registers.get(X30)?, 0),
        Value::At(slot) => (memory.read_u64(Avma(slot)).ok()?, slot),
        Value::Of(other) => (registers.get(other)?, 0),
        Value::Lost => return None,
    };
    caller.forget(X30);
    caller.set(super::PC, pc);
    Some((caller, Avma(slot)))
}

/// The value of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// The register has not changed since the beginning of the path.
    Same,
    /// The word on the stack at this address.
    At(u64),
    /// Value of another register, which calls need not preserve, at the beginning of the path.
    Of(u16),
    /// Any other value.
    Lost,
}

/// A way through the code.
#[derive(Clone, Copy)]
struct Path {
    pc: u64,
    /// The stack pointer; `None` from where the frame gets a size that is not known.
    sp: Option<u64>,
    /// The frame pointer, as long as it is known.
    fp: Option<u64>,
    /// The stack pointer where the path begins.
    start: u64,
    /// The registers below [`FIRST`] that the path has changed, as bits.
    changed: u32,
    /// By register from [`FIRST`] on.
    values: [Value; COUNT],
    /// Slot in which the path has stored the register, and the stored value.
    stored: [Option<(u64, Value)>; COUNT],
}

impl Path {
    fn begin(registers: &Registers, is_return: bool) -> Option<Path> {
        let sp = registers.get(SP)?;
        let (values, stored) = ([Value::Same; COUNT], [None; COUNT]);
        let mut path = Path {
            pc: registers.ip(),
            sp: Some(sp),
            fp: registers.get(X29),
            start: sp,
            changed: 0,
            values,
            stored,
        };
        if is_return {
            path.set(X30, Value::Lost);
        }
        Some(path)
    }

    fn value(&self, register: u16) -> Value {
        index(register).and_then(|index| self.values.get(index)).copied().unwrap_or(Value::Lost)
    }

    fn set(&mut self, register: u16, value: Value) {
        if let Some(slot) = index(register).and_then(|index| self.values.get_mut(index)) {
            *slot = value;
        }
    }

    /// Loads or stores.
    fn access(&mut self, access: Access) {
        for (number, register) in (0..).zip(access.registers) {
            let slot = self.sp.map(|sp| sp.wrapping_add_signed(access.offset.wrapping_add(8 * number)));
            match (register, slot) {
                (Some(register), Some(slot)) if access.loads => self.load(register, slot),
                (Some(register), Some(slot)) => self.store(register, slot),
                (Some(register), None) if access.loads => self.write(register, None),
                _ => {}
            }
        }
        self.sp = self.sp.map(|sp| sp.wrapping_add_signed(access.moved));
    }

    fn load(&mut self, register: u16, slot: u64) {
        let stored = index(register).and_then(|index| *self.stored.get(index)?);
        let value = match stored {
            Some((stored, value)) if stored == slot => value,
            // Nothing of the frame is below its stack pointer.
            _ if slot < self.start => Value::Lost,
            _ => Value::At(slot),
        };
        self.set(register, value);
        if register == X29 {
            self.fp = None;
        }
    }

    fn store(&mut self, register: u16, slot: u64) {
        let value = self.value(register);
        let stored = index(register).and_then(|index| self.stored.get_mut(index));
        if let Some(stored) = stored.filter(|_| value != Value::Lost) {
            *stored = Some((slot, value));
        }
    }

    fn add(&mut self, (to, from): (u16, u16), offset: i64) {
        let base = match from {
            SP => self.sp,
            X29 => self.fp,
            _ => None,
        };
        self.write(to, base.map(|base| base.wrapping_add_signed(offset)));
    }

    fn copy(&mut self, to: u16, from: u16) {
        self.write(to, None);
        if from < FIRST && self.changed >> from & 1 == 0 {
            self.set(to, Value::Of(from));
        }
    }

    fn write(&mut self, register: u16, value: Option<u64>) {
        self.changed |= 1 << (register % 32);
        self.set(register, Value::Lost);
        match register {
            SP => self.sp = value,
            X29 => self.fp = value,
            _ => {}
        }
    }

    /// Whether a function makes its frame with this store: the one that the path begins in, or one that it ends with a jump to.
    fn saves_return_address(&self, access: Access) -> bool {
        let is_record = access.registers == [Some(X29), Some(X30)] && !access.loads && access.moved < 0;
        is_record && self.is_at_end() && self.value(X29) != Value::Lost
    }

    /// Whether the link register has the return address, for a caller that is not below this frame.
    fn is_at_end(&self) -> bool {
        self.value(X30) != Value::Lost && self.sp.is_some_and(|sp| sp >= self.start)
    }
}

/// Index of a register that is followed.
fn index(register: u16) -> Option<usize> {
    register.checked_sub(FIRST).map(usize::from)
}

/// Follows the code to a return. `None` if there is none near.
fn follow<M: Memory>(begin: &Path, most: usize, code: &mut Code<'_, M>) -> Option<Path> {
    let mut path = *begin;
    let mut search = Search { code, left: most, waiting: 0, targets: Targets::default() };
    search.run(&mut path).then_some(path)
}

/// A search for a return.
struct Search<'s, 'm, M> {
    code: &'s mut Code<'m, M>,
    /// Number of instructions that may still be followed.
    left: usize,
    /// Number of branches that are tried later.
    waiting: usize,
    targets: Targets,
}

impl<M: Memory> Search<'_, '_, M> {
    /// Follows a path to a return, at which it then is. False if there is none near.
    fn run(&mut self, path: &mut Path) -> bool {
        while let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            match step(path, self.code) {
                Step::On => {}
                Step::To(pc) if self.targets.is_new(pc) => path.pc = pc,
                Step::OnOr(pc) => {
                    if self.waiting < BRANCHES && self.targets.is_new(pc) {
                        let mut on = *path;
                        self.waiting += 1;
                        let is_found = self.run(&mut on);
                        self.waiting -= 1;
                        if is_found {
                            *path = on;
                            return true;
                        }
                        path.pc = pc;
                    }
                }
                Step::Returns => return path.is_at_end(),
                Step::To(_) | Step::Nowhere => return false,
            }
        }
        false
    }
}

/// The targets of branches so far. A loop without another way out leads nowhere.
#[derive(Default)]
struct Targets {
    all: [u64; 2 * BRANCHES],
    count: usize,
}

impl Targets {
    /// Notes a target. False if it was there before, or there are too many.
    fn is_new(&mut self, pc: u64) -> bool {
        let is_known = self.all.iter().take(self.count).any(|&known| known == pc);
        match self.all.get_mut(self.count).filter(|_| !is_known) {
            Some(slot) => {
                *slot = pc;
                self.count += 1;
                true
            }
            None => false,
        }
    }
}

/// Continuation after an instruction.
enum Step {
    On,
    /// To this address.
    To(u64),
    /// On or to this address.
    OnOr(u64),
    /// To the caller.
    Returns,
    Nowhere,
}

/// Runs one instruction.
fn step<M: Memory>(path: &mut Path, code: &mut Code<'_, M>) -> Step {
    let pc = path.pc;
    let Some(word) = code.word(pc) else { return Step::Nowhere };
    path.pc = pc.wrapping_add(4);
    match effect(word) {
        Effect::Plain => {}
        // No longer way can say more.
        Effect::Access(access) if path.saves_return_address(access) => return Step::Returns,
        Effect::Access(access) => path.access(access),
        Effect::Add { to, from, offset } => path.add((to, from), offset),
        Effect::Writes(register) => path.write(register, None),
        Effect::Loads(registers) => {
            registers.into_iter().flatten().for_each(|register| path.write(register, None))
        }
        Effect::Move { to, from } => path.copy(to, from),
        Effect::Call => {
            path.changed = u32::MAX;
            path.write(X30, None);
        }
        Effect::Branch(distance) => return Step::To(pc.wrapping_add_signed(distance)),
        Effect::MayBranch(distance) => return Step::OnOr(pc.wrapping_add_signed(distance)),
        Effect::Return => return Step::Returns,
        // Tail calls and stubs go through these, jump tables through others.
        Effect::Jump(16 | 17) => {
            leave_lazy_stub(path, pc, code);
            return Step::Returns;
        }
        Effect::Jump(_) | Effect::Stops => return Step::Nowhere,
    }
    Step::On
}

/// Removes what the stub for lazy binding has pushed for the dynamic linker, which it jumps to with the instruction at `jump`.
fn leave_lazy_stub<M: Memory>(path: &mut Path, jump: u64, code: &mut Code<'_, M>) {
    let is_pushed =
        (4..=LAZY_REST).step_by(4).any(|back| code.word(jump.wrapping_add_signed(-back)) == Some(LAZY));
    if is_pushed && path.value(X30) == Value::Same {
        path.sp = path.sp.map(|sp| sp.wrapping_add(16));
        // The path may have begun behind the push.
        if let Some(sp) = path.sp.filter(|&sp| sp > path.start) {
            path.set(X30, Value::At(sp - 8));
        }
    }
}
