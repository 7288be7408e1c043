//! A pager for output longer than the terminal: `$PAGER`, or `less`.
//!
//! Invariant: quitting the pager early is not an error, and the command ends after the pager. Elsewhere: whether a
//! command uses one.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Text of `--help`.
pub const HELP: &str = "\
On a terminal, output goes through $PAGER, or less; PAGER= or PAGER=cat turns that off. Lines are as wide
as the terminal; in a pipe or a file their length has no limit.";

/// A running pager and its standard input.
pub struct Pager {
    child: Child,
    /// `None` once the input has been closed.
    input: Option<BufWriter<ChildStdin>>,
}

impl Pager {
    /// Starts a pager if standard output is a terminal and a pager is available. `PAGER=` and `PAGER=cat` disable it.
    pub fn start() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let mut command = match std::env::var_os("PAGER") {
            Some(pager) if pager.is_empty() || pager == "cat" => return None,
            Some(pager) => words(&pager)?,
            None => Command::new("less"),
        };
        // The flags git uses: quit at once if all fits, keep colours, and leave the output on the terminal.
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take().map(BufWriter::new);
        Some(Self { child, input })
    }
}

/// Splits the variable, which may hold arguments quoted as for a shell. Runs no shell: a missing pager means none, not an error from the shell.
fn words(pager: &OsStr) -> Option<Command> {
    let words = shell_words::split(pager.to_str()?).ok()?;
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Ok(bytes.len()), |input| input.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.input.take());
        // Whatever its exit status, the pager has shown the output.
        let _ = self.child.wait();
    }
}
