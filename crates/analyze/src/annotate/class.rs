//! Instruction classes: what an instruction does that may take time, derived from its encoding alone.
//!
//! A class is not a measurement: a load may hit the nearest cache or miss all of them. It gives what an instruction with samples may have
//! waited for.

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

/// The class of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Kind of work, or role in the control flow.
    pub kind: Kind,
    /// Reads memory.
    pub loads: bool,
    /// Writes memory.
    pub stores: bool,
    /// Kind of memory that its operand addresses. `None` without such an operand; `push` and `pop` have none.
    pub place: Option<Place>,
    /// Width in bits of the widest vector register that it uses; 0 if none, or only one element of it.
    pub vector_bits: u16,
}

/// The work of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Arithmetic, moves and everything without a kind of its own.
    Plain,
    /// Division of integers or floating-point numbers.
    Division,
    /// Square root.
    SquareRoot,
    /// Atomic: a `lock` prefix, or an exchange with memory, which is locked implicitly.
    Lock,
    /// Elements gathered from or scattered to many addresses.
    Gather,
    /// A string instruction with a `rep` prefix, which can be interrupted before it is done.
    Repeat,
    /// Waits for earlier work to complete: fences, `cpuid`, `pause`.
    Fence,
    /// Enters the kernel.
    SystemCall,
    /// A conditional jump.
    Branch,
    /// An unconditional jump.
    Jump,
    /// A jump to an address from a register or from memory.
    IndirectJump,
    /// A call.
    Call,
    /// A call of an address from a register or from memory.
    IndirectCall,
    /// A return.
    Return,
}

/// The memory that an operand addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A stack slot: a local variable or a spilled register.
    Stack,
    /// A fixed address.
    Global,
    /// A thread-local variable.
    ThreadLocal,
    /// An address computed with an index, such as an array element's.
    Indexed,
    /// Memory that a register points to.
    Pointer,
}

impl Kind {
    /// Stable name, for machine-readable output; empty for [`Plain`](Kind::Plain).
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "",
            Kind::Division => "division",
            Kind::SquareRoot => "square-root",
            Kind::Lock => "lock",
            Kind::Gather => "gather",
            Kind::Repeat => "repeat",
            Kind::Fence => "fence",
            Kind::SystemCall => "syscall",
            Kind::Branch => "branch",
            Kind::Jump => "jump",
            Kind::IndirectJump => "indirect-jump",
            Kind::Call => "call",
            Kind::IndirectCall => "indirect-call",
            Kind::Return => "return",
        }
    }
}

impl Place {
    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Place::Stack => "stack-slot",
            Place::Global => "global",
            Place::ThreadLocal => "thread-local",
            Place::Indexed => "indexed",
            Place::Pointer => "pointer",
        }
    }
}

impl Class {
    /// Returns the class in stable words, such as `["load", "stack-slot"]`; none for plain arithmetic on registers. The memory accesses of a
    /// `lock`, a gather or a string instruction are implied and not listed.
    pub fn words(&self) -> Vec<&'static str> {
        let mut words = Vec::new();
        if self.kind != Kind::Plain {
            words.push(self.kind.name());
        }
        let goes_without_saying = matches!(self.kind, Kind::Lock | Kind::Gather | Kind::Repeat);
        if !goes_without_saying {
            words.extend(self.loads.then_some("load"));
            words.extend(self.stores.then_some("store"));
        }
        // Nearly every other load follows a pointer, so it is not worth a word.
        words.extend(self.place.filter(|&place| place != Place::Pointer).map(Place::name));
        words.extend(match self.vector_bits {
            128 => Some("128-bit"),
            256 => Some("256-bit"),
            512 => Some("512-bit"),
            _ => None,
        });
        words
    }

    /// Whether it ends a basic block.
    pub fn ends_block(&self) -> bool {
        matches!(self.kind, Kind::Branch | Kind::Jump | Kind::IndirectJump | Kind::Return)
    }
}

