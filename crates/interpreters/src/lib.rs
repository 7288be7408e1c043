//! Stacks of interpreted programs, read from the interpreter's own data structures in the memory of its process.
//!
//! The native stack of an interpreted program shows what the interpreter does, not what the program does: each call in
//! the program is one more native call of the evaluation loop (an *eval frame*), or none at all. Interpreters keep the program's
//! frames in lists of their own. An [`Interpreter`] reads these lists, and [`merge()`] substitutes the script frames that it finds for
//! the eval frames.
//!
//! Each language is one folder, with a [`Language`] that says all that others have to know of it, and a line in [`LANGUAGES`].
//!
//! Invariant: the memory of a process is untrusted. Whatever it contains, the work and the results are bounded, and unreadable
//! memory is an error. The process should be stopped while it is read; otherwise frames may be missing or wrong.
//!
//! A recorder cannot stop a process at each sample. It lets BPF programs read the code that a thread runs, starting from
//! [`Interpreter::root`], and reads the names of that code later ([`Interpreter::function`]): a [`CodeId`] tells
//! whether the code object is still the same.
//!
//! Elsewhere: reading memory, stopping the process, native stacks.

mod compiled;
mod dispatch;
mod function;
mod go;
mod hotspot;
mod image;
mod interpreter;
mod language;
mod memory;
mod merge;
mod perl;
mod php;
mod python;
mod registry;
mod root;
mod round;
mod ruby;
mod runtime;
mod threads;
mod v8;

pub use compiled::CompiledCode;
pub use function::{CodeId, Function};
pub use go::{Goroutine, GoroutineList, NoGoroutines};
pub use interpreter::{
    Detected, FrameLists, FrameSource, Interpreter, LoopPart, NativeFrame, ScriptFrame, StackFrames,
    frames_on_stack, places_of,
};
pub use language::{CommandLine, JitAdvice, Language};
pub use memory::{Mapped, Memory, Unreadable};
pub use merge::{Merged, eval_frames, merge};
pub use registry::{LANGUAGES, bias, find, is_likely, language_names, language_of_loop, language_versions};
pub use root::{IDENTITY_WORDS, KernelLayout, LAYOUT_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES, Root};
pub use round::{EvalLoopFrame, ScriptPlace};
pub use runtime::{RuntimeProcess, RuntimeState};
pub use threads::Threads;
