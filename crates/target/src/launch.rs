//! A command to start.
//!
//! Elsewhere: starting it ([`Held`](crate::Held)).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::interpreter;

/// A command to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// A path, or a name that is looked up in PATH.
    pub program: OsString,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Variables of its environment in addition to those of the recorder.
    pub environment: Vec<(OsString, OsString)>,
}

/// Destination of a command's output.
#[derive(Clone, Debug, Default)]
pub enum Prints {
    /// The recorder's output.
    #[default]
    Through,
    /// The recorder's error output: the recorder's own output is for a program to read.
    AsErrors,
    /// Discarded. Errors are discarded too if they would go to the terminal; the input is empty.
    Nowhere,
    /// A file; the input is empty. Errors go to the recorder's error output.
    To(Arc<File>),
}

impl Launch {
    /// Returns the command in std's form, with its output connected to `prints`.
    pub fn command(&self, prints: &Prints) -> io::Result<Command> {
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

    /// Explains an exec's error: a directory of PATH that may not be searched gives the same error as a program that
    /// may not be executed, and a missing interpreter the same error as a missing program.
    pub fn explain(&self, error: io::Error) -> io::Error {
        match (error.kind(), self.path()) {
            (io::ErrorKind::PermissionDenied, None) => io::ErrorKind::NotFound.into(),
            // The file exists; the program that would run it is missing.
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

    /// The program's file.
    fn path(&self) -> Option<PathBuf> {
        let set =
            self.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        program_file(&self.program, &set.or_else(|| std::env::var_os("PATH")).unwrap_or_default())
    }

    /// The last part of the program's path, which is the kernel's name of the process.
    pub fn name(&self) -> String {
        let path = std::path::Path::new(&self.program);
        path.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// The file of a program: the given path, or the first match in the directories of `path`.
pub fn program_file(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|path| path.is_file())
}
