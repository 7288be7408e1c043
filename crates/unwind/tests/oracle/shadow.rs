//! The shadow stack: the active calls, tracked by watching every instruction.
//!
//! Instructions and signals change it by the rules in `x86_64/shadow.rs` and `aarch64/shadow.rs`.

/// An active call, or code that a signal interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Lowest address at which the return address may be saved: its slot, where calls push it.
    pub slot: u64,
    /// End of the addresses at which it may be saved: the stack pointer at the call, where calls leave it in a register.
    pub end: u64,
    /// The return address, or the interrupted program counter.
    pub address: u64,
    /// Whether the code did not call: a signal interrupted it, or it is the handler of an exception that is about to run.
    pub is_signal: bool,
    /// Number of the stack: signal handlers may run on an alternate stack.
    pub stack: usize,
}

impl Entry {
    /// A call whose return address is in this slot.
    pub fn in_slot(slot: u64, address: u64) -> Entry {
        Entry { slot, end: slot + 1, address, is_signal: false, stack: 0 }
    }

    /// Whether the return address may be saved at this address.
    pub fn may_be_at(&self, slot: u64) -> bool {
        (self.slot..self.end).contains(&slot)
    }
}

/// The active calls, outermost first.
#[derive(Default)]
pub struct Shadow {
    pub entries: Vec<Entry>,
    /// Entry whose address was popped into a register and is still the caller (vfork on x86_64 does that).
    pub in_register: Option<Entry>,
    /// Number of the current stack.
    pub stack: usize,
}

/// Maximum distance between the stack pointer and a handler's frame on the same stack. A larger distance means an
/// alternate stack.
const SAME_STACK: u64 = 1 << 16;

impl Shadow {
    /// Adds a call on the current stack.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(Entry { stack: self.stack, ..entry });
    }

    /// Counts another stack if a signal handler's stack pointer is far from that of the interrupted code.
    pub fn may_switch(&mut self, old: u64, new: u64) {
        if old.abs_diff(new) > SAME_STACK {
            self.stack += 1;
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

    /// Sets the active calls, given innermost first.
    pub fn begin(&mut self, calls: impl DoubleEndedIterator<Item = Entry>) {
        self.clear();
        self.entries.extend(calls.rev());
    }

    /// Removes all calls, because another program was executed.
    pub fn clear(&mut self) {
        *self = Shadow::default();
    }

    /// Returns all callers, innermost first.
    pub fn callers(&self) -> impl Iterator<Item = &Entry> {
        self.in_register.iter().chain(self.entries.iter().rev())
    }
}
