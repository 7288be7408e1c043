//! The [`CodeMap`] trait, by which the walker learns what code is mapped in the process that it unwinds.
//!
//! The mappings themselves are elsewhere: callers keep them and answer questions about them.

use crate::address::Avma;
use crate::memory::Memory;
use crate::module::Module;
use crate::runtime::{RuntimeFrame, RuntimeRule};

/// The executable mappings of one address space.
///
/// Only [`locate`](Self::locate) is required. A walk calls it for frames whose rules are not in its [`Cache`](crate::Cache), so the cache
/// has to forget an address whose answer changes. For a return address the walker asks for the byte before, which is inside of the call.
///
/// - **State**: methods take `&self` and are called many times in a walk, on its thread. A map with files to open opens them before the walk or
///   keeps them behind interior mutability.
/// - **Cost**: a walk promises not to allocate; that holds only if `locate` does not either.
/// - **Hostile input**: `pc` is any number, as a damaged stack has any word. Answer [`Located::Unmapped`] rather than guessing: the walker ends
///   there with a reason. [`Located::Unreadable`] is for a file that exists and could not be opened, [`Located::NoInfo`] for code without rules.
/// - **Failure**: none. Errors are one of these answers.
/// - [`runtime_rule`](Self::runtime_rule) is asked only for code without a file, and has to bound what it reads of `memory`.
///
/// Examples: `Program` at the top of this crate is the smallest. `View` in `plumb-ingest` (`spaces/walk.rs`) has all methods.
pub trait CodeMap {
    /// Storage of a module's sections: `&[u8]`, a memory map, a `Vec<u8>`.
    type Bytes: AsRef<[u8]>;

    /// Returns what is mapped executable at `pc`.
    fn locate(&self, pc: Avma) -> Located<'_, Self::Bytes>;

    /// Returns the rule of a frame of code without a file, if a runtime has made that code and describes it. `memory` has the stack.
    fn runtime_rule<M: Memory>(&self, frame: &RuntimeFrame, memory: &mut M) -> RuntimeRule {
        let _ = (frame, memory);
        RuntimeRule::None
    }

    /// Returns how many low bits of a code pointer are its address. On aarch64 the bits above may be a signature
    /// (pointer authentication). Their number depends on the address-space size that the kernel was built for.
    fn address_bits(&self) -> u32 {
        48
    }

    /// Returns whether a runtime that generates code keeps frame pointers in all of it and ends their chain with
    /// zero, as in the ABI (System V ABI, AMD64 supplement, §3.4.1). In other code, a zero frame pointer is a
    /// register that code without frame pointers uses for something else.
    fn ends_chains_with_zero(&self) -> bool {
        false
    }
}

/// Mapping at an address.
#[derive(Debug)]
pub enum Located<'a, B> {
    /// Code of a file whose unwind sections are available.
    Module {
        /// The file's unwind information.
        module: &'a Module<B>,
        /// Actual minus stated address, wrapping.
        bias: u64,
    },
    /// Executable, but without unwind information: a file that has none, or anonymous memory (JIT code). The walker
    /// tries frame pointers.
    NoInfo,
    /// Executable, but the file could not be opened, so nothing is known about it.
    Unreadable,
    /// Not mapped, or not executable.
    Unmapped,
}
