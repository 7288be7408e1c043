//! Effect of an instruction on the stack and frame pointer.
//!
//! Decoding instructions and finding the registers that they write is left to iced.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Location of a function's frame at one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Distance in bytes from the stack pointer up to the CFA; `None`: unknown.
    pub(super) sp: Option<i32>,
    pub(super) fp: FramePointer,
    pub(super) saved: Saved,
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
    fn of(state: Option<State>) -> Self {
        match state {
            // The memory above the CFA belongs to the caller.
            Some(State { sp: Some(sp), .. }) if sp < 8 => After::Never,
            Some(State { sp: Some(sp), .. }) if sp > MOST => After::Unknown,
            Some(State { sp: None, fp, .. }) if !matches!(fp, FramePointer::Below(8..)) => After::Unknown,
            None => After::Unknown,
            Some(state) => After::Known(state),
        }
    }
}

impl State {
    /// State at the start of a function.
    pub(super) const BEGIN: State = State { sp: Some(8), fp: FramePointer::Other, saved: Saved::Not };

    /// Returns whether the stack pointer and the frame pointer have the values that they had at the function's start.
    pub(super) fn is_as_at_begin(self) -> bool {
        (self.sp, self.saved) == (State::BEGIN.sp, State::BEGIN.saved)
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
        if matches!(self.fp, FramePointer::Below(8..)) { State { sp: None, ..self } } else { self }
    }

    /// Returns the state after an instruction that continues with the next one.
    pub(super) fn after(self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> After {
        After::of(self.by_name(instruction, info))
    }

    /// Returns the state after `taken` bytes were allocated on the stack.
    pub(super) fn after_taking(mut self, taken: i32) -> After {
        After::of(self.go_down(taken).map(|()| self))
    }

    fn by_name(mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Option<State> {
        let increment = instruction.stack_pointer_increment();
        let [to, from] = [instruction.op0_register(), instruction.op1_register()];
        match (instruction.mnemonic(), to) {
            (Mnemonic::Push, Register::RBP) => {
                self.go_down(8)?;
                if self.saved == Saved::Not {
                    self.saved = self.sp.map_or(Saved::Lost, |sp| Saved::At(-sp));
                }
            }
            (Mnemonic::Pop, Register::RBP) => {
                let sp = self.sp?;
                self.pop_fp(sp);
            }
            (Mnemonic::Leave, _) => {
                let FramePointer::Below(sp) = self.fp else { return None };
                self.pop_fp(sp);
            }
            (Mnemonic::Sub | Mnemonic::Add, Register::RSP) => match immediate(instruction) {
                Some(by) if instruction.mnemonic() == Mnemonic::Sub => self.go_down(by)?,
                Some(by) => self.go_down(by.checked_neg()?)?,
                None => self.sp = None,
            },
            (Mnemonic::Lea, Register::RSP | Register::RBP) => {
                let base = self.below(instruction.memory_base());
                let below = base.zip(displacement(instruction)).and_then(|(base, by)| base.checked_sub(by));
                self.point(to, below);
            }
            (Mnemonic::Mov, Register::RSP | Register::RBP) => self.point(to, self.below(from)),
            _ => {
                self.write_others(instruction, info);
                self.go_down(increment.checked_neg()?)?;
            }
        }
        Some(self)
    }

    /// Lowers the stack pointer by `by` bytes. Returns `None` on overflow.
    fn go_down(&mut self, by: i32) -> Option<()> {
        if let Some(sp) = &mut self.sp {
            *sp = sp.checked_add(by)?;
        }
        Some(())
    }

    /// Returns the distance in bytes from a register up to the CFA, if known.
    fn below(&self, register: Register) -> Option<i32> {
        match (register, self.fp) {
            (Register::RSP, _) => self.sp,
            (Register::RBP, FramePointer::Below(below)) => Some(below),
            _ => None,
        }
    }

    /// Sets the distance from a pointer up to the CFA, if known.
    fn point(&mut self, register: Register, below: Option<i32>) {
        if register == Register::RSP {
            self.sp = below;
        } else {
            self.lose_fp();
            if let Some(below) = below.filter(|below| (-MOST..MOST).contains(below)) {
                self.fp = FramePointer::Below(below);
            }
        }
    }

    /// Records that the frame pointer was overwritten.
    fn lose_fp(&mut self) {
        self.fp = FramePointer::Other;
        if self.saved == Saved::Not {
            self.saved = Saved::Lost;
        }
    }

    /// Pops the frame pointer when the stack pointer is `sp` bytes below the CFA.
    fn pop_fp(&mut self, sp: i32) {
        self.sp = Some(sp - 8);
        self.fp = FramePointer::Other;
        self.saved = match self.saved {
            Saved::At(at) if at == -sp => Saved::Not,
            Saved::Not => Saved::Lost,
            other => other,
        };
    }

    /// Records the other registers that an instruction writes.
    fn write_others(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        let writes = |access| {
            matches!(
                access,
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        for used in info.info(instruction).used_registers().iter().filter(|used| writes(used.access())) {
            match used.register().full_register() {
                Register::RBP => self.lose_fp(),
                Register::RSP if instruction.stack_pointer_increment() == 0 => self.sp = None,
                _ => {}
            }
        }
    }
}

/// Returns the immediate operand of an instruction, if it has one.
pub(super) fn immediate(instruction: &Instruction) -> Option<i32> {
    let is_immediate = matches!(
        instruction.op1_kind(),
        OpKind::Immediate8 | OpKind::Immediate32 | OpKind::Immediate8to64 | OpKind::Immediate32to64
    );
    is_immediate.then(|| i32::try_from(instruction.immediate(1) as i64).ok()).flatten()
}

/// Returns the displacement of an address that consists of one register and a displacement.
fn displacement(instruction: &Instruction) -> Option<i32> {
    let is_alone = instruction.memory_index() == Register::None;
    is_alone.then(|| i32::try_from(instruction.memory_displacement64() as i64).ok()).flatten()
}
