//! The layouts of interpreters' structures for the BPF programs, each stored once, by number.

use aya::maps::{Array, MapData};
use plumb_capture_api::{IDENTITY_WORDS, KernelLayout, LAYOUT_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES, Root};

use crate::wire::{
    CODE_BYTES, MAX_LAYOUTS, SCRIPT_FRAME_BYTES, SCRIPT_IDENTITY_WORDS, SCRIPT_WORDS, ScriptLayout,
};

const _: () = assert!(
    MAX_CODE_BYTES == CODE_BYTES as usize
        && MAX_FRAME_BYTES == SCRIPT_FRAME_BYTES as usize
        && IDENTITY_WORDS == SCRIPT_IDENTITY_WORDS as usize
        && LAYOUT_WORDS == SCRIPT_WORDS as usize
);

/// The layouts.
pub(crate) struct Layouts {
    map: Array<MapData, ScriptLayout>,
    known: Vec<KernelLayout>,
}

impl Layouts {
    /// Without layouts.
    pub fn new(map: Array<MapData, ScriptLayout>) -> Self {
        Self { map, known: Vec::new() }
    }

    /// Returns the number of an interpreter's layout; `None` without an interpreter, or if no space is left.
    pub fn number(&mut self, root: Option<Root>) -> Option<u32> {
        let layout = root?.layout;
        let index = self.known.iter().position(|known| *known == layout).unwrap_or(self.known.len());
        let number = u32::try_from(index).ok().filter(|&number| number < MAX_LAYOUTS)?;
        if index == self.known.len() {
            let KernelLayout { reader, code_bytes, identity_at, identity, words } = layout;
            self.map
                .set(number, ScriptLayout { identity, identity_at, code_bytes, reader, zero: 0, words }, 0)
                .ok()?;
            self.known.push(layout);
        }
        Some(number)
    }
}
