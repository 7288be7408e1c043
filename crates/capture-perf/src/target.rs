//! Who is to be recorded, and how.

use std::ffi::OsString;
use std::process::Command;

use crate::attr::Code;

/// Who is to be recorded.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command that the recorder starts.
    Command(Launch),
    /// Processes that run already, with what they start.
    Processes(Vec<u32>),
    /// Everything.
    Machine,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// A path, or a name that is looked up in PATH.
    pub program: OsString,
    /// What follows it.
    pub arguments: Vec<OsString>,
    /// Variables that are set in its environment besides those of the recorder.
    pub environment: Vec<(OsString, OsString)>,
}

impl Launch {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The last part of the program's path, as the kernel will name the process.
    pub(crate) fn name(&self) -> String {
        let path = std::path::Path::new(&self.program);
        path.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// How to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples per second of processor time.
    pub frequency_hz: u32,
    /// Which code is sampled.
    pub code: Code,
    /// Bytes of stack copied with each sample at first; more when they don't reach.
    pub stack_copy: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { frequency_hz: 999, code: Code::All, stack_copy: 16 << 10 }
    }
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended.
    Exited(std::process::ExitStatus),
    /// All processes to be recorded ended.
    Gone,
    /// A signal of this number told the recorder to end.
    Signal(i32),
}