/// Computes the classes of a function's instructions.
pub(super) struct Classes {
    factory: InstructionInfoFactory,
    /// Whether `rbp` points into the frame.
    has_frame_pointer: bool,
}

impl Classes {
    /// Creates the state for a function with these instructions.
    pub fn new(instructions: &[Instruction]) -> Self {
        let sets_frame_pointer = |instruction: &Instruction| {
            instruction.mnemonic() == Mnemonic::Enter
                || instruction.mnemonic() == Mnemonic::Mov
                    && matches!(instruction.op0_register(), Register::RBP | Register::EBP)
                    && matches!(instruction.op1_register(), Register::RSP | Register::ESP)
        };
        let has_frame_pointer = instructions.iter().any(sets_frame_pointer);
        Self { factory: InstructionInfoFactory::new(), has_frame_pointer }
    }

    /// Returns the class of one of them.
    pub fn of(&mut self, instruction: &Instruction) -> Class {
        let kind = kind(instruction);
        let place = self.place(instruction);
        let (loads, stores) = match instruction.flow_control() {
            // The stack access of calls and returns is not what they may wait for.
            FlowControl::Call | FlowControl::Return => (false, false),
            FlowControl::IndirectCall | FlowControl::IndirectBranch => (place.is_some(), false),
            _ => {
                let memory = self.factory.info(instruction).used_memory();
                (memory.iter().any(is_read), memory.iter().any(is_written))
            }
        };
        Class { kind, loads, stores, place, vector_bits: vector_bits(instruction) }
    }

    fn place(&self, instruction: &Instruction) -> Option<Place> {
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
            Register::FS | Register::GS => Place::ThreadLocal,
            _ if is_frame => Place::Stack,
            _ if instruction.is_ip_rel_memory_operand() => Place::Global,
            _ if index != Register::None => Place::Indexed,
            _ if base == Register::None => Place::Global,
            _ => Place::Pointer,
        })
    }
}

fn is_read(memory: &UsedMemory) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(memory.access(), Read | CondRead | ReadWrite | ReadCondWrite)
}

fn is_written(memory: &UsedMemory) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn kind(instruction: &Instruction) -> Kind {
    let mnemonic = instruction.mnemonic();
    match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => return Kind::Branch,
        FlowControl::UnconditionalBranch => return Kind::Jump,
        FlowControl::IndirectBranch => return Kind::IndirectJump,
        FlowControl::Return => return Kind::Return,
        // iced counts `syscall` and `sysenter` among calls.
        _ if is_system_call(mnemonic) => return Kind::SystemCall,
        FlowControl::Call => return Kind::Call,
        FlowControl::IndirectCall => return Kind::IndirectCall,
        FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => {}
    }
    let exchanges = mnemonic == Mnemonic::Xchg && instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    if instruction.has_lock_prefix() || exchanges {
        return Kind::Lock;
    }
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if instruction.is_string_instruction() && repeats {
        return Kind::Repeat;
    }
    if instruction.is_vsib() {
        return Kind::Gather;
    }
    if is_fence(mnemonic) {
        return Kind::Fence;
    }
    let name = format!("{mnemonic:?}").to_lowercase();
    if name.contains("sqrt") && !name.contains("rsqrt") {
        return Kind::SquareRoot;
    }
    // `div`, `idiv`, `fdivr`, `fidiv`, `vdivps` and similar; no other mnemonic contains these letters.
    if name.contains("div") { Kind::Division } else { Kind::Plain }
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
    let name = format!("{mnemonic:?}").to_lowercase();
    let ends = ["ss", "sd", "ss2si", "sd2si", "ss2sd", "sd2ss", "2usi"];
    let is_move = matches!(mnemonic, Mnemonic::Movd | Mnemonic::Movq | Mnemonic::Vmovd | Mnemonic::Vmovq);
    // `pabsd` works on whole vectors.
    is_move || ends.iter().any(|end| name.ends_with(end)) && !name.ends_with("pabsd")
}
