//! Functions of a Go program, whose rules are made when a stack leads to them: those of all of a large program take a second and more memory than an
//! agent may have.

use std::fmt;

use elsa::FrozenMap;
use plumb_table_cache::GoFunctions;
use plumb_unwind::{Module, Svma};

/// Bytes that one function takes, more or less: its rules, their index and its place.
const EACH: usize = 1 << 10;
/// Bytes of its sections that are kept for each program, more or less.
const SECTIONS: usize = 3 << 20;

/// A Go program.
pub(super) struct GoProgram {
    functions: GoFunctions,
    /// By where they begin.
    known: FrozenMap<u64, Box<Module<Vec<u8>>>>,
}

impl fmt::Debug for GoProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GoProgram({:?}, {} functions)", self.functions, self.known.len())
    }
}

impl GoProgram {
    pub fn new(functions: GoFunctions) -> Self {
        Self { functions, known: FrozenMap::new() }
    }

    /// The unwind information of the function that holds an address.
    pub fn at(&self, pc: u64) -> Option<&Module<Vec<u8>>> {
        let start = self.functions.start(Svma(pc))?;
        if let Some(known) = self.known.get(&start.0) {
            return Some(known);
        }
        let module = self.functions.at(Svma(pc))?;
        Some(self.known.insert(start.0, Box::new(module)))
    }

    /// Memory that it takes, more or less.
    pub fn bytes(&self) -> usize {
        SECTIONS + self.known.len() * EACH
    }
}
