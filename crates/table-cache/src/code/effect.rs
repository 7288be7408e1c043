//! Location of a function's frame, and how instructions change it.
//!
//! Elsewhere: the effect of each instruction (`x86_64`, `aarch64`).

use plumb_unwind::Isa;

/// Location of a function's frame at one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Distance in bytes from the stack pointer up to the CFA; `None`: unknown.
    pub(super) sp: Option<i32>,
    pub(super) fp: FramePointer,
    pub(super) saved: Saved,
    pub(super) ra: ReturnAddress,
}

/// Location of the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReturnAddress {
    /// Just below the CFA, where calls push it.
    Pushed,
    /// In the link register, where calls leave it.
    InLink,
    /// At this offset from the CFA.
    At(i32),
    /// Unknown.
    Lost,
}

/// Value of the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FramePointer {
    /// Points this many bytes below the CFA.
    Below(i32),
    /// The caller's value, or anything else.
    Other,
}

/// Location of the caller's frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Saved {
    /// Still in the register.
    Not,
    /// At this offset from the CFA.
    At(i32),
    /// Unknown.
    Lost,
}

/// A register that a frame is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Stack,
    Frame,
}

/// State after an instruction.
pub(super) enum After {
    Known(State),
    /// The effect of the instruction is unknown.
    Unknown,
    /// Impossible in a function: the state before was wrong.
    Never,
}

/// Maximum size of a frame in bytes.
const MOST: i32 = 1 << 28;

impl After {
    /// Classifies a computed state; `None` means that the effect is unknown.
    pub(super) fn of(state: Option<State>) -> Self {
        match state {
            Some(state @ State { sp: Some(sp), .. }) if sp < state.least() => After::Never,
            Some(State { sp: Some(sp), .. }) if sp > MOST => After::Unknown,
            Some(state @ State { sp: None, .. }) if !state.is_known_by_fp() => After::Unknown,
            None | Some(State { ra: ReturnAddress::Lost, .. }) => After::Unknown,
            Some(state) => After::Known(state),
        }
    }
}

impl State {
    /// Returns the state at the start of a function.
    pub(super) const fn begin(isa: Isa) -> State {
        let (sp, ra) = match isa {
            Isa::X86_64 => (8, ReturnAddress::Pushed),
            Isa::Aarch64 | Isa::Arm => (0, ReturnAddress::InLink),
        };
        State { sp: Some(sp), fp: FramePointer::Other, saved: Saved::Not, ra }
    }

    /// State of x86-64 after the usual start of a function with a frame pointer.
    pub(super) const FRAMED: State =
        State { sp: Some(16), fp: FramePointer::Below(16), saved: Saved::At(-16), ra: ReturnAddress::Pushed };

    /// Returns whether the stack pointer, the frame pointer and the return address are as they were at the function's start.
    pub(super) fn is_as_at_begin(self) -> bool {
        let is_kept = matches!(self.ra, ReturnAddress::Pushed | ReturnAddress::InLink);
        self.sp == Some(self.least()) && self.saved == Saved::Not && is_kept
    }

    /// The smallest distance in bytes from the stack pointer up to the CFA: the memory above belongs to the caller.
    fn least(self) -> i32 {
        if self.ra == ReturnAddress::Pushed { 8 } else { 0 }
    }

    /// Returns whether the frame pointer says where the frame is.
    pub(super) fn is_known_by_fp(self) -> bool {
        matches!(self.fp, FramePointer::Below(below) if below >= self.least())
    }

    /// Merges two states that lead to the same code. If both have the same frame by the frame pointer, the stack
    /// pointer becomes unknown, as in a loop that allocates stack memory. Returns `None` if they contradict each
    /// other.
    pub(super) fn or(self, other: State) -> Option<State> {
        if self == other {
            return Some(self);
        }
        let both = self.by_fp();
        (both.sp.is_none() && both == other.by_fp()).then_some(both)
    }

    /// Returns the state with an unknown stack pointer, if the frame is known by the frame pointer.
    pub(super) fn by_fp(self) -> State {
        if self.is_known_by_fp() { State { sp: None, ..self } } else { self }
    }

    /// Returns the state after `taken` bytes were allocated on the stack.
    pub(super) fn after_taking(mut self, taken: i32) -> After {
        After::of(self.go_down(taken).map(|()| self))
    }

    /// Lowers the stack pointer by `by` bytes. Returns `None` on overflow.
    pub(super) fn go_down(&mut self, by: i32) -> Option<()> {
        if let Some(sp) = &mut self.sp {
            *sp = sp.checked_add(by)?;
        }
        Some(())
    }

    /// Returns the distance in bytes from a register up to the CFA, if known.
    pub(super) fn below(&self, pointer: Pointer) -> Option<i32> {
        match (pointer, self.fp) {
            (Pointer::Stack, _) => self.sp,
            (Pointer::Frame, FramePointer::Below(below)) => Some(below),
            (Pointer::Frame, FramePointer::Other) => None,
        }
    }

    /// Records the distance in bytes from a register that was written up to the CFA, if known.
    pub(super) fn point(&mut self, pointer: Pointer, below: Option<i32>) {
        if pointer == Pointer::Stack {
            self.sp = below;
        } else {
            self.lose_fp();
            if let Some(below) = below.filter(|below| (-MOST..MOST).contains(below)) {
                self.fp = FramePointer::Below(below);
            }
        }
    }

    /// Records that the frame pointer was overwritten.
    pub(super) fn lose_fp(&mut self) {
        self.fp = FramePointer::Other;
        if self.saved == Saved::Not {
            self.saved = Saved::Lost;
        }
    }

    /// Pops the frame pointer when the stack pointer is `sp` bytes below the CFA.
    pub(super) fn pop_fp(&mut self, sp: i32) {
        self.sp = Some(sp - 8);
        self.fp = FramePointer::Other;
        self.saved = match self.saved {
            Saved::At(at) if at == -sp => Saved::Not,
            Saved::Not => Saved::Lost,
            other => other,
        };
    }
}
