//! Instruction sets: what the analyses of hot code know of an instruction, whatever the processor.
//!
//! [`Decode`](model::Decode) has the questions that they ask. An instruction set is a module with an implementation, under the same names as in `x86_64` and
//! `aarch64`: decoding, classes, operands, text. Only such a module knows a decoder; the types in `model` are the same for all, and `any` sends
//! each question to the module that decoded the instruction.
//!
//! Elsewhere: what follows from the answers (`annotate`, `loops`, `access`).

mod aarch64;
mod any;
mod model;
mod x86_64;

pub(crate) use any::{MachineInstruction, Values, Writer, classes, convention, decode, operands};
pub(crate) use model::{Convention, LOAD, Operands, Operation, Register};
