//! V8, in Node.js 18 to 26: functions of JavaScript that are interpreted, or compiled by Sparkplug, Maglev or TurboFan, with the calls inlined into them.
//!
//! The frames are native frames with a frame pointer (V8's frame-constants.h): below that are the context, the function, and for an interpreted one its bytecode
//! and the offset in it. The frames of V8's own builtins look alike. A collector moves objects at any time: functions are identified by the words that describe
//! them, and one that was moved since is another one.
//!
//! Not supported: builds with compressed pointers (Chromium, Electron), or without the constants for debuggers (Deno).

mod code;
mod heap;
mod kernel;
mod layout;
mod moved;
mod positions;
mod shared;
mod sources;

use std::fs::File;

use crate::compiled::CompiledCode;
use crate::function::UNKNOWN;
use crate::image::Image;
use crate::memory::{head, word_in};
use crate::runtime::RuntimeProcess;
use crate::{
    CodeId, CommandLine, Detected, FrameSource, Function, Interpreter, Language, Memory, NativeFrame, Root,
    ScriptPlace, StackFrames, Unreadable,
};

use heap::{Heap, Tagged};
use layout::V8Layout;
use moved::ByBytecode;
use sources::Sources;

/// JavaScript.
pub(crate) static LANGUAGE: Language = Language {
    name: "JavaScript",
    tag: "javascript",
    versions: "Node.js 18 to 26",
    files: &["node", "libnode"],
    command: CommandLine {
        programs: &["nodejs", "node"],
        with_value: &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--env-file",
            "-C",
            "--conditions",
        ],
        module: &[],
        text: &["-e", "--eval", "-p", "--print"],
    },
    extensions: &["js", "mjs", "cjs", "ts", "mts", "cts"],
    variables: &["NODE_OPTIONS"],
    jit: None,
    other_way: |_| None,
    native_loop: None,
    on_native_stack: true,
    symbols: layout::SYMBOLS,
    find,
};

const _: () = assert!(kernel::NO_OFFSET == UNKNOWN, "the kernel's reader and this one say alike");

/// V8 in a file.
#[derive(Debug)]
struct V8 {
    version: (u32, u32),
    /// Stated address of one of its variables.
    variable: u64,
    layout: V8Layout,
    sources: Sources,
    by_bytecode: ByBytecode,
}

/// Detects V8 in a file.
fn find(image: &Image, _: &File) -> Option<Detected> {
    let (version @ (major, minor), variable) = layout::version(image)?;
    let Some(layout) = V8Layout::of(image, version).filter(|_| (10..=14).contains(&major)) else {
        return Some(Detected::Unknown(format!("V8 {major}.{minor}")));
    };
    Some(Detected::Known(Box::new(V8 {
        version,
        variable,
        layout,
        sources: Sources::default(),
        by_bytecode: ByBytecode::default(),
    })))
}

impl V8 {
    fn heap<'m>(&'m self, memory: &'m dyn Memory) -> Heap<'m> {
        Heap { memory, layout: &self.layout }
    }

    /// The function of a closure, if that is written in JavaScript: V8's own functions, such as forEach, are shown by their native frames.
    fn shared(&self, heap: Heap<'_>, function: Tagged) -> Option<Tagged> {
        let V8Layout { functions: (first, last), function_shared, shared, script, .. } = &self.layout;
        let function = heap.moved(function);
        heap.kind(function).ok().filter(|kind| (first..=last).contains(&kind))?;
        let found = heap.moved(heap.field(function, *function_shared).ok()?);
        let is_function = heap.is(found, shared.kind);
        (is_function && heap.is(heap.field(found, shared.script).ok()?, script.kind)).then_some(found)
    }
}

impl Interpreter for V8 {
    fn name(&self) -> String {
        let (major, minor) = self.version;
        format!("V8 {major}.{minor}")
    }

    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn source(&self) -> FrameSource<'_> {
        FrameSource::NativeStack(self)
    }

    fn root(&self) -> Root {
        Root { address: self.variable, layout: self.layout.for_kernel() }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        shared::read(self.heap(memory), &self.sources, code)
    }
}

impl StackFrames for V8 {
    fn place(
        &self,
        process: &mut RuntimeProcess<'_>,
        frame: NativeFrame,
    ) -> Result<Option<ScriptPlace>, Unreadable> {
        let memory = process.memory;
        let fields = Fields::read(memory, frame).filter(|fields| fields.context.address().is_some());
        let Some(Fields { offset, bytecode, function, .. }) = fields else { return Ok(None) };
        let heap = self.heap(memory);
        let has_bytecode = heap.is(bytecode, self.layout.bytecode.kind);
        if frame.has_rules && !has_bytecode {
            return Ok(None);
        }
        let code = match self.shared(heap, function) {
            Some(shared) => {
                if has_bytecode {
                    self.by_bytecode.learn(bytecode, shared);
                }
                Some(shared::id(heap, shared)?)
            }
            None if has_bytecode => self.by_bytecode.function(heap, bytecode),
            None => None,
        };
        let offset = offset.integer().and_then(|offset| u32::try_from(offset).ok());
        let offset = offset.unwrap_or(kernel::NO_OFFSET);
        Ok(code.map(|code| ScriptPlace { code, offset, is_entry: true, is_generator: false }))
    }

    fn compiled(&self, process: &mut RuntimeProcess<'_>, at: u64) -> Result<CompiledCode, Unreadable> {
        code::read(self.heap(process.memory), at)
    }

    fn has(&self, process: &mut RuntimeProcess<'_>, code: &CompiledCode) -> bool {
        code::has(self.heap(process.memory), code)
    }
}

/// Words of a frame.
struct Fields {
    offset: Tagged,
    bytecode: Tagged,
    function: Tagged,
    context: Tagged,
}

impl Fields {
    /// Reads the words below the frame pointer, if they are in the frame: a function that has not set up its frame has none of these, as the memory is
    /// left over from another one.
    fn read(memory: &dyn Memory, frame: NativeFrame) -> Option<Fields> {
        let pointer = frame.cfa.checked_sub(16).filter(|pointer| pointer.saturating_sub(16) >= frame.sp)?;
        let first = pointer.checked_sub(kernel::FRAME_BYTES.into())?;
        let bytes: [u8; kernel::FRAME_BYTES as usize] = head(memory, first).ok()?;
        let field = |offset| Tagged(word_in(&bytes, offset));
        Some(Fields {
            offset: field(kernel::FRAME_OFFSET),
            bytecode: field(kernel::FRAME_BYTECODE),
            function: field(kernel::FRAME_FUNCTION),
            context: field(kernel::FRAME_CONTEXT),
        })
    }
}
