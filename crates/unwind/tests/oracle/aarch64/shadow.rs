//! Changes of the active calls by instructions and signals.
//!
//! A call adds an entry with its stack pointer. An entry is removed when the stack pointer is above that, or when a jump
//! through a register leaves its frame with the stack pointer as it was: to the return address, or somewhere else with a
//! link register that is not that of the call, as longjmp and landing an exception do. A tail call keeps the link
//! register.

use plumb_unwind::{Architecture, Native, Registers};

use super::{Kind, X30};
use crate::oracle::shadow::{Entry, Shadow};
use crate::reference::Caller;

/// Offset of the interrupted `pc` in a signal frame: behind `siginfo_t`, the part of `ucontext_t` before the
/// `sigcontext`, the fault address and 32 other registers (linux, arch/arm64/include/uapi/asm/sigcontext.h).
const PC_IN_SIGNAL_FRAME: u64 = 128 + 176 + 8 + 32 * 8;

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
        let _ = read;
        let link = new.get(X30).map(|link| Native::code_address(link, 48));
        let after = old.ip() + 4;
        if kind == Kind::Call && new.ip() != old.ip() && link == Some(after) {
            self.bound(new.sp());
            self.push(below(new.sp(), after));
        }
        while self.top().is_some_and(|top| top.end < new.sp()) {
            self.leave();
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
