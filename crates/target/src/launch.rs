//! A command to start.
//!
//! Not here: starting it ([`Held`](crate::Held)).

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
    /// The same for std, with its output where it goes.
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

    /// What an exec's error means: a folder of PATH that may not be searched gives the same error as a program that
    /// may not be run, and a program whose interpreter is missing the same as one that is missing itself.
    pub fn explain(&self, error: io::Error) -> io::Error {
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

    /// The program's file.
    fn path(&self) -> Option<PathBuf> {
        let set =
            self.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        program_file(&self.program, &set.or_else(|| std::env::var_os("PATH")).unwrap_or_default())
    }

    /// The last part of the program's path, as the kernel will name the process.
    pub fn name(&self) -> String {
        let path = std::path::Path::new(&self.program);
        path.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// The file of a program: as it is named, or the first in the folders of `path`.
pub fn program_file(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|path| path.is_file())
}
