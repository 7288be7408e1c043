//! The shadow stack: the active calls, tracked by watching every instruction.
//!
//! An entry is a return address and the stack slot that holds it. A call adds an entry. An entry is removed when the
//! stack pointer has passed its slot, for whatever reason: return, longjmp, exception, sigreturn. So jumps through
//! `ret`, tail calls and lazy binding need no special handling.

use super::instruction::Kind;

/// An active call, or code that a signal interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address of the slot.
    pub slot: u64,
    /// The return address, or the interrupted program counter.
    pub address: u64,
    /// Whether the code did not call: a signal interrupted it, or it is the handler of an exception that is about to run.
    pub is_signal: bool,
    /// Number of the stack: signal handlers may run on an alternate stack.
    stack: usize,
}

/// Program counter and stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub ip: u64,
    pub sp: u64,
}

/// The active calls, outermost first.
#[derive(Default)]
pub struct Shadow {
    pub entries: Vec<Entry>,
    /// Entry whose address was popped into a register and is still the caller (vfork does that).
    pub in_register: Option<Entry>,
    stack: usize,
}

/// Offset of the interrupted `rip` in a signal frame: after the return address, `uc_flags`, `uc_link`, `uc_stack` and
/// 16 other registers (linux, arch/x86/include/uapi/asm/sigcontext.h).
const RIP_IN_SIGNAL_FRAME: u64 = 8 + 40 + 16 * 8;
/// Maximum distance between the stack pointer and a handler's frame on the same stack. A larger distance means an
/// alternate stack.
const SAME_STACK: u64 = 1 << 16;

impl Shadow {
    /// Updates the calls after an instruction of this kind.
    pub fn stepped(&mut self, kind: Kind, old: At, new: At, read: impl Fn(u64) -> Option<u64>) {
        if kind == Kind::Call && new.sp == old.sp.wrapping_sub(8) {
            let address = read(new.sp).unwrap_or(0);
            self.entries.push(Entry { slot: new.sp, address, is_signal: false, stack: self.stack });
        }
        self.return_from_register(old, new, &read);
        let count = self.entries.len();
        while let Some(&top) = self.entries.last() {
            if top.stack == self.stack && top.slot >= new.sp {
                break;
            }
            if top.stack != self.stack {
                break;
            }
            self.entries.pop();
            if kind == Kind::Pop && top.slot == old.sp {
                self.in_register = Some(top);
            }
        }
        self.land(new, count - self.entries.len(), read);
    }

    /// Replaces the innermost call where the code has moved its stack pointer to that call's return address, and has written the address of
    /// an exception's handler there, which it goes to next. `left`: the frames that the instruction has left. A return leaves one.
    fn land(&mut self, new: At, left: usize, read: impl Fn(u64) -> Option<u64>) {
        if let Some(top) = self.entries.last_mut().filter(|top| top.slot == new.sp)
            && let Some(address) = read(top.slot)
            && (left > 1 || left == 1 && address != top.address)
        {
            (top.address, top.is_signal) = (address, true);
        }
    }

    /// Updates the calls after `rt_sigreturn`.
    pub fn signal_returned(&mut self) {
        while let Some(entry) = self.entries.pop() {
            if entry.is_signal {
                break;
            }
        }
        self.stack = self.entries.last().map_or(0, |entry| entry.stack);
    }

    /// Updates the calls after a signal handler was entered.
    pub fn signalled(&mut self, old: At, new: At, read: impl Fn(u64) -> Option<u64>) {
        if old.sp.abs_diff(new.sp) > SAME_STACK {
            self.stack += 1;
        }
        let slot = new.sp + RIP_IN_SIGNAL_FRAME;
        for (slot, is_signal) in [(slot, true), (new.sp, false)] {
            self.entries.push(Entry { slot, address: read(slot).unwrap_or(0), is_signal, stack: self.stack });
        }
    }

    /// Sets the active calls, given as slots and return addresses, innermost first.
    pub fn begin(&mut self, calls: impl DoubleEndedIterator<Item = (u64, u64)>) {
        self.clear();
        let entry = |(slot, address)| Entry { slot, address, is_signal: false, stack: 0 };
        self.entries.extend(calls.rev().map(entry));
    }

    /// Removes all calls, because another program was executed.
    pub fn clear(&mut self) {
        *self = Shadow::default();
    }

    fn return_from_register(&mut self, old: At, new: At, read: &impl Fn(u64) -> Option<u64>) {
        let Some(entry) = self.in_register else { return };
        if new.sp == entry.slot && old.sp != new.sp && read(entry.slot) == Some(entry.address) {
            self.entries.push(entry);
            self.in_register = None;
        } else if new.sp > entry.slot + 8 || new.ip == entry.address || new.sp <= entry.slot {
            self.in_register = None;
        }
    }

    /// Returns all callers, innermost first.
    pub fn callers(&self) -> impl Iterator<Item = &Entry> {
        self.in_register.iter().chain(self.entries.iter().rev())
    }
}
