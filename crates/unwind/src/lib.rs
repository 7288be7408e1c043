//! Call-frame rules from ELF files and the walker that applies them.
//!
//! [`walk`](fn@walk) turns registers and stack memory into frames. It asks a [`CodeMap`] what is mapped at an
//! address, asks a [`Module`] for the rule at that address, and reads the stack through [`Memory`]. A [`Cache`], one
//! per address space, remembers rules.
//!
//! ```
//! use plumb_unwind::{Avma, Cache, CodeMap, End, Located, Memory, Module, ReadError, Registers, Sections, walk};
//!
//! struct Program(Module<Vec<u8>>);
//!
//! impl CodeMap for Program {
//!     type Bytes = Vec<u8>;
//!     fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
//!         match pc.0 {
//!             0x40_0000..0x50_0000 => Located::Module { module: &self.0, bias: 0 },
//!             _ => Located::Unmapped,
//!         }
//!     }
//! }
//!
//! struct NoStack;
//!
//! impl Memory for NoStack {
//!     fn read_u64(&mut self, _: Avma) -> Result<u64, ReadError> {
//!         Err(ReadError::Unreadable)
//!     }
//! }
//!
//! let program = Program(Module::new(Sections::default()));
//! let (mut cache, mut frames) = (Cache::default(), Vec::new());
//! let start = Registers::new(0x40_1234, 0x7ffe_0000);
//! let end = walk(&program, &mut NoStack, &mut cache, &start, 100, &mut frames);
//! assert_eq!((end, frames[0].pc), (End::NoUnwindInfo, Avma(0x40_1234)));
//! ```
//!
//! Invariants: this crate opens no file and knows no pid. All input bytes may be hostile: they cost bounded work and
//! never a panic. A walk allocates only to grow the frame list and the cache.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod aarch64;
mod address;
mod apply;
mod architecture;
pub mod arm;
mod cache;
mod cfi;
mod code;
mod expression;
mod fallback;
mod fast;
mod frame;
pub mod go;
mod isa;
mod learn;
mod leaving;
mod linux;
pub mod made;
mod memory;
mod method;
mod module;
pub mod prefix;
mod registers;
mod row;
pub mod rule;
mod runtime;
pub mod scan;
pub mod sframe;
pub mod table;
mod walk;
mod walker;
pub mod x86_64;

pub use address::{Avma, Svma};
pub use architecture::Architecture;
pub use cache::Cache;
pub use cfi::{CfiError, CfiErrorKind, SectionKind};
pub use code::{CodeMap, Located};
pub use fast::{ReturnSlots, trace};
pub use frame::{End, Walked, trust};
pub use isa::Isa;
pub use linux::{LinuxRegisters, StoppedRegisters};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use linux::{Native, Registers};
pub use memory::{Memory, ReadError, Window};
pub use method::{Method, Trust};
pub use module::{Module, Section, Sections};
pub use registers::RegisterSet;
pub use row::{CfaRule, Expression, RegisterRule, Row};
pub use rule::Rule;
pub use runtime::{RuntimeCaller, RuntimeFrame, RuntimeRule, StackPointer};
pub use walk::walk;
