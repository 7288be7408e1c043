//! Who is to be recorded, and how.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::attr::{Code, Counter};
pub use crate::ingest::Program;

/// Who is to be recorded.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command that the recorder starts.
    Command(Launch),
    /// Processes that run already, with what they start, until these processes end.
    Processes(Vec<u32>),
    /// A process that runs already and all its descendants, living and to be born, until the last of them ends.
    Tree(u32),
    /// What runs in a cgroup or below it, by the path of its directory or its name in the hierarchy, until it is removed.
    Cgroup(PathBuf),
    /// Processes that begin to run this program from now on, with what they start, until these processes end.
    Awaited(Program),
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
    pub(crate) fn command(&self, silent: bool) -> Command {
        let mut command = Command::new(&self.program);
        if silent {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        if silent && io::stderr().is_terminal() {
            command.stderr(Stdio::null());
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What an exec's error means: a folder of PATH that may not be searched gives the same error as a program that
    /// may not be run.
    pub(crate) fn explain(&self, error: io::Error) -> io::Error {
        let is_path = self.program.as_encoded_bytes().contains(&b'/');
        if error.kind() != io::ErrorKind::PermissionDenied || is_path {
            return error;
        }
        let set =
            self.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let path = set.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let found = std::env::split_paths(&path).any(|folder| folder.join(&self.program).is_file());
        if found { error } else { io::ErrorKind::NotFound.into() }
    }

    /// The last part of the program's path, as the kernel will name the process.
    pub(crate) fn name(&self) -> String {
        let path = std::path::Path::new(&self.program);
        path.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// How to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What samples are taken by; `None`: cycles where there are counters, else the kernel's clock.
    pub counter: Option<Counter>,
    /// What else samples are taken by, each as an event of its own, and in which code.
    pub also: Vec<(Counter, Code)>,
    /// Samples per second of processor time; of what isn't a clock, per second at most.
    pub frequency_hz: u32,
    /// A sample each time that so much was counted, instead of by frequency.
    pub period: Option<u64>,
    /// Of what is no clock and no counter of the processor each single occurrence is a sample, as long as they are rare.
    pub each_if_rare: bool,
    /// Which code is sampled.
    pub code: Code,
    /// Bytes of stack copied with each sample at first; more when they don't reach.
    pub stack_copy: u32,
    /// Whether stacks that end for want of unwind information are scanned ([`crate::Ingest::scan_stacks`]).
    pub scan: bool,
    /// Whether tables of files are taken from the user's cache and, where many addresses of one are looked up, made for
    /// it ([`crate::tables`]).
    pub keep_tables: bool,
    /// Whether a command is kept from the terminal: it reads nothing, and what it prints is thrown away, but for its errors
    /// where they go somewhere else.
    pub silent: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            counter: None,
            also: Vec::new(),
            frequency_hz: 999,
            period: None,
            each_if_rare: true,
            code: Code::All,
            stack_copy: 16 << 10,
            scan: false,
            keep_tables: false,
            silent: false,
        }
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
