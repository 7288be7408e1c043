//! Ruby 3.0 to 4.0: the methods and blocks that `caller` shows and that are written in Ruby.
//!
//! Follows Ruby's own vm_core.h, vm_backtrace.c and ractor_core.h: the main ractor lists its threads; each thread points to its execution
//! context, and that to control frames, which are contiguous in memory; each frame points to its code. Functions written in C have frames as well,
//! which are omitted: they have frames of their own on the native stack.
//!
//! Not supported: programs with further ractors, whose threads are in other lists.

mod frames;
mod functions;
mod kernel;
mod layout;
mod lines;
mod stripped;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;

use crate::dispatch;
use crate::function::UNKNOWN;
use crate::image::{Image, Wanted, mutex_bytes};
use crate::{
    CodeId, CommandLine, Detected, EvalLoopFrame, FrameLists, FrameSource, Function, Interpreter, Language,
    LoopPart, Memory, Root, Threads, Unreadable,
};

use layout::RubyLayout;

/// Symbol of the pointer to the main ractor, which is null if there are several.
const RACTOR: &str = "ruby_single_main_ractor";
const VERSION: &str = "ruby_version";
/// The function that calls the loop, once per eval frame.
const LOOP: &str = "rb_vm_exec";
/// A function whose first memory access is to what `RACTOR` names, and the bytes of it that are read.
const READS_RACTOR: &str = "rb_ractor_stdout";
const READS_RACTOR_BYTES: usize = 64;
/// Most threads that are read.
const MAX_THREADS: usize = 1 << 16;

/// Symbols to search for in a file.
const SYMBOLS: &[Wanted] = &[
    Wanted { name: RACTOR, bytes: 0 },
    Wanted { name: VERSION, bytes: 16 },
    Wanted { name: LOOP, bytes: 0 },
    Wanted { name: READS_RACTOR, bytes: READS_RACTOR_BYTES },
];

/// Ruby.
pub(crate) static LANGUAGE: Language = Language {
    name: "Ruby",
    tag: "ruby",
    versions: "Ruby 3.0 to 4.0",
    files: &["ruby", "libruby"],
    command: CommandLine {
        programs: &["ruby"],
        with_value: &["-I", "-r", "-E", "-C", "-x"],
        module: &[],
        text: &["-e"],
    },
    extensions: &["rb"],
    variables: &[],
    jit: None,
    other_way: |_| None,
    native_loop: Some(LOOP),
    on_native_stack: false,
    symbols: SYMBOLS,
    find,
};

/// Ruby in a file.
#[derive(Debug)]
struct Ruby {
    /// Stated address of `ruby_single_main_ractor`.
    ractor: u64,
    /// Version, such as 3.1.2.
    version: String,
    layout: RubyLayout,
    /// Stated address range of the loop, `vm_exec_core`, whose symbol no package has.
    core: Option<Range<u64>>,
    /// Stated address range of its caller.
    exec: Option<Range<u64>>,
}

/// Detects Ruby in a file.
fn find(image: &Image, file: &File) -> Option<Detected> {
    let text = image.content(VERSION)?.split(|&byte| byte == 0).next()?;
    let version = String::from_utf8_lossy(text).into_owned();
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    let layout = layout::of((numbers.next()?, numbers.next()?), mutex_bytes(file)?);
    // From 3.3 on the libraries in packages lack this symbol.
    let ractor = image.address(RACTOR).or_else(|| stripped::ractor(image, file));
    let (Some(ractor), Some(layout)) = (ractor, layout) else {
        let stripped = if layout.is_some() { " without symbols" } else { "" };
        return Some(Detected::Unknown(format!("Ruby {version}{stripped}")));
    };
    let (core, caller) = dispatch::find(file).map_or((None, None), |found| (Some(found.core), found.caller));
    let exec = image.range(LOOP).or(caller);
    Some(Detected::Known(Box::new(Ruby { ractor, version, layout, core, exec })))
}

const _: () = assert!(kernel::NO_POSITION == UNKNOWN, "the kernel's reader and this one say alike");

impl Interpreter for Ruby {
    fn name(&self) -> String {
        format!("Ruby {}", self.version)
    }

    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn source(&self) -> FrameSource<'_> {
        FrameSource::Lists(self)
    }

    fn root(&self) -> Root {
        Root { address: self.ractor, layout: self.layout.for_kernel() }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        functions::read(memory, &self.layout, code)
    }
}

impl FrameLists for Ruby {
    fn loop_part(&self, stated: u64) -> Option<LoopPart> {
        let is_in = |range: &Option<Range<u64>>| range.as_ref().is_some_and(|range| range.contains(&stated));
        match (is_in(&self.core), is_in(&self.exec)) {
            (true, _) => Some(LoopPart::Loop),
            (false, true) => Some(LoopPart::Caller),
            (false, false) => None,
        }
    }

    fn rounds_are_counted(&self) -> bool {
        true
    }

    /// A callee of C code, such as a block called by `rb_yield`, has its frame before its eval frame starts.
    fn calls_outlast_rounds(&self) -> bool {
        true
    }

    fn threads(&self, memory: &dyn Memory, bias: u64) -> Result<Threads, Unreadable> {
        let word = |at: u64, offset: u32| memory.word(at.wrapping_add(offset.into()));
        let layout = &self.layout;
        let mut states = BTreeMap::new();
        let ractor = word(self.ractor.wrapping_add(bias), 0)?;
        if ractor == 0 {
            return Ok(Threads::ByDescriptor(states));
        }
        let list = ractor.wrapping_add(layout.threads.into());
        let mut thread = word(list, 0)?;
        for _ in 0..MAX_THREADS {
            if thread == list || thread == 0 {
                return Ok(Threads::ByDescriptor(states));
            }
            let native = if layout.thread_native == 0 { thread } else { word(thread, layout.thread_native)? };
            // A thread that waits for a native thread has none.
            if native != 0 {
                states.insert(word(native, layout.thread_id)?, word(thread, layout.thread_context)?);
            }
            thread = word(thread, 0)?;
        }
        Err(Unreadable(thread))
    }

    fn rounds(&self, memory: &dyn Memory, state: u64) -> Result<Vec<EvalLoopFrame>, Unreadable> {
        frames::read(memory, &self.layout, state)
    }
}
