//! What is known of the code of interpreted programs in one address space.

use std::cell::RefCell;
use std::rc::Rc;

use plumb_interpreters::{CodeId, Function};
use plumb_profile::FrameId;
use rustc_hash::FxHashMap;

/// What is known of code in one address space and those forked from it.
pub(crate) type SharedScripts = Rc<RefCell<Scripts>>;

/// Functions and frames of code.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// `None`: it was gone when it was to be read.
    functions: FxHashMap<CodeId, Option<Function>>,
    /// Frames by code, instruction and whether it is a generator; `None`: it had not begun, and is in no traceback.
    pub(crate) frames: FxHashMap<(CodeId, u32, bool), Option<FrameId>>,
    /// Memory with code that no frame was of yet.
    memory: FxHashMap<CodeId, Vec<(u64, Vec<u8>)>>,
}

impl Scripts {
    /// Keeps memory that says what code is called until there is a frame of it.
    pub(crate) fn learn(&mut self, code: CodeId, memory: Vec<(u64, Vec<u8>)>) {
        if !matches!(self.functions.get(&code), Some(Some(_))) {
            self.functions.remove(&code);
            self.memory.insert(code, memory);
        }
    }

    /// The function of some code; `read` makes it of what was copied of that code, if it was not asked for before.
    pub(crate) fn function(
        &mut self,
        code: CodeId,
        read: impl FnOnce(&[(u64, Vec<u8>)]) -> Option<Function>,
    ) -> Option<&Function> {
        let known = self.functions.entry(code).or_insert_with(|| {
            let copied = self.memory.remove(&code).unwrap_or_default();
            read(&copied)
        });
        known.as_ref()
    }
}
