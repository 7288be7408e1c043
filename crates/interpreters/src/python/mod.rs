//! CPython: the frames of `sys._getframe()`, for each thread.
//!
//! Followed as in CPython's own Python/ceval.c, Include/internal/pycore_frame.h and Objects/codeobject.c of version 3.11:
//! the runtime knows its interpreters, these their threads, each thread the frame that runs, each frame its caller.

mod layout;
mod lines;
mod objects;

use crate::image::Image;
use crate::{CodeId, Function, Interpreter, Memory, Root, ScriptFrame, Unreadable};
use layout::Layout;
use objects::Codes;

pub(crate) use lines::at as line_at;

/// What is looked for in files.
pub(crate) const SYMBOLS: &[&str] = &[RUNTIME, VERSION, LOOP];
const RUNTIME: &str = "_PyRuntime";
const VERSION: &str = "Py_Version";
pub(crate) const LOOP: &str = "_PyEval_EvalFrameDefault";

/// The most interpreters and threads that are looked at.
const MAX_THREADS: usize = 1 << 16;
/// The most frames of a thread. Python's own limit is 1,000 unless a program raises it.
const MAX_FRAMES: usize = 1 << 16;

/// CPython in a file.
#[derive(Debug)]
struct Python {
    /// Stated address of `_PyRuntime`.
    runtime: u64,
    /// `PY_VERSION_HEX` (Include/patchlevel.h): major, minor and micro version in the upper three bytes.
    version: u32,
    layout: &'static Layout,
}

/// CPython in a file, if it is of a version that is known.
pub(crate) fn find(image: &Image) -> Option<Box<dyn Interpreter>> {
    let (runtime, version) = (image.address(RUNTIME)?, image.number(VERSION)?);
    let layout = layout::of(version)?;
    Some(Box::new(Python { runtime, version, layout }))
}

impl Interpreter for Python {
    fn name(&self) -> String {
        let [_, micro, minor, major] = self.version.to_le_bytes();
        format!("CPython {major}.{minor}.{micro}")
    }

    fn language(&self) -> &'static str {
        "python"
    }

    fn native_loop(&self) -> &'static str {
        LOOP
    }

    fn frames(&self, memory: &dyn Memory, bias: u64, thread: u32) -> Result<Vec<ScriptFrame>, Unreadable> {
        let runtime = self.runtime.wrapping_add(bias);
        let Some(thread) = self.thread(memory, runtime, thread)? else { return Ok(Vec::new()) };
        let running = memory.word(thread.wrapping_add(self.layout.thread.cframe))?;
        if running == 0 {
            return Ok(Vec::new());
        }
        let mut at = memory.word(running.wrapping_add(self.layout.running.frame))?;
        let (mut frames, mut codes) = (Vec::new(), Codes::default());
        for _ in 0..MAX_FRAMES {
            if at == 0 {
                return Ok(frames);
            }
            let (frame, caller) = self.frame(memory, at, &mut codes)?;
            frames.extend(frame);
            at = caller;
        }
        Err(Unreadable(at))
    }

    fn root(&self) -> Root {
        Root::Python311 { runtime: self.runtime }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        objects::function(memory, self.layout, code)
    }
}

impl Python {
    /// Where the state of a thread is.
    fn thread(&self, memory: &dyn Memory, runtime: u64, number: u32) -> Result<Option<u64>, Unreadable> {
        let mut looked_at = 0;
        let mut interpreter = memory.word(runtime.wrapping_add(self.layout.runtime.interpreters))?;
        while interpreter != 0 {
            let mut thread = memory.word(interpreter.wrapping_add(self.layout.interpreter.threads))?;
            while thread != 0 {
                if memory.word(thread.wrapping_add(self.layout.thread.number))? == u64::from(number) {
                    return Ok(Some(thread));
                }
                looked_at += 1;
                if looked_at > MAX_THREADS {
                    return Err(Unreadable(thread));
                }
                thread = memory.word(thread.wrapping_add(self.layout.thread.next))?;
            }
            looked_at += 1;
            interpreter = memory.word(interpreter.wrapping_add(self.layout.interpreter.next))?;
        }
        Ok(None)
    }

    /// The frame at an address, unless it has not begun, and where its caller's is.
    fn frame(
        &self,
        memory: &dyn Memory,
        at: u64,
        codes: &mut Codes,
    ) -> Result<(Option<ScriptFrame>, u64), Unreadable> {
        let layout = &self.layout.frame;
        let mut bytes = [0; layout::FRAME];
        if !memory.read(at, &mut bytes) {
            return Err(Unreadable(at));
        }
        let word = |offset: usize| {
            bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
        };
        let byte = |offset: usize| bytes.get(offset).copied().unwrap_or(0);
        let (code, caller, instruction) = (word(layout.code), word(layout.caller), word(layout.instruction));
        let function = codes.get(memory, self.layout, code)?;
        // As `_PyFrame_IsIncomplete`: what is only being set up is in no traceback. A generator has begun.
        let offset = instruction.saturating_sub(code);
        if byte(layout.owner) != layout::OWNED_BY_GENERATOR && !function.has_begun(offset) {
            return Ok((None, caller));
        }
        let Function { name, file, .. } = function.clone();
        let line = function.line(offset);
        let is_entry = byte(layout.is_entry) != 0;
        Ok((Some(ScriptFrame { function: name, file, line, is_entry }), caller))
    }
}
