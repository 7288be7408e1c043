//! Instructions of x86-64, decoded by iced.

mod probes;

use iced_x86::{
    DecoderOptions, FlowControl, Instruction as Decoded, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use super::effect::{After, FramePointer, Pointer, Saved, State};
use super::exit::Exit;

pub(super) use probes::behind;

/// A decoder of code, and what it needs to find an instruction's registers.
pub(super) struct Decoder<'t> {
    decoder: iced_x86::Decoder<'t>,
    info: InstructionInfoFactory,
}

/// An instruction.
#[derive(Clone, Copy)]
pub(super) struct Instruction(Decoded);

impl<'t> Decoder<'t> {
    pub(super) fn new(bytes: &'t [u8]) -> Self {
        Self {
            decoder: iced_x86::Decoder::new(64, bytes, DecoderOptions::NONE),
            info: InstructionInfoFactory::new(),
        }
    }

    /// Decodes the instruction at this offset, whose address is `at`. `None` if there is none.
    pub(super) fn decode(&mut self, offset: usize, at: u64) -> Option<Instruction> {
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(at);
        Some(self.decoder.decode()).filter(|decoded| !decoded.is_invalid()).map(Instruction)
    }

    /// Returns the state after an instruction that continues with the next one.
    pub(super) fn after(&mut self, instruction: &Instruction, state: State) -> After {
        After::of(effect(state, &instruction.0, &mut self.info))
    }
}

impl Instruction {
    /// Address of the first byte.
    pub(super) fn address(&self) -> u64 {
        self.0.ip()
    }

    /// Length in bytes.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the instruction is padding.
    pub(super) fn is_padding(&self) -> bool {
        matches!(self.0.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
    }

    /// Returns whether the instruction copies the stack pointer to the frame pointer.
    pub(super) fn sets_frame_pointer(&self) -> bool {
        let [to, from] = [self.0.op0_register(), self.0.op1_register()];
        self.0.mnemonic() == Mnemonic::Mov && (to, from) == (Register::RBP, Register::RSP)
    }

    /// Returns whether the instruction pushes the frame pointer.
    pub(super) fn pushes_frame_pointer(&self) -> bool {
        self.0.mnemonic() == Mnemonic::Push && self.0.op0_register() == Register::RBP
    }

    /// Returns the way on from the instruction.
    pub(super) fn exit(&self) -> Exit {
        let is_near = self.0.op0_kind() == OpKind::NearBranch64;
        let to = is_near.then(|| self.0.near_branch_target());
        match self.0.flow_control() {
            _ if matches!(self.0.mnemonic(), Mnemonic::Ud2 | Mnemonic::Hlt | Mnemonic::Int3) => Exit::Nowhere,
            FlowControl::Next | FlowControl::Interrupt => Exit::Next,
            FlowControl::Return => Exit::Return,
            FlowControl::Call | FlowControl::IndirectCall => Exit::Call(to),
            FlowControl::UnconditionalBranch => Exit::Jump { to, is_conditional: false },
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                Exit::Jump { to, is_conditional: true }
            }
            FlowControl::IndirectBranch => Exit::Indirect,
            FlowControl::Exception => Exit::Nowhere,
        }
    }
}

/// Returns the register that a frame is found by, if this is one.
fn pointer(register: Register) -> Option<Pointer> {
    match register {
        Register::RSP => Some(Pointer::Stack),
        Register::RBP => Some(Pointer::Frame),
        _ => None,
    }
}

/// Returns the state after an instruction that continues with the next one; `None`: its effect is unknown.
fn effect(mut state: State, instruction: &Decoded, info: &mut InstructionInfoFactory) -> Option<State> {
    let increment = instruction.stack_pointer_increment();
    let [to, from] = [instruction.op0_register(), instruction.op1_register()];
    match (instruction.mnemonic(), to) {
        (Mnemonic::Push, Register::RBP) => {
            state.go_down(8)?;
            if state.saved == Saved::Not {
                state.saved = state.sp.map_or(Saved::Lost, |sp| Saved::At(-sp));
            }
        }
        (Mnemonic::Pop, Register::RBP) => {
            let sp = state.sp?;
            state.pop_fp(sp);
        }
        (Mnemonic::Leave, _) => {
            let FramePointer::Below(sp) = state.fp else { return None };
            state.pop_fp(sp);
        }
        (Mnemonic::Sub | Mnemonic::Add, Register::RSP) => match immediate(instruction) {
            Some(by) if instruction.mnemonic() == Mnemonic::Sub => state.go_down(by)?,
            Some(by) => state.go_down(by.checked_neg()?)?,
            None => state.sp = None,
        },
        (Mnemonic::Lea, Register::RSP | Register::RBP) => {
            let base = pointer(instruction.memory_base()).and_then(|base| state.below(base));
            let below = base.zip(displacement(instruction)).and_then(|(base, by)| base.checked_sub(by));
            state.point(pointer(to)?, below);
        }
        (Mnemonic::Mov, Register::RSP | Register::RBP) => {
            state.point(pointer(to)?, pointer(from).and_then(|from| state.below(from)));
        }
        _ => {
            write_others(&mut state, instruction, info);
            state.go_down(increment.checked_neg()?)?;
        }
    }
    Some(state)
}

/// Records the other registers that an instruction writes.
fn write_others(state: &mut State, instruction: &Decoded, info: &mut InstructionInfoFactory) {
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    for used in info.info(instruction).used_registers().iter().filter(|used| writes(used.access())) {
        match used.register().full_register() {
            Register::RBP => state.lose_fp(),
            Register::RSP if instruction.stack_pointer_increment() == 0 => state.sp = None,
            _ => {}
        }
    }
}

/// Returns the immediate operand of an instruction, if it has one.
fn immediate(instruction: &Decoded) -> Option<i32> {
    let is_immediate = matches!(
        instruction.op1_kind(),
        OpKind::Immediate8 | OpKind::Immediate32 | OpKind::Immediate8to64 | OpKind::Immediate32to64
    );
    is_immediate.then(|| i32::try_from(instruction.immediate(1) as i64).ok()).flatten()
}

/// Returns the displacement of an address that consists of one register and a displacement.
fn displacement(instruction: &Decoded) -> Option<i32> {
    let is_alone = instruction.memory_index() == Register::None;
    is_alone.then(|| i32::try_from(instruction.memory_displacement64() as i64).ok()).flatten()
}
