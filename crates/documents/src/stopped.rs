//! The stacks that running processes have at one moment.

use serde::Serialize;

document! {
    /// All processes, with those that could not be looked at.
    pub struct StoppedDocument<'s> as "StoppedStacks" of (processes: Vec<StoppedEntry<'s>>) {
        version: u32 = crate::JSON_VERSION,
        processes: Vec<StoppedEntry<'s>> = processes,
    }
}

/// A process, or why it could not be looked at.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum StoppedEntry<'s> {
    /// The process with its threads.
    Found(StoppedProcessRow<'s>),
    /// The reason for having none.
    Refused {
        /// Process ID.
        pid: u32,
        /// The reason.
        error: String,
    },
}

/// A process.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StoppedProcessRow<'s> {
    /// Process ID.
    pub pid: u32,
    /// Path of the executable.
    pub executable: &'s str,
    /// Name of the interpreter, if the process runs one that is known.
    pub interpreter: Option<String>,
    /// Time for which it was stopped.
    pub held_ns: Option<u64>,
    /// The threads.
    pub threads: Vec<StoppedThreadRow<'s>>,
    /// Goroutines that no thread runs, by equal stacks; only of programs of Go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goroutines: Option<Vec<GoroutineRow<'s>>>,
    /// Whether these are all; only of programs of Go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goroutines_are_all: Option<bool>,
    /// The reason why goroutines are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goroutines_error: Option<String>,
}

/// Goroutines that no thread runs, with equal stacks.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct GoroutineRow<'s> {
    /// Numbers of the goroutines.
    pub ids: &'s [u64],
    /// Reason for waiting in the runtime's words; `runnable` if they wait for a thread. Empty if not known.
    pub state: &'s str,
    /// Whether the stack ends at its root.
    pub complete: bool,
    /// The reason why it ends before that.
    pub cut: Option<&'static str>,
    /// The file to blame for that.
    pub cut_file: Option<&'s str>,
    /// The frames, innermost first.
    pub frames: Vec<StoppedFrame<'s>>,
}

/// A thread.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StoppedThreadRow<'s> {
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub name: &'s str,
    /// The state as /proc has it.
    pub state: Option<char>,
    /// The state in words.
    pub state_text: &'static str,
    /// Functions of the kernel in which it waits, innermost first.
    pub kernel: &'s [String],
    /// Whether the stack ends at its root.
    pub complete: bool,
    /// The reason why it ends before that.
    pub cut: Option<&'static str>,
    /// The file to blame for that.
    pub cut_file: Option<&'s str>,
    /// The reason why frames of the interpreted program are missing.
    pub script_error: Option<String>,
    /// The reason for lacking any stack.
    pub no_stack: Option<&'static str>,
    /// The frames, innermost first.
    pub frames: Vec<StoppedFrame<'s>>,
}

/// A frame.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StoppedFrame<'s> {
    /// Of an interpreted program.
    Script {
        /// The function.
        symbol: &'s str,
        /// Source file.
        file: &'s str,
        /// Line in it, if known.
        line: Option<u32>,
    },
    /// Of machine code.
    Native {
        /// Address in the process, in hexadecimal.
        address: String,
        /// The function, if it has a symbol.
        symbol: Option<&'s str>,
        /// Whether the call was inlined.
        inlined: bool,
        /// Source file, if known.
        file: Option<&'s str>,
        /// Line in it, if known.
        line: Option<u32>,
        /// File of the code.
        dso: Option<&'s str>,
        /// Address in that file, in hexadecimal.
        dso_address: String,
        /// The method by which the frame was found.
        found: &'static str,
        /// The confidence in it, no larger than in the frames before it.
        trust: &'static str,
    },
}
