//! Changes of the active calls by instructions and signals.
//!
//! A call adds an entry with its stack pointer. An entry is removed when the stack pointer is above that, or when a jump
//! through a register leaves its frame with the stack pointer as it was: to the return address, or somewhere else with a
//! link register that is not that of the call. A tail call keeps the link register.
//!
//! Longjmp and landing an exception move the stack pointer out to that of an earlier call. That call has then been left for the address that the
//! next jump through a register goes to: the return address of setjmp, or a handler.

use plumb_unwind::{Architecture, Native, Registers};

use super::instruction::{self, jumps_through};
use super::{Kind, X30};
use crate::oracle::shadow::{Entry, Shadow};
use crate::reference::Caller;

/// Offset of the interrupted `pc` in a signal frame: behind `siginfo_t`, the part of `ucontext_t` before the
/// `sigcontext`, the fault address and 32 other registers (linux, arch/arm64/include/uapi/asm/sigcontext.h).
const PC_IN_SIGNAL_FRAME: u64 = 128 + 176 + 8 + 32 * 8;

/// `add sp, sp, register`, without the register: an exception's landing adds the distance to the handler's frame.
const ADD_TO_SP: u32 = 0x8b20_63ff;
/// Maximum number of instructions from where the stack pointer has moved to the jump.
const MOST_TO_JUMP: u64 = 16;

/// Returns the entry of a caller that was found from the files.
pub fn entry(caller: &Caller) -> Entry {
    below(caller.registers.sp(), caller.registers.ip())
}

/// A call with this stack pointer, below which its return address may be saved.
fn below(sp: u64, address: u64) -> Entry {
    Entry { slot: 0, end: sp, address, is_signal: false, stack: 0 }
}

impl Shadow {
    /// Updates the calls after an instruction of this kind.
    pub fn stepped(
        &mut self,
        kind: Kind,
        old: &Registers,
        new: &Registers,
        read: impl Fn(u64) -> Option<u64>,
    ) {
        let link = new.get(X30).map(|link| Native::code_address(link, 48));
        let after = old.ip() + 4;
        if kind == Kind::Call && new.ip() != old.ip() && link == Some(after) {
            self.bound(new.sp());
            self.push(below(new.sp(), after));
        }
        let count = self.entries.len();
        while self.top().is_some_and(|top| top.end < new.sp()) {
            self.leave();
        }
        if kind == Kind::Other && self.entries.len() < count {
            self.land(old, new, read);
        }
        while kind == Kind::Jump
            && new.ip() != old.ip()
            && let Some(top) = self.top().filter(|top| top.end == new.sp())
        {
            let has_returned = top.address == new.ip();
            if !has_returned && link == Some(top.address) {
                break;
            }
            self.leave();
            if has_returned {
                break;
            }
        }
    }

    /// Updates the calls after a signal handler was entered.
    pub fn signalled(&mut self, old: &Registers, new: &Registers, read: impl Fn(u64) -> Option<u64>) {
        self.bound(old.sp());
        self.may_switch(old.sp(), new.sp());
        let slot = new.sp() + PC_IN_SIGNAL_FRAME;
        self.push(Entry { is_signal: true, ..Entry::in_slot(slot, read(slot).unwrap_or(0)) });
        self.push(below(new.sp(), new.get(X30).unwrap_or(0)));
    }

    /// Replaces the innermost call by the place that the code goes to, if the stack pointer is that of this call.
    fn land(&mut self, old: &Registers, new: &Registers, read: impl Fn(u64) -> Option<u64>) {
        // A handler may follow a call that does not return.
        let is_handler = read(old.ip()).is_some_and(|word| word as u32 & 0xffe0_ffff == ADD_TO_SP);
        let words = (0..MOST_TO_JUMP).map_while(|index| read(new.ip() + 4 * index)).map(|word| word as u32);
        let Some(target) = words.filter_map(jumps_through).next().and_then(|register| new.get(register))
        else {
            return;
        };
        let follows_call =
            read(target - 4).is_some_and(|word| instruction::kind(&word.to_le_bytes()) == Kind::Call);
        if let Some(top) = self.entries.last_mut().filter(|top| top.end == new.sp()) {
            (top.address, top.is_signal) = (target, is_handler || !follows_call);
        }
    }

    /// The innermost call, if it is on the current stack.
    fn top(&self) -> Option<Entry> {
        self.entries.last().copied().filter(|top| top.stack == self.stack)
    }

    /// Removes the innermost call.
    fn leave(&mut self) {
        self.entries.pop();
        self.bound(0);
    }

    /// Says that the innermost frame ends at `sp`, so that its return address is not saved below.
    fn bound(&mut self, sp: u64) {
        if let Some(top) = self.entries.last_mut().filter(|top| !top.is_signal) {
            top.slot = sp;
        }
    }
}
