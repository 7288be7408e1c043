//! Perl 5.30 to 5.42, built with threads: the functions that `caller` shows.
//!
//! Follows Perl's own cop.h, cv.h, gv.h and hv.h: `PL_curinterp` points to the main thread's interpreter, which has lists of contexts. Some contexts
//! are calls; each call has its function, and the function its name. Functions written in C (XS) have no context.
//!
//! Not supported: other threads, and builds without threads (their interpreter is not a structure). An `eval` called from C has an eval frame that
//! no context shows.

mod contexts;
mod functions;
mod kernel;
mod layout;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;

use crate::image::{Image, Wanted};
use crate::{
    CodeId, CommandLine, Detected, EvalLoopFrame, FrameLists, FrameSource, Function, Interpreter, Language,
    LoopPart, Memory, Root, Threads, Unreadable,
};

use layout::PerlLayout;

/// Symbol of the pointer to the main thread's interpreter.
const INTERPRETER: &str = "PL_curinterp";
const VERSION: &str = "PL_version";
const SUBVERSION: &str = "PL_subversion";
const INTERPRETER_BYTES: &str = "PL_interp_size";
const LOOP: &str = "Perl_runops_standard";
/// Value of `PL_interp_size` in builds without threads.
const NO_STRUCTURE: u32 = 1;

/// Symbols to search for in a file.
const SYMBOLS: &[Wanted] = &[
    Wanted { name: INTERPRETER, bytes: 0 },
    Wanted { name: VERSION, bytes: 1 },
    Wanted { name: SUBVERSION, bytes: 1 },
    Wanted { name: INTERPRETER_BYTES, bytes: 2 },
    Wanted { name: LOOP, bytes: 0 },
];

/// Perl.
pub(crate) static LANGUAGE: Language = Language {
    name: "Perl",
    tag: "perl",
    versions: "Perl 5.30 to 5.42",
    files: &["perl", "libperl"],
    command: CommandLine {
        programs: &["perl"],
        with_value: &["-I", "-M", "-m"],
        module: &[],
        text: &["-e", "-E"],
    },
    extensions: &["pl"],
    variables: &[],
    jit: None,
    other_way: |_| None,
    native_loop: Some(LOOP),
    on_native_stack: false,
    symbols: SYMBOLS,
    find,
};

/// Perl in a file.
#[derive(Debug)]
struct Perl {
    /// Stated address of `PL_curinterp`.
    interpreter: u64,
    /// Version, such as 5.36.0.
    version: String,
    layout: PerlLayout,
    /// Stated address range of the loop.
    run: Range<u64>,
}

/// Detects Perl in a file.
fn find(image: &Image, _: &File) -> Option<Detected> {
    let run = image.range(LOOP)?;
    let number = |name: &str| {
        let bytes = image.content(name)?;
        Some(bytes.iter().rev().fold(0_u32, |number, &byte| number << 8 | u32::from(byte)))
    };
    let (version, subversion) = (number(VERSION)?, number(SUBVERSION)?);
    let bytes = number(INTERPRETER_BYTES)?;
    let text = format!("5.{version}.{subversion}");
    match (image.address(INTERPRETER), layout::of(version, bytes)) {
        (Some(interpreter), Some(layout)) => {
            Some(Detected::Known(Box::new(Perl { interpreter, version: text, layout, run })))
        }
        _ if bytes == NO_STRUCTURE => Some(Detected::Unknown(format!("Perl {text} without threads"))),
        _ => Some(Detected::Unknown(format!("Perl {text}"))),
    }
}

impl Interpreter for Perl {
    fn name(&self) -> String {
        format!("Perl {}", self.version)
    }

    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn source(&self) -> FrameSource<'_> {
        FrameSource::Lists(self)
    }

    fn root(&self) -> Root {
        Root { address: self.interpreter, layout: self.layout.for_kernel() }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        functions::read(memory, &self.layout, code)
    }
}

impl FrameLists for Perl {
    fn loop_part(&self, stated: u64) -> Option<LoopPart> {
        self.run.contains(&stated).then_some(LoopPart::Loop)
    }

    fn rounds_are_counted(&self) -> bool {
        true
    }

    /// `sort` creates its list of contexts, and a call in it, before its eval frame starts.
    fn calls_outlast_rounds(&self) -> bool {
        true
    }

    fn threads(&self, memory: &dyn Memory, bias: u64) -> Result<Threads, Unreadable> {
        Ok(match memory.word(self.interpreter.wrapping_add(bias))? {
            0 => Threads::ByDescriptor(BTreeMap::new()),
            interpreter => Threads::Main(interpreter),
        })
    }

    fn rounds(&self, memory: &dyn Memory, state: u64) -> Result<Vec<EvalLoopFrame>, Unreadable> {
        contexts::read(memory, &self.layout, state)
    }
}
