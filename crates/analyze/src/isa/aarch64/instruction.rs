//! An A64 instruction.

use disarm64::Insn;

use super::access::{Access, access};
use super::word::Word;

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineInstruction {
    pub(super) address: u64,
    pub(super) word: Word,
    /// 4, or less at the end of code that does not end with a whole word.
    pub(super) length: u8,
    /// `None`: no instruction has these bits.
    pub(super) definition: Option<&'static Insn>,
    /// Properties that follow from the instructions before.
    pub(super) known: Known,
}

/// Properties that follow from the instructions before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The fixed address that is computed or accessed.
    pub address: Option<u64>,
    /// Whether it accesses memory relative to the thread pointer.
    pub is_thread_local: bool,
    /// Whether it is an exclusive store of a value that was computed from the exclusively loaded one.
    pub is_computed: bool,
}

impl MachineInstruction {
    /// Returns the mnemonic of the encoding, not of an alias; empty if it is invalid.
    pub(super) fn mnemonic(&self) -> &'static str {
        self.definition.map_or("", |definition| definition.mnemonic)
    }

    pub(super) fn access(&self) -> Option<Access> {
        access(self.word, self.definition?, self.address)
    }
}
