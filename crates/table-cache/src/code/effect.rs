//! What an instruction does to the stack and frame pointer.
//!
//! Instructions and what they write are iced's.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Where the frame of a function is, seen from an instruction of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The CFA is so far above the stack pointer; `None`: it is not known.
    pub(super) sp: Option<i32>,
    pub(super) fp: FramePointer,
    pub(super) saved: Saved,
}

/// What the frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FramePointer {
    /// The CFA is so far above it.
    Below(i32),
    /// The caller's, or something else.
    Other,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Saved {
    /// In the register.
    Not,
    /// So far from the CFA.
    At(i32),
    /// Nowhere that is known.
    Lost,
}

/// The state after an instruction.
pub(super) enum After {
    Known(State),
    /// It does something that is not known here.
    Unknown,
    /// No function does that.
    Never,
}

/// No frame is larger.
const MOST: i32 = 1 << 28;

impl After {
    /// That of a state, if there is one.
    fn of(state: Option<State>) -> Self {
        match state {
            // What is above the CFA is the caller's.
            Some(State { sp: Some(sp), .. }) if sp < 8 => After::Never,
            Some(State { sp: Some(sp), .. }) if sp > MOST => After::Unknown,
            Some(State { sp: None, fp, .. }) if !matches!(fp, FramePointer::Below(8..)) => After::Unknown,
            None => After::Unknown,
            Some(state) => After::Known(state),
        }
    }
}

impl State {
    /// Where a function begins.
    pub(super) const BEGIN: State = State { sp: Some(8), fp: FramePointer::Other, saved: Saved::Not };

    /// Whether the stack pointer is where it was at the begin, and the frame pointer is the caller's.
    pub(super) fn is_as_at_begin(self) -> bool {
        (self.sp, self.saved) == (State::BEGIN.sp, State::BEGIN.saved)
    }

    /// That of code to which both lead: by its frame pointer a frame is known whatever the stack pointer is, as where memory is taken of the stack
    /// in a loop. `None`: they say different things.
    pub(super) fn or(self, other: State) -> Option<State> {
        if self == other {
            return Some(self);
        }
        let both = self.by_fp();
        (both.sp.is_none() && both == other.by_fp()).then_some(both)
    }

    /// That with whatever stack pointer, if the frame is known by its frame pointer.
    pub(super) fn by_fp(self) -> State {
        if matches!(self.fp, FramePointer::Below(8..)) { State { sp: None, ..self } } else { self }
    }

    /// That after an instruction that leads to the next one.
    pub(super) fn after(self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> After {
        After::of(self.by_name(instruction, info))
    }

    /// That after so much was taken of the stack.
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

    /// The stack pointer is so far below where it was. `None`: no stack pointer would be there.
    fn go_down(&mut self, by: i32) -> Option<()> {
        if let Some(sp) = &mut self.sp {
            *sp = sp.checked_add(by)?;
        }
        Some(())
    }

    /// How far a register is below the CFA, if that is known.
    fn below(&self, register: Register) -> Option<i32> {
        match (register, self.fp) {
            (Register::RSP, _) => self.sp,
            (Register::RBP, FramePointer::Below(below)) => Some(below),
            _ => None,
        }
    }

    /// A pointer is so far below the CFA now, if that is known.
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

    /// The frame pointer is something else now.
    fn lose_fp(&mut self) {
        self.fp = FramePointer::Other;
        if self.saved == Saved::Not {
            self.saved = Saved::Lost;
        }
    }

    /// Takes the frame pointer from the stack, whose pointer is so far below the CFA.
    fn pop_fp(&mut self, sp: i32) {
        self.sp = Some(sp - 8);
        self.fp = FramePointer::Other;
        self.saved = match self.saved {
            Saved::At(at) if at == -sp => Saved::Not,
            Saved::Not => Saved::Lost,
            other => other,
        };
    }

    /// What else instructions write.
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

/// What an instruction adds, takes or compares with, if that is written in it.
pub(super) fn immediate(instruction: &Instruction) -> Option<i32> {
    let is_immediate = matches!(
        instruction.op1_kind(),
        OpKind::Immediate8 | OpKind::Immediate32 | OpKind::Immediate8to64 | OpKind::Immediate32to64
    );
    is_immediate.then(|| i32::try_from(instruction.immediate(1) as i64).ok()).flatten()
}

/// What is added to the one register that an address is made of.
fn displacement(instruction: &Instruction) -> Option<i32> {
    let is_alone = instruction.memory_index() == Register::None;
    is_alone.then(|| i32::try_from(instruction.memory_displacement64() as i64).ok()).flatten()
}
