//! HotSpot, the virtual machine of OpenJDK 11 to 25: methods of Java and of other languages for it, interpreted or compiled, with the calls inlined into them.
//!
//! All frames are on the native stack. Code is in heaps of blobs, each of which describes its frames (`heap`, `blob`), so that HotSpot can walk its own stacks:
//! `frames` states the same rules. All offsets come from what the library states for debuggers (`statements`, `layout`); only the slots of interpreted
//! frames are not stated, which have been the same since Java 9.
//!
//! Positions in compiled code are known where a thread may be stopped: between these, lines and inlined calls are those of the next such place.
//!
//! The line of an innermost interpreted frame is that of its last call: its running instruction is in a register. Frames of a virtual thread that are in the
//! heap are missing.
//!
//! Not supported: other virtual machines (OpenJ9, GraalVM's native images), and code that was compiled ahead of time.

mod aarch64;
mod blob;
mod frames;
mod heap;
mod layout;
#[cfg(test)]
mod layout_tests;
mod methods;
mod numbers;
mod scopes;
mod statements;
mod x86_64;

use std::fs::File;
use std::sync::OnceLock;

use plumb_unwind::{RuntimeFrame, RuntimeRule};

use crate::compiled::CompiledCode;
use crate::function::UNKNOWN;
use crate::image::Image;
use crate::runtime::RuntimeProcess;
use crate::{
    CodeId, CommandLine, Detected, FrameSource, Function, Interpreter, KernelLayout, Language, Memory,
    NativeFrame, Root, ScriptPlace, StackFrames, Unreadable,
};

use blob::Kind;
use heap::CodeHeaps;
use layout::Layout;
use statements::Tables;

/// Java.
pub(crate) static LANGUAGE: Language = Language {
    name: "Java",
    tag: "java",
    versions: "Java 11 to 25 (OpenJDK's HotSpot)",
    files: &["java", "libjvm"],
    command: CommandLine {
        programs: &["java"],
        with_value: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--add-modules",
            "--upgrade-module-path",
        ],
        module: &["-m", "--module"],
        text: &[],
    },
    extensions: &["jar", "java", "class"],
    variables: &["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"],
    jit: None,
    other_way: |_| None,
    native_loop: None,
    on_native_stack: true,
    symbols: statements::SYMBOLS,
    find,
};

/// Offsets from an interpreted frame's pointer (frame_x86.hpp, frame_aarch64.hpp).
const METHOD: u64 = 24;
const BYTECODE: u64 = 64;

/// HotSpot in a file.
#[derive(Debug)]
struct HotSpot {
    tables: Tables,
    /// The inner `None`: it lacks something.
    layout: OnceLock<Option<Layout>>,
}

/// Detects HotSpot in a file.
fn find(image: &Image, _: &File) -> Option<Detected> {
    let tables = Tables::of(image)?;
    Some(Detected::Known(Box::new(HotSpot { tables, layout: OnceLock::new() })))
}

impl HotSpot {
    /// The layout that a process states. It is read once for all processes with this file.
    fn layout(&self, memory: &dyn Memory, bias: u64) -> Result<&Layout, Unreadable> {
        let layout = match self.layout.get() {
            Some(known) => known,
            None => {
                let read = Layout::read(memory, bias, &self.tables)?;
                self.layout.get_or_init(|| read)
            }
        };
        layout.as_ref().ok_or(Unreadable(self.tables.address()))
    }

    /// The layout, once a process was read.
    fn known_layout(&self) -> Result<&Layout, Unreadable> {
        self.layout.get().and_then(Option::as_ref).ok_or(Unreadable(self.tables.address()))
    }
}

impl Interpreter for HotSpot {
    fn name(&self) -> String {
        match self.known_layout() {
            Ok(layout) => format!("Java {}", layout.version),
            Err(_) => "Java".to_owned(),
        }
    }

    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn source(&self) -> FrameSource<'_> {
        FrameSource::NativeStack(self)
    }

    fn root(&self) -> Root {
        Root { address: self.tables.address(), layout: KernelLayout::WITHOUT_READER }
    }

    fn function(&self, memory: &dyn Memory, code: CodeId) -> Result<Function, Unreadable> {
        methods::read(memory, self.known_layout()?, code)
    }
}

impl StackFrames for HotSpot {
    fn place(
        &self,
        process: &mut RuntimeProcess<'_>,
        frame: NativeFrame,
    ) -> Result<Option<ScriptPlace>, Unreadable> {
        let (memory, bias) = (process.memory, process.bias);
        let layout = self.layout(memory, bias)?;
        let heaps = process.state.get_or_insert::<CodeHeaps>();
        let Some(blob) = heaps.blob(memory, (layout, bias), frame.pc)? else { return Ok(None) };
        let (kind, start, method) = (blob.kind, blob.at, blob.method);
        let place = |code, offset| ScriptPlace { code, offset, is_entry: true, is_generator: false };
        match kind {
            Kind::Compiled => {
                let code = heaps.function(start, || methods::id(memory, layout, method))?;
                Ok(Some(place(code, UNKNOWN)))
            }
            Kind::Interpreter => {
                let pointer = frame.cfa.wrapping_sub(16);
                let Some(at) = pointer.checked_sub(BYTECODE).filter(|&at| at >= frame.sp) else {
                    return Ok(None);
                };
                let method = memory.word(pointer.wrapping_sub(METHOD))?;
                let code = heaps.method(method, || methods::id(memory, layout, method))?;
                Ok(Some(place(code, methods::bytecode_index(layout, code, memory.word(at)?))))
            }
            Kind::Framed | Kind::Bare | Kind::Stub => Ok(None),
        }
    }

    fn compiled(&self, process: &mut RuntimeProcess<'_>, at: u64) -> Result<CompiledCode, Unreadable> {
        let (memory, bias) = (process.memory, process.bias);
        let layout = self.layout(memory, bias)?;
        let heaps = process.state.get_or_insert::<CodeHeaps>();
        let blob = heaps.blob(memory, (layout, bias), at)?.ok_or(Unreadable(at))?;
        scopes::read(memory, layout, blob)
    }

    fn has(&self, process: &mut RuntimeProcess<'_>, code: &CompiledCode) -> bool {
        let Ok(layout) = self.layout(process.memory, process.bias) else { return false };
        let heaps = process.state.get_or_insert::<CodeHeaps>();
        let blob = heaps.blob(process.memory, (layout, process.bias), code.range().start);
        blob.is_ok_and(|blob| blob.is_some_and(|blob| blob.id() == code.id()))
    }

    fn rule(
        &self,
        process: &mut RuntimeProcess<'_>,
        frame: RuntimeFrame,
        stack: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> RuntimeRule {
        match self.layout(process.memory, process.bias) {
            Ok(layout) => frames::rule(layout, process, frame, stack),
            Err(_) => RuntimeRule::None,
        }
    }

    fn has_rules(&self) -> bool {
        true
    }
}
