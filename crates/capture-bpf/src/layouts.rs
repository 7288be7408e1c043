//! The layouts of interpreters' structures that the kernel's programs know, each once, by number.

use aya::maps::{Array, MapData};
use plumb_capture_api::Root;
use plumb_capture_api::python::{
    Chain, IDENTITY_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES, PythonLayout as Known,
};

use crate::wire::{
    CODE_BYTES, MAX_LAYOUTS, PYTHON_CFRAMES, PYTHON_ENTRY_FRAMES, PYTHON_FRAME_BYTES, PYTHON_IDENTITY_WORDS,
    PYTHON_NONE, PYTHON_SINGLE, PythonLayout,
};

const _: () = assert!(
    MAX_CODE_BYTES == CODE_BYTES as usize
        && MAX_FRAME_BYTES == PYTHON_FRAME_BYTES as usize
        && IDENTITY_WORDS == PYTHON_IDENTITY_WORDS as usize
);

/// The layouts.
pub(crate) struct Layouts {
    map: Array<MapData, PythonLayout>,
    known: Vec<PythonLayout>,
}

impl Layouts {
    /// None yet.
    pub fn new(map: Array<MapData, PythonLayout>) -> Self {
        Self { map, known: Vec::new() }
    }

    /// The number of the layout of an interpreter. `None`: there is no interpreter, or no room for it.
    pub fn number(&mut self, root: Option<Root>) -> Option<u32> {
        let Root::Python { layout, .. } = root?;
        let layout = wire(&layout);
        let index = self.known.iter().position(|known| *known == layout).unwrap_or(self.known.len());
        let number = u32::try_from(index).ok().filter(|&number| number < MAX_LAYOUTS)?;
        if index == self.known.len() {
            self.map.set(number, layout, 0).ok()?;
            self.known.push(layout);
        }
        Some(number)
    }
}

/// A layout as the programs read it.
fn wire(layout: &Known) -> PythonLayout {
    let Known { runtime, interpreter, thread, chain, frame, code, .. } = layout;
    let (kind, cframe_frame, cframe_previous) = match *chain {
        Chain::Single => (PYTHON_SINGLE, PYTHON_NONE, 0),
        Chain::CFrames { frame, previous } => (PYTHON_CFRAMES, frame, previous),
        Chain::EntryFrames { cframe } => (PYTHON_ENTRY_FRAMES, cframe.unwrap_or(PYTHON_NONE), 0),
    };
    PythonLayout {
        identity: code.identity,
        chain: kind,
        interpreters: runtime.interpreters,
        current: runtime.current,
        interpreter_next: interpreter.next,
        threads: interpreter.threads,
        thread_next: thread.next,
        thread_id: thread.id,
        thread_frame: thread.frame,
        cframe_frame,
        cframe_previous,
        frame_bytes: frame.size,
        frame_code: frame.code,
        frame_caller: frame.caller,
        frame_instruction: frame.instruction,
        frame_entry: frame.is_entry,
        frame_owner: frame.owner,
        code_bytes: code.size,
        code_file: code.file,
        code_name: code.name,
        code_lines: code.lines,
    }
}
