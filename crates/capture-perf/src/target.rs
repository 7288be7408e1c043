//! Who is to be recorded, and how.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::attr::{Code, Counter};
pub use crate::ingest::Program;
use crate::interpreter;

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

impl Target {
    /// What a command is called; `None`: it is no command.
    pub(crate) fn command_name(&self) -> Option<String> {
        match self {
            Target::Command(launch) => Some(launch.name()),
            _ => None,
        }
    }
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

/// Where what a command prints goes.
#[derive(Clone, Debug, Default)]
pub enum Prints {
    /// Where the recorder's goes.
    #[default]
    Through,
    /// Where the recorder's errors go: the recorder's own output is for a program to read.
    AsErrors,
    /// Nowhere, its errors where they would go to the terminal; it reads nothing either.
    Nowhere,
    /// To a file; it reads nothing either. Its errors go where the recorder's go.
    To(Arc<File>),
}

impl Launch {
    pub(crate) fn command(&self, prints: &Prints) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        match prints {
            Prints::Through => {}
            Prints::AsErrors => drop(command.stdout(io::stderr())),
            Prints::To(file) => drop(command.stdin(Stdio::null()).stdout(file.try_clone()?)),
            Prints::Nowhere => {
                command.stdin(Stdio::null()).stdout(Stdio::null());
                if io::stderr().is_terminal() {
                    command.stderr(Stdio::null());
                }
            }
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// What an exec's error means: a folder of PATH that may not be searched gives the same error as a program that
    /// may not be run, and a program whose interpreter is missing the same as one that is missing itself.
    pub(crate) fn explain(&self, error: io::Error) -> io::Error {
        match (error.kind(), self.path()) {
            (io::ErrorKind::PermissionDenied, None) => io::ErrorKind::NotFound.into(),
            // The file is there: what is not is the program that would run it.
            (io::ErrorKind::NotFound, Some(path)) => match interpreter::of(&path) {
                Some(interpreter) => {
                    let interpreter = interpreter.display();
                    io::Error::other(format!(
                        "its interpreter {interpreter} is missing: install it, or change the program"
                    ))
                }
                None => error,
            },
            _ => error,
        }
    }

    /// The program's file: as it is named, or the first of PATH.
    fn path(&self) -> Option<PathBuf> {
        if self.program.as_encoded_bytes().contains(&b'/') {
            return Some(PathBuf::from(&self.program));
        }
        let set =
            self.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let path = set.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(&self.program)).find(|path| path.is_file())
    }

    /// The last part of the program's path, as the kernel will name the process.
    pub fn name(&self) -> String {
        let path = std::path::Path::new(&self.program);
        path.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// What samples are taken by; `None`: the kernel's clock.
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
    /// Bytes of files' unwind information that are kept in memory, beyond what is in use.
    pub unwind_memory: usize,
    /// Where what a command prints goes.
    pub prints: Prints,
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
            unwind_memory: 32 << 20,
            prints: Prints::Through,
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
