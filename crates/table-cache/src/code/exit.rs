//! The way on from an instruction.

/// The way on from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Always with the next instruction.
    Next,
    Return,
    /// In a function, at this address if the instruction names it; the next instruction follows its return.
    Call(Option<u64>),
    /// At this address if the instruction names it; if conditional, also with the next instruction.
    Jump {
        to: Option<u64>,
        is_conditional: bool,
    },
    /// At an address in a register or in memory.
    Indirect,
    /// Nowhere: a trap.
    Nowhere,
}
