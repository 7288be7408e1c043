//! CPython 3.9 to 3.15: the frames of `sys._getframe()`, for each thread.
//!
//! Followed as in CPython's own Python/ceval.c, Include/internal/pycore_frame.h and Objects/codeobject.c of each version: the
//! runtime knows its interpreters, these their threads, each thread the frame that runs, each frame its caller.

mod layout;
mod lines;
mod objects;
mod offsets;
mod version;

use std::ops::Range;

use crate::image::Image;
use crate::{CodeId, Detected, Function, Interpreter, Memory, Root, ScriptFrame, Unreadable};
use objects::Codes;

pub use layout::{Chain, IDENTITY, IDENTITY_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES, PythonLayout};
pub use layout::{CodeLayout, FrameLayout, Interpreter as InterpreterState, Object, Runtime, Thread};
pub use lines::LineTable;
pub(crate) use lines::at as line_at;
pub(crate) use version::SYMBOLS;

const RUNTIME: &str = "_PyRuntime";
pub(crate) const LOOP: &str = "_PyEval_EvalFrameDefault";
/// What a compiler puts elsewhere of the loop, as it seldom runs.
const COLD_LOOP: &str = "_PyEval_EvalFrameDefault.cold";

/// The most interpreters and threads that are looked at.
const MAX_THREADS: usize = 1 << 16;
/// The most frames of a thread. Python's own limit is 1,000 unless a program raises it.
const MAX_FRAMES: usize = 1 << 16;

/// CPython in a file.
#[derive(Debug)]
struct Python {
    /// Stated address of `_PyRuntime`.
    runtime: u64,
    /// Its version, such as 3.11.7.
    version: String,
    layout: PythonLayout,
    /// Stated addresses of the loop.
    loops: Vec<Range<u64>>,
}

/// CPython in a file.
pub(crate) fn find(image: &Image) -> Option<Detected> {
    let version = version::of(image)?;
    let (Some(runtime), Some(layout)) = (image.address(RUNTIME), version.layout) else {
        return Some(Detected::Unknown(format!("Python {}", version.text)));
    };
    let loops = [LOOP, COLD_LOOP].iter().filter_map(|name| image.range(name)).collect();
    Some(Detected::Known(Box::new(Python { runtime, version: version.text, layout, loops })))
}

impl Interpreter for Python {
    fn name(&self) -> String {
        format!("CPython {}", self.version)
    }

    fn language(&self) -> &'static str {
        "python"
    }

    fn native_loop(&self) -> &'static str {
        LOOP
    }

    fn is_in_loop(&self, stated: u64) -> bool {
        self.loops.iter().any(|range| range.contains(&stated))
    }

    fn frames(
        &self,
        memory: &dyn Memory,
        bias: u64,
        thread_pointer: u64,
    ) -> Result<Vec<ScriptFrame>, Unreadable> {
        let runtime = self.runtime.wrapping_add(bias);
        let Some(thread) = self.thread(memory, runtime, thread_pointer)? else { return Ok(Vec::new()) };
        let mut at = self.current_frame(memory, thread)?;
        let (mut frames, mut codes) = (Vec::new(), Codes::default());
        for _ in 0..MAX_FRAMES {
            if at == 0 {
                return Ok(frames);
            }
            at = self.add_frame(memory, at, &mut codes, &mut frames)?;
        }
        Err(Unreadable(at))
    }

    fn root(&self) -> Root {
        Root::Python { runtime: self.runtime, layout: self.layout }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        objects::function(memory, &self.layout, code)
    }
}

impl Python {
    /// Where the state of the thread is that has this thread pointer.
    fn thread(&self, memory: &dyn Memory, runtime: u64, pointer: u64) -> Result<Option<u64>, Unreadable> {
        let PythonLayout { runtime: of_runtime, interpreter: of_interpreter, thread: of_thread, .. } =
            &self.layout;
        let word = |at: u64, offset: u32| memory.word(at.wrapping_add(offset.into()));
        let mut looked_at = 0;
        let mut interpreter = word(runtime, of_runtime.interpreters)?;
        while interpreter != 0 {
            let mut thread = word(interpreter, of_interpreter.threads)?;
            while thread != 0 {
                if word(thread, of_thread.id)? == pointer {
                    return Ok(Some(thread));
                }
                looked_at += 1;
                if looked_at > MAX_THREADS {
                    return Err(Unreadable(thread));
                }
                thread = word(thread, of_thread.next)?;
            }
            looked_at += 1;
            interpreter = word(interpreter, of_interpreter.next)?;
        }
        Ok(None)
    }

    /// Where the frame is that a thread runs; 0: there is none.
    fn current_frame(&self, memory: &dyn Memory, thread: u64) -> Result<u64, Unreadable> {
        let at = memory.word(thread.wrapping_add(self.layout.thread.frame.into()))?;
        match self.layout.chain {
            Chain::CFrames { frame: offset, .. } | Chain::EntryFrames { cframe: Some(offset) } if at != 0 => {
                memory.word(at.wrapping_add(offset.into()))
            }
            _ => Ok(at),
        }
    }

    /// Adds the frame at an address, unless it has not begun, and says where its caller's is.
    fn add_frame(
        &self,
        memory: &dyn Memory,
        at: u64,
        codes: &mut Codes,
        frames: &mut Vec<ScriptFrame>,
    ) -> Result<u64, Unreadable> {
        let layout = &self.layout.frame;
        let mut bytes = [0; MAX_FRAME_BYTES];
        let part = bytes.get_mut(..layout.size as usize).ok_or(Unreadable(at))?;
        if !memory.read(at, part) {
            return Err(Unreadable(at));
        }
        let word = |offset: u32| {
            bytes
                .get(offset as usize..)
                .and_then(<[u8]>::first_chunk)
                .map_or(0, |word| u64::from_le_bytes(*word))
        };
        let byte = |offset: u32| bytes.get(offset as usize).copied().unwrap_or(0);
        // References carry tags in their lowest bits since 3.14.
        let (code, caller) = (word(layout.code) & !7, word(layout.caller));
        let has_entry_frames = matches!(self.layout.chain, Chain::EntryFrames { .. });
        if has_entry_frames && byte(layout.owner) >= layout::OWNED_BY_LOOP {
            if let Some(last) = frames.last_mut() {
                last.is_entry = true;
            }
            return Ok(caller);
        }
        let function = codes.get(memory, &self.layout, code)?;
        let is_single = self.layout.chain == Chain::Single;
        let instruction = match is_single {
            true => word(layout.instruction) as u32,
            false => u32::try_from(word(layout.instruction).saturating_sub(code)).unwrap_or(u32::MAX),
        };
        // As `_PyFrame_IsIncomplete`: what is only being set up is in no traceback. A generator has begun.
        let is_generator = !is_single && byte(layout.owner) == layout::OWNED_BY_GENERATOR;
        if is_generator || function.has_begun(instruction) {
            let Function { name, file, .. } = function.clone();
            let line = function.line(instruction);
            let is_marked = matches!(self.layout.chain, Chain::CFrames { .. }) && byte(layout.is_entry) != 0;
            frames.push(ScriptFrame { function: name, file, line, is_entry: is_single || is_marked });
        }
        Ok(caller)
    }
}
