//! Call-frame rules from ELF files and the walker that applies them.
//!
//! [`walk`] goes from registers and stack memory to frames. It asks a [`CodeMap`] what is mapped where, a
//! [`Module`] for the rule of an address, and reads the stack through [`Memory`]. A [`Cache`] for each address space
//! remembers rules.
//!
//! Invariants: no file is opened here and no pid is known; all input bytes may be hostile, and cost bounded work and
//! no panic; walking allocates nothing but growth of the frame list and the cache.

#![forbid(unsafe_code)]

mod address;
mod apply;
mod cache;
mod cfi;
mod code;
mod expression;
mod fallback;
mod memory;
mod module;
mod row;
mod rule;
mod walk;
pub mod x86_64;

pub use address::{Avma, Svma};
pub use cache::Cache;
pub use cfi::{CfiError, CfiErrorKind, SectionKind};
pub use code::{CodeMap, Located};
pub use memory::{Memory, ReadError};
pub use module::{Module, Section, Sections};
pub use row::{CfaRule, Expression, RegisterRule, Row};
pub use walk::{End, Method, Walked, walk};
pub use x86_64::Registers;
