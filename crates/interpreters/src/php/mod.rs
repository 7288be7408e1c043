//! PHP 7.4 to 8.5: the functions that `debug_print_backtrace()` shows and that are written in PHP.
//!
//! Follows PHP's own Zend/zend_compile.h, Zend/zend_globals.h and Zend/zend_vm_execute.h: `executor_globals` points to the current call,
//! each call to its function and its caller. Functions written in C have calls as well, which are omitted: they have frames of their own on the
//! native stack.
//!
//! Supports builds without thread safety, like Debian's packages: thread-safe builds keep their globals elsewhere.

mod calls;
mod functions;
mod kernel;
mod layout;

use std::fs::File;
use std::ops::Range;

use crate::image::{Image, Wanted, text_after};
use crate::{
    CodeId, CommandLine, Detected, EvalLoopFrame, FrameLists, FrameSource, Function, Interpreter, JitAdvice,
    Language, LoopPart, Memory, Root, Threads, Unreadable,
};

use layout::PhpLayout;

const GLOBALS: &str = "executor_globals";
/// Symbol of a thread-safe build.
const GLOBALS_OFFSET: &str = "executor_globals_offset";
const LOOP: &str = "execute_ex";
/// Rarely executed part of the loop that a compiler placed elsewhere.
const COLD_LOOP: &str = "execute_ex.cold";
/// Text in front of the version.
const BEFORE_VERSION: &[u8] = b"X-Powered-By: PHP/";

/// Symbols to search for in a file.
const SYMBOLS: &[Wanted] = &[
    Wanted { name: GLOBALS, bytes: 0 },
    Wanted { name: GLOBALS_OFFSET, bytes: 0 },
    Wanted { name: LOOP, bytes: 0 },
    Wanted { name: COLD_LOOP, bytes: 0 },
];

/// PHP.
pub(crate) static LANGUAGE: Language = Language {
    name: "PHP",
    tag: "php",
    versions: "PHP 7.4 to 8.5",
    files: &["php", "libphp"],
    command: CommandLine {
        programs: &["php"],
        with_value: &["-c", "-d", "-z", "-t", "-S"],
        module: &[],
        text: &["-r", "-B", "-R"],
    },
    extensions: &["php", "phar"],
    variables: &[],
    jit: Some(JitAdvice {
        frames: "record with --scan",
        // ZEND_JIT_DEBUG_PERF (ext/opcache/jit/zend_jit.h).
        names: ("opcache.jit_debug", "run it with php -d opcache.jit_debug=16"),
    }),
    other_way: |_| None,
    native_loop: Some(LOOP),
    on_native_stack: false,
    symbols: SYMBOLS,
    find,
};

/// PHP in a file.
#[derive(Debug)]
struct Php {
    /// Stated address of `executor_globals`.
    globals: u64,
    /// Version, such as 8.2.7.
    version: String,
    layout: PhpLayout,
    /// Stated address ranges of the loop.
    loops: Vec<Range<u64>>,
}

/// Detects PHP in a file.
fn find(image: &Image, file: &File) -> Option<Detected> {
    image.address(LOOP)?;
    let version = text_after(file, BEFORE_VERSION)?;
    if image.address(GLOBALS_OFFSET).is_some() {
        return Some(Detected::Unknown(format!("PHP {version} for several threads (ZTS)")));
    }
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    let layout = layout::of((numbers.next()?, numbers.next()?));
    let (Some(globals), Some(layout)) = (image.address(GLOBALS), layout) else {
        return Some(Detected::Unknown(format!("PHP {version}")));
    };
    let loops = [LOOP, COLD_LOOP].iter().filter_map(|name| image.range(name)).collect();
    Some(Detected::Known(Box::new(Php { globals, version, layout, loops })))
}

impl Interpreter for Php {
    fn name(&self) -> String {
        format!("PHP {}", self.version)
    }

    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn source(&self) -> FrameSource<'_> {
        FrameSource::Lists(self)
    }

    fn root(&self) -> Root {
        Root { address: self.globals, layout: self.layout.for_kernel() }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        functions::read(memory, &self.layout, code)
    }
}

impl FrameLists for Php {
    fn loop_part(&self, stated: u64) -> Option<LoopPart> {
        self.loops.iter().any(|range| range.contains(&stated)).then_some(LoopPart::Loop)
    }

    fn rounds_are_counted(&self) -> bool {
        true
    }

    /// `zend_call_function` makes a call the current one before its eval frame starts (`zend_init_func_execute_data`).
    fn calls_outlast_rounds(&self) -> bool {
        true
    }

    fn threads(&self, _: &dyn Memory, bias: u64) -> Result<Threads, Unreadable> {
        let globals = self.globals.wrapping_add(bias);
        Ok(Threads::Main(globals.wrapping_add(self.layout.current.into())))
    }

    fn rounds(&self, memory: &dyn Memory, state: u64) -> Result<Vec<EvalLoopFrame>, Unreadable> {
        calls::read(memory, &self.layout, state)
    }
}
