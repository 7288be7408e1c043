//! CPython 3.9 to 3.15: the frames of `sys._getframe()`, for each thread.
//!
//! Follows CPython's own Python/ceval.c, Include/internal/pycore_frame.h and Objects/codeobject.c of each version: the
//! runtime lists its interpreters, these their threads; each thread points to its current frame, each frame to its caller.

mod kernel;
mod layout;
mod lines;
mod objects;
mod offsets;
mod rounds;
mod version;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;

use crate::image::Image;
use crate::{
    CodeId, CommandLine, Detected, EvalLoopFrame, FrameLists, FrameSource, Function, Interpreter, Language,
    LoopPart, Memory, Root, ScriptFrame, Threads, Unreadable,
};
use objects::Codes;

use layout::{Chain, PythonLayout};
pub(crate) use lines::{LineTable, at as line_at};
use version::{COLD_LOOP, LOOP, RUNTIME, SYMBOLS};

/// Most interpreters and threads that are read.
const MAX_THREADS: usize = 1 << 16;

/// Python.
pub(crate) static LANGUAGE: Language = Language {
    name: "Python",
    tag: "python",
    versions: "CPython 3.9 to 3.15",
    files: &["python2", "python3", "libpython"],
    command: CommandLine {
        programs: &["python"],
        with_value: &["-W", "-X", "--check-hash-based-pycs"],
        module: &["-m"],
        text: &["-c"],
    },
    extensions: &["py", "pyc", "pyz"],
    variables: &["PYTHONPERFSUPPORT"],
    jit: None,
    other_way: version::with_stubs,
    native_loop: Some(LOOP),
    on_native_stack: false,
    symbols: SYMBOLS,
    find,
};

/// CPython in a file.
#[derive(Debug)]
struct Python {
    /// Stated address of `_PyRuntime`.
    runtime: u64,
    /// Version, such as 3.11.7.
    version: String,
    layout: PythonLayout,
    /// Stated address ranges of the loop.
    loops: Vec<Range<u64>>,
}

/// Detects CPython in a file.
fn find(image: &Image, _: &File) -> Option<Detected> {
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

    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn source(&self) -> FrameSource<'_> {
        FrameSource::Lists(self)
    }

    fn root(&self) -> Root {
        Root { address: self.runtime, layout: self.layout.for_kernel() }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        objects::function(memory, &self.layout, code)
    }
}

impl FrameLists for Python {
    fn loop_part(&self, stated: u64) -> Option<LoopPart> {
        self.loops.iter().any(|range| range.contains(&stated)).then_some(LoopPart::Loop)
    }

    fn rounds_are_counted(&self) -> bool {
        self.layout.chain == Chain::Single
    }

    fn threads(&self, memory: &dyn Memory, bias: u64) -> Result<Threads, Unreadable> {
        let PythonLayout { runtime: of_runtime, interpreter: of_interpreter, thread: of_thread, .. } =
            &self.layout;
        let word = |at: u64, offset: u32| memory.word(at.wrapping_add(offset.into()));
        let (mut states, mut looked_at) = (BTreeMap::new(), 0);
        let mut interpreter = word(self.runtime.wrapping_add(bias), of_runtime.interpreters)?;
        while interpreter != 0 {
            let mut thread = word(interpreter, of_interpreter.threads)?;
            while thread != 0 {
                states.entry(word(thread, of_thread.id)?).or_insert(thread);
                looked_at += 1;
                if looked_at > MAX_THREADS {
                    return Err(Unreadable(thread));
                }
                thread = word(thread, of_thread.next)?;
            }
            looked_at += 1;
            if looked_at > MAX_THREADS {
                return Err(Unreadable(interpreter));
            }
            interpreter = word(interpreter, of_interpreter.next)?;
        }
        Ok(Threads::ByDescriptor(states))
    }

    fn frames(&self, memory: &dyn Memory, state: u64) -> Result<Vec<ScriptFrame>, Unreadable> {
        let mut codes = Codes::default();
        let mut frames = Vec::new();
        let rounds = self.rounds(memory, state)?;
        let places = rounds.iter().flat_map(|round| round.frames.iter().map(|place| (place, round.at)));
        for (place, at) in places {
            let function = codes.get(memory, &self.layout, place.code.at)?;
            // As in `_PyFrame_IsIncomplete`: a frame that is still being set up is in no traceback. A generator has started.
            if place.is_generator || function.has_begun(place.offset) {
                let Function { name, file, .. } = function.clone();
                let line = function.line(place.offset);
                frames.push(ScriptFrame { function: name, file, line, is_entry: place.is_entry, at });
            }
        }
        Ok(frames)
    }

    fn rounds(&self, memory: &dyn Memory, state: u64) -> Result<Vec<EvalLoopFrame>, Unreadable> {
        rounds::read(memory, &self.layout, state)
    }
}
