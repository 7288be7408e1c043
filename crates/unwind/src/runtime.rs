//! Rules for code that a runtime has made and describes in memory, such as that of Java's virtual machine.
//!
//! Elsewhere: which code that is, and its rules. A [`CodeMap`](crate::CodeMap) answers.

use crate::address::Avma;

/// A frame of code without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeFrame {
    /// Program counter.
    pub pc: Avma,
    /// Whether that is a return address.
    pub is_return: bool,
    /// Stack pointer.
    pub sp: Avma,
    /// Frame pointer, if it is known.
    pub fp: Option<u64>,
}

/// The places of the caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeCaller {
    /// Address of the return address.
    pub slot: Avma,
    /// Stack pointer.
    pub sp: StackPointer,
    /// Address of the saved frame pointer; `None`: it is unchanged.
    pub fp: Option<Avma>,
}

/// The caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackPointer {
    /// The value.
    Is(u64),
    /// The address where it is saved.
    At(Avma),
}

/// The rule of a frame of code without a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeRule {
    /// No runtime describes the code: the walker tries conventions.
    #[default]
    None,
    /// A runtime made the code, which is in a state without a rule. It keeps to no convention: only the next instructions may help.
    Unknown,
    /// The rule.
    Caller(RuntimeCaller),
}
