//! A pager for what is longer than the terminal is high: `$PAGER`, or `less`.
//!
//! Invariant: whoever leaves the pager before its end gets no error, and the command ends after the pager. Not here: whether a
//! command wants one.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// What `--help` says of it.
pub const HELP: &str = "\
On a terminal, output goes through $PAGER, or less; PAGER= or PAGER=cat turns that off. Lines are as wide
as the terminal; in a pipe or a file their length has no limit.";

/// A running pager and its standard input.
pub struct Pager {
    child: Child,
    /// Gone once the pager has been told that there is no more.
    input: Option<BufWriter<ChildStdin>>,
}

impl Pager {
    /// Starts one, if standard output is a terminal and there is a pager. `PAGER=` and `PAGER=cat` are for none.
    pub fn start() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let mut command = match std::env::var_os("PAGER") {
            Some(pager) if pager.is_empty() || pager == "cat" => return None,
            Some(pager) => words(&pager)?,
            None => Command::new("less"),
        };
        // As git has it: it ends at once where all fits, keeps colours, and leaves what was seen on the terminal.
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take().map(BufWriter::new);
        Some(Self { child, input })
    }
}

/// The variable may hold arguments too, quoted as for a shell. No shell runs it: one that is missing is none, not an error of the shell's.
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
        // However it ended, it has shown what was looked at.
        let _ = self.child.wait();
    }
}
