//! The layouts of interpreters' structures for the BPF programs, each stored once, by number.

use aya::maps::{Array, MapData};
use plumb_capture_api::Root;
use plumb_capture_api::perl::{self, PerlLayout};
use plumb_capture_api::php::{self, PhpLayout};
use plumb_capture_api::python::{
    Chain, IDENTITY, IDENTITY_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES, PythonLayout,
};
use plumb_capture_api::ruby::{self, RubyLayout};

use crate::wire::{
    CHAIN_CFRAMES, CHAIN_ENTRY_FRAMES, CHAIN_PERL, CHAIN_PHP, CHAIN_RUBY, CHAIN_SINGLE, CODE_BYTES,
    MAX_LAYOUTS, NO_MEMBER, SCRIPT_FRAME_BYTES, SCRIPT_IDENTITY_WORDS, ScriptLayout,
};

const _: () = assert!(
    MAX_CODE_BYTES == CODE_BYTES as usize
        && MAX_FRAME_BYTES == SCRIPT_FRAME_BYTES as usize
        && IDENTITY_WORDS == SCRIPT_IDENTITY_WORDS as usize
);

/// The layouts.
pub(crate) struct Layouts {
    map: Array<MapData, ScriptLayout>,
    known: Vec<ScriptLayout>,
}

impl Layouts {
    /// Without layouts.
    pub fn new(map: Array<MapData, ScriptLayout>) -> Self {
        Self { map, known: Vec::new() }
    }

    /// Returns the number of an interpreter's layout; `None` without an interpreter, or if no space is left.
    pub fn number(&mut self, root: Option<Root>) -> Option<u32> {
        let layout = match root? {
            Root::Python { layout, .. } => python(&layout),
            Root::Php { layout, .. } => of_php(layout),
            Root::Ruby { layout, .. } => of_ruby(layout),
            Root::Perl { layout, .. } => of_perl(layout),
        };
        let index = self.known.iter().position(|known| *known == layout).unwrap_or(self.known.len());
        let number = u32::try_from(index).ok().filter(|&number| number < MAX_LAYOUTS)?;
        if index == self.known.len() {
            self.map.set(number, layout, 0).ok()?;
            self.known.push(layout);
        }
        Some(number)
    }
}

/// Python's layout in the programs' format.
fn python(layout: &PythonLayout) -> ScriptLayout {
    let PythonLayout { runtime, interpreter, thread, chain, frame, code, .. } = layout;
    let (kind, cframe_frame, cframe_previous) = match *chain {
        Chain::Single => (CHAIN_SINGLE, NO_MEMBER, 0),
        Chain::CFrames { frame, previous } => (CHAIN_CFRAMES, frame, previous),
        Chain::EntryFrames { cframe } => (CHAIN_ENTRY_FRAMES, cframe.unwrap_or(NO_MEMBER), 0),
    };
    ScriptLayout {
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
        frame_entry_bits: u8::MAX.into(),
        frame_owner: frame.owner,
        code_bytes: code.size,
        code_file: code.file,
        code_name: code.name,
        code_lines: code.lines,
        code_identity: IDENTITY as u32,
        thread_native: 0,
        zero: 0,
    }
}

/// PHP's layout in the programs' format.
fn of_php(layout: PhpLayout) -> ScriptLayout {
    ScriptLayout {
        identity: layout.identity(),
        chain: CHAIN_PHP,
        thread_frame: layout.current,
        cframe_frame: NO_MEMBER,
        frame_bytes: php::CALL_BYTES,
        frame_code: php::CALL_FUNCTION,
        frame_caller: php::CALL_CALLER,
        frame_instruction: php::CALL_INSTRUCTION,
        frame_entry: php::CALL_INFO,
        frame_entry_bits: php::CALL_IS_TOP.into(),
        code_bytes: php::MAX_FUNCTION_BYTES as u32,
        code_file: layout.file,
        code_name: php::FUNCTION_NAME,
        code_lines: php::FUNCTION_CLASS,
        code_identity: php::IDENTITY as u32,
        ..ScriptLayout::default()
    }
}

/// Ruby's layout in the programs' format.
fn of_ruby(layout: RubyLayout) -> ScriptLayout {
    ScriptLayout {
        identity: ruby::IDENTITY,
        chain: CHAIN_RUBY,
        interpreters: layout.threads,
        current: layout.running,
        threads: layout.thread_context,
        thread_id: layout.thread_id,
        thread_native: layout.thread_native,
        thread_frame: ruby::CONTEXT_FRAME,
        cframe_frame: NO_MEMBER,
        cframe_previous: layout.context_thread,
        frame_bytes: layout.frame_bytes,
        frame_code: ruby::FRAME_CODE,
        frame_instruction: ruby::FRAME_INSTRUCTION,
        frame_entry: ruby::FRAME_ENVIRONMENT,
        code_bytes: ruby::MAX_BODY_BYTES as u32,
        code_file: ruby::BODY_FILE,
        code_name: ruby::BODY_NAME,
        code_lines: ruby::BODY_FILE,
        code_identity: ruby::BODY_FILE,
        ..ScriptLayout::default()
    }
}

/// Perl's layout in the programs' format.
fn of_perl(layout: PerlLayout) -> ScriptLayout {
    ScriptLayout {
        identity: perl::MASKS,
        chain: CHAIN_PERL,
        interpreters: layout.phase,
        current: layout.statement,
        thread_frame: layout.contexts,
        cframe_frame: if layout.has_names_in_body { perl::BODY_NAMES } else { NO_MEMBER },
        frame_bytes: layout.context_bytes,
        frame_code: layout.context_code(),
        frame_entry: layout.purpose,
        code_bytes: perl::MAX_CODE_BYTES as u32,
        code_file: perl::CODE_FILE,
        code_name: perl::CODE_NAME,
        code_identity: perl::IDENTITY as u32,
        ..ScriptLayout::default()
    }
}
