//! Instruction classes: what an instruction does that may take time, derived from its encoding alone.
//!
//! A class is not a measurement: a load may hit the nearest cache or miss all of them. It gives what an instruction with samples may have
//! waited for.

/// Width of a vector register that each processor chooses (SVE).
pub(crate) const SCALABLE: u16 = u16::MAX;

/// The class of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Kind of work, or role in the control flow.
    pub kind: Kind,
    /// Reads memory.
    pub loads: bool,
    /// Writes memory.
    pub stores: bool,
    /// Kind of memory that its operand addresses. `None` without such an operand; `push` and `pop`, and what stands for them on aarch64, have none.
    pub place: Option<Place>,
    /// Width in bits of the widest vector register that it uses; 0 if none, or only one element of it; `u16::MAX` if the processor decides.
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
    /// Atomic: a `lock` prefix, or an exchange with memory, which is locked implicitly; on aarch64 also an exclusive load or store.
    Lock,
    /// Elements gathered from or scattered to many addresses.
    Gather,
    /// A string instruction with a `rep` prefix, or a copy of memory (`cpym`, `setm`), which can be interrupted before it is done.
    Repeat,
    /// Waits for earlier work to complete: fences, `cpuid`, `pause`, `isb`, `yield`.
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
            SCALABLE => Some("scalable-vector"),
            _ => None,
        });
        words
    }

    /// Whether it ends a basic block.
    pub fn ends_block(&self) -> bool {
        matches!(self.kind, Kind::Branch | Kind::Jump | Kind::IndirectJump | Kind::Return)
    }
}
