//! Standard output: how wide it is, whether it shows colours, and what happens when nobody reads on.

use std::borrow::Cow;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use anyhow::Result;

/// Where a command writes its result.
pub struct Output<'a> {
    to: Box<dyn Write + 'a>,
    /// Characters in a line, if a person looks at it.
    pub width: Option<usize>,
    colours: bool,
}

impl<'a> Output<'a> {
    /// Standard output. Colours only on a terminal, and as NO_COLOR, CLICOLOR and CLICOLOR_FORCE want it.
    pub fn stdout() -> Self {
        let stdout = io::stdout();
        let colours = AutoStream::choice(&stdout) != ColorChoice::Never;
        let width = stdout.is_terminal().then(terminal_width);
        Self { to: Box::new(BufWriter::new(stdout.lock())), width, colours }
    }

    /// Standard error, for what is said beside another program's output. No colours.
    pub fn stderr() -> Self {
        let stderr = io::stderr();
        let width = stderr.is_terminal().then(terminal_width);
        Self { to: Box::new(BufWriter::new(stderr.lock())), width, colours: false }
    }

    /// A file: no width, no colours.
    pub fn file(file: std::fs::File) -> Self {
        Self::plain(BufWriter::new(file))
    }

    /// What is put on a terminal later, with so many characters in a line.
    pub fn lines(to: impl Write + 'a, width: usize, colours: bool) -> Self {
        Self { to: Box::new(to), width: Some(width), colours }
    }

    /// Anything else: no width, no colours.
    pub fn plain(to: impl Write + 'a) -> Self {
        Self { to: Box::new(to), width: None, colours: false }
    }

    /// The text in a style, if colours are shown.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.colours && style != Style::new() { format!("{style}{text}{style:#}") } else { text.into() }
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0).max(40))
}

/// How much a share stands out, in perf's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heat {
    /// 5% and more.
    Hot,
    /// 0.5% and more.
    Warm,
    /// Less.
    Cold,
}

impl Heat {
    /// Of so many percent.
    pub fn of(percent: f64) -> Self {
        match percent {
            p if p >= 5.0 => Heat::Hot,
            p if p >= 0.5 => Heat::Warm,
            _ => Heat::Cold,
        }
    }
}

/// Ends a command: a reader that has gone away, as `head` does, has seen what it wanted.
pub fn finish(result: Result<()>) -> Result<ExitCode> {
    match result {
        Err(error) if is_closed_pipe(&error) => Ok(ExitCode::SUCCESS),
        other => other.map(|()| ExitCode::SUCCESS),
    }
}

/// Whether nobody reads on.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        let csv = cause.downcast_ref::<csv::Error>().and_then(|error| match error.kind() {
            csv::ErrorKind::Io(error) => Some(error.kind()),
            _ => None,
        });
        io.or(json).or(csv) == Some(ErrorKind::BrokenPipe)
    })
}

/// The text without characters that would move a terminal's cursor or break a line: names come from files.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.replace(char::is_control, "\u{fffd}").into()
    } else {
        text.into()
    }
}
