//! Classes of instructions.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::operands::access;
use super::{MachineInstruction, name_of};
use crate::annotate::{Class, InstructionKind, MemoryPlace};

/// Computes the classes of a function's instructions.
pub(crate) struct Classes {
    factory: InstructionInfoFactory,
    /// Whether `rbp` points into the frame.
    has_frame_pointer: bool,
}

impl Classes {
    /// Creates the state for a function with these instructions.
    pub fn new<'a>(mut instructions: impl Iterator<Item = &'a MachineInstruction>) -> Self {
        let sets_frame_pointer = |instruction: &Instruction| {
            instruction.mnemonic() == Mnemonic::Enter
                || instruction.mnemonic() == Mnemonic::Mov
                    && matches!(instruction.op0_register(), Register::RBP | Register::EBP)
                    && matches!(instruction.op1_register(), Register::RSP | Register::ESP)
        };
        let has_frame_pointer = instructions.any(|one| sets_frame_pointer(&one.0));
        Self { factory: InstructionInfoFactory::new(), has_frame_pointer }
    }

    /// Returns the class of one of them.
    pub fn of(&mut self, instruction: &MachineInstruction) -> Class {
        let instruction = &instruction.0;
        let kind = kind(instruction);
        let place = self.place(instruction);
        let (loads, stores) = match instruction.flow_control() {
            // The stack access of calls and returns is not what they may wait for.
            FlowControl::Call | FlowControl::Return => (false, false),
            FlowControl::IndirectCall | FlowControl::IndirectBranch => (place.is_some(), false),
            _ => {
                let memory =
                    self.factory.info(instruction).used_memory().iter().map(|used| access(used.access()));
                memory.fold((false, false), |all, one| (all.0 || one.0, all.1 || one.1))
            }
        };
        Class { kind, loads, stores, place, vector_bits: vector_bits(instruction) }
    }

    fn place(&self, instruction: &Instruction) -> Option<MemoryPlace> {
        let is_memory = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
        // `lea` and long forms of `nop` have an address but do not access it.
        if !is_memory || matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
            return None;
        }
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        let is_frame = match base {
            Register::RSP | Register::ESP => true,
            Register::RBP | Register::EBP => self.has_frame_pointer,
            _ => false,
        };
        Some(match instruction.memory_segment() {
            Register::FS | Register::GS => MemoryPlace::ThreadLocal,
            _ if is_frame => MemoryPlace::Stack,
            _ if instruction.is_ip_rel_memory_operand() => MemoryPlace::Global,
            _ if index != Register::None => MemoryPlace::Indexed,
            _ if base == Register::None => MemoryPlace::Global,
            _ => MemoryPlace::Pointer,
        })
    }
}

fn kind(instruction: &Instruction) -> InstructionKind {
    let mnemonic = instruction.mnemonic();
    match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => return InstructionKind::Branch,
        FlowControl::UnconditionalBranch => return InstructionKind::Jump,
        FlowControl::IndirectBranch => return InstructionKind::IndirectJump,
        FlowControl::Return => return InstructionKind::Return,
        // iced counts `syscall` and `sysenter` among calls.
        _ if is_system_call(mnemonic) => return InstructionKind::SystemCall,
        FlowControl::Call => return InstructionKind::Call,
        FlowControl::IndirectCall => return InstructionKind::IndirectCall,
        FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => {}
    }
    let exchanges = mnemonic == Mnemonic::Xchg && instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    if instruction.has_lock_prefix() || exchanges {
        return InstructionKind::Lock;
    }
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if instruction.is_string_instruction() && repeats {
        return InstructionKind::Repeat;
    }
    if instruction.is_vsib() {
        return InstructionKind::Gather;
    }
    if is_fence(mnemonic) {
        return InstructionKind::Fence;
    }
    let name = name_of(mnemonic);
    if name.contains("sqrt") && !name.contains("rsqrt") {
        return InstructionKind::SquareRoot;
    }
    // `div`, `idiv`, `fdivr`, `fidiv`, `vdivps` and similar; no other mnemonic contains these letters.
    if name.contains("div") { InstructionKind::Division } else { InstructionKind::Plain }
}

fn is_system_call(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
}

fn is_fence(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Cpuid, Lfence, Mfence, Pause, Rdtscp, Serialize, Sfence};
    matches!(mnemonic, Cpuid | Lfence | Mfence | Sfence | Pause | Rdtscp | Serialize)
}

/// Width in bits of the widest vector register operand.
fn vector_bits(instruction: &Instruction) -> u16 {
    let registers = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand));
    let widest = registers.filter(|register| register.is_vector_register()).map(|r| r.size() * 8).max();
    let bits = widest.unwrap_or(0) as u16;
    if bits > 128 || !is_scalar(instruction.mnemonic()) { bits } else { 0 }
}

/// Whether an instruction uses only the lowest element of its vector registers: `addsd`, `vmulss`, `cvtsi2sd`.
fn is_scalar(mnemonic: Mnemonic) -> bool {
    let name = name_of(mnemonic);
    let ends = ["ss", "sd", "ss2si", "sd2si", "ss2sd", "sd2ss", "2usi"];
    let is_move = matches!(mnemonic, Mnemonic::Movd | Mnemonic::Movq | Mnemonic::Vmovd | Mnemonic::Vmovq);
    // `pabsd` works on whole vectors.
    is_move || ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("pabsd")
}
