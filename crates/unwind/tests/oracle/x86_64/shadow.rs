//! Changes of the active calls by instructions and signals.
//!
//! A call adds an entry. An entry is removed when the stack pointer has passed its slot, for whatever reason: return,
//! longjmp, exception, sigreturn. So jumps through `ret`, tail calls and lazy binding need no special handling.

use plumb_unwind::Registers;

use super::Kind;
use crate::oracle::shadow::{Entry, Shadow};
use crate::reference::Caller;

/// Offset of the interrupted `rip` in a signal frame: after the return address, `uc_flags`, `uc_link`, `uc_stack` and
/// 16 other registers (linux, arch/x86/include/uapi/asm/sigcontext.h).
const RIP_IN_SIGNAL_FRAME: u64 = 8 + 40 + 16 * 8;

/// Returns the entry of a caller that was found from the files.
pub fn entry(caller: &Caller) -> Entry {
    Entry::in_slot(caller.slot.unwrap_or(0), caller.registers.ip())
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
        if kind == Kind::Call && new.sp() == old.sp().wrapping_sub(8) {
            self.push(Entry::in_slot(new.sp(), read(new.sp()).unwrap_or(0)));
        }
        self.return_from_register(old, new, &read);
        let count = self.entries.len();
        while let Some(&top) = self.entries.last() {
            if top.stack != self.stack || top.slot >= new.sp() {
                break;
            }
            self.entries.pop();
            if kind == Kind::Pop && top.slot == old.sp() {
                self.in_register = Some(top);
            }
        }
        self.land(new, count - self.entries.len(), read);
    }

    /// Replaces the innermost call where the code has moved its stack pointer to that call's return address, and has written the address of
    /// an exception's handler there, which it goes to next. `left`: the frames that the instruction has left. A return leaves one.
    fn land(&mut self, new: &Registers, left: usize, read: impl Fn(u64) -> Option<u64>) {
        if let Some(top) = self.entries.last_mut().filter(|top| top.slot == new.sp())
            && let Some(address) = read(top.slot)
            && (left > 1 || left == 1 && address != top.address)
        {
            (top.address, top.is_signal) = (address, true);
        }
    }

    /// Updates the calls after a signal handler was entered.
    pub fn signalled(&mut self, old: &Registers, new: &Registers, read: impl Fn(u64) -> Option<u64>) {
        self.may_switch(old.sp(), new.sp());
        let slot = new.sp() + RIP_IN_SIGNAL_FRAME;
        for (slot, is_signal) in [(slot, true), (new.sp(), false)] {
            self.push(Entry { is_signal, ..Entry::in_slot(slot, read(slot).unwrap_or(0)) });
        }
    }

    fn return_from_register(&mut self, old: &Registers, new: &Registers, read: &impl Fn(u64) -> Option<u64>) {
        let Some(entry) = self.in_register else { return };
        let sp = new.sp();
        if sp == entry.slot && old.sp() != sp && read(entry.slot) == Some(entry.address) {
            self.push(entry);
            self.in_register = None;
        } else if sp > entry.slot + 8 || new.ip() == entry.address || sp <= entry.slot {
            self.in_register = None;
        }
    }
}
