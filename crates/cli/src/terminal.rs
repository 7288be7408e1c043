//! Standard output and standard error: their width and colours, the characters that may be written, and the handling of a closed
//! reader.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use anyhow::Result;
pub use plumb_documents::heat::Heat;
use plumb_formats::escape::is_unsafe;
pub use plumb_formats::escape::printable;
use plumb_process::stdout_was_closed;

use crate::exit::Exit;
use crate::pager::Pager;
use crate::render::padding::{self, fold};

/// The destination of a command's result: all text for people passes through it.
///
/// Invariant: written text contains no control characters except line breaks, tabs, and the styles added by
/// [`styled`](Self::styled). Names come from files: one that was not made printable shows U+FFFD, not an escape sequence.
pub struct Output<'a> {
    to: Box<dyn Write + 'a>,
    /// Characters per line, if a person reads the output.
    pub width: Option<usize>,
    colours: bool,
    /// Whether a pager shows the output.
    is_paged: bool,
    /// Represents the escape character of a style. Names can't contain it, since it differs in each process.
    mark: String,
    /// Written bytes that may end within a character or mark.
    rest: Vec<u8>,
}

/// A missing standard output: Rust's library would write to `/dev/null` and report success.
struct Closed;

impl Closed {
    /// The error of every write.
    fn error() -> io::Error {
        io::Error::other("cannot write to standard output: it is closed")
    }
}

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(Self::error())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output for bytes that are not text for a terminal.
pub fn stdout_bytes() -> io::Result<io::Stdout> {
    if stdout_was_closed() { Err(Closed::error()) } else { Ok(io::stdout()) }
}

/// Longest text that is held back while waiting for a line break, in bytes.
const LONG_LINE: usize = 1 << 16;
/// Indentation of a message's continuation lines, in columns.
const HANGING: usize = 9;
/// Longer than any mark or character, in bytes.
const TAIL: usize = 32;
/// Prefix of a mark: a noncharacter.
const MARK: &str = "\u{fdd0}";

impl<'a> Output<'a> {
    /// Standard output. Colours only on a terminal, and according to NO_COLOR, CLICOLOR and CLICOLOR_FORCE.
    pub fn stdout() -> Self {
        if stdout_was_closed() {
            return Self::plain(Closed);
        }
        let stdout = io::stdout();
        let colours = AutoStream::choice(&stdout) != ColorChoice::Never;
        let width = stdout.is_terminal().then(terminal_width);
        Self::new(BufWriter::new(stdout.lock()), width, colours)
    }

    /// Standard output, through a pager if it is a terminal and a pager is available.
    pub fn paged() -> Output<'static> {
        if stdout_was_closed() {
            return Output::plain(Closed);
        }
        let stdout = io::stdout();
        let colours = AutoStream::choice(&stdout) != ColorChoice::Never;
        match Pager::start() {
            Some(pager) => {
                let mut out = Output::new(pager, Some(terminal_width()), colours);
                out.is_paged = true;
                out
            }
            None => {
                let width = stdout.is_terminal().then(terminal_width);
                Output::new(BufWriter::new(stdout), width, colours)
            }
        }
    }

    /// Number of lines on the screen, if a person reads the output without a pager.
    pub fn height(&self) -> Option<usize> {
        let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        self.width.filter(|_| !self.is_paged).map(|_| height)
    }

    /// Standard output shared with other programs during a recording. No colours.
    pub fn shared_stdout() -> Output<'static> {
        if stdout_was_closed() {
            return Output::plain(Closed);
        }
        let stdout = io::stdout();
        let width = stdout.is_terminal().then(terminal_width);
        Output::new(BufWriter::with_capacity(1 << 16, stdout), width, false)
    }

    /// Standard error, for messages next to another program's output. No colours.
    pub fn stderr() -> Self {
        let stderr = io::stderr();
        let width = stderr.is_terminal().then(terminal_width);
        Self::new(BufWriter::new(stderr.lock()), width, false)
    }

    /// Text shown on a terminal later, `width` characters per line.
    pub fn lines(to: impl Write + 'a, width: usize, colours: bool) -> Self {
        Self::new(to, Some(width), colours)
    }

    /// Any other destination: no width, no colours.
    pub fn plain(to: impl Write + 'a) -> Self {
        Self::new(to, None, false)
    }

    fn new(to: impl Write + 'a, width: Option<usize>, colours: bool) -> Self {
        let number = RandomState::new().build_hasher().finish();
        let mark = format!("{MARK}{number:016x}");
        Self { to: Box::new(to), width, colours, is_paged: false, mark, rest: Vec::new() }
    }

    /// The text in a style, if colours are enabled; valid only for this output.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if !self.colours || style == Style::new() {
            return text.into();
        }
        let [begin, end] =
            [style.to_string(), format!("{style:#}")].map(|codes| codes.replace('\x1b', &self.mark));
        format!("{begin}{text}{end}")
    }

    /// Passes on the first `count` pending bytes.
    fn pass(&mut self, count: usize) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.rest[..count]);
        let is_unwanted = |one: char| !matches!(one, '\n' | '\t') && is_unsafe(one);
        let mut text =
            if text.contains(is_unwanted) { text.replace(is_unwanted, "\u{fffd}").into() } else { text };
        if let Some(width) = self.width
            && text.lines().any(|line| fold_remark(line, width).is_some())
        {
            let fold = |line: &str| {
                let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
                fold_remark(line, width).unwrap_or_else(|| line.to_owned()) + end
            };
            text = text.split_inclusive('\n').map(fold).collect::<String>().into();
        }
        if self.colours && text.contains(&self.mark) {
            text = text.replace(&self.mark, "\x1b").into();
        }
        self.to.write_all(text.as_bytes())?;
        self.rest.drain(..count);
        Ok(())
    }
}

/// Wraps a remark behind a `#` that is too long for its line. `None`: it fits, or it is a table's head, whose columns stay.
fn fold_remark(line: &str, width: usize) -> Option<String> {
    let text = line.strip_prefix("# ").filter(|_| padding::width(line) > width)?;
    let label = text.split_once(": ").filter(|(label, _)| !label.contains(' '));
    let said = label.map_or(text, |(_, said)| said.trim_start());
    if said.contains("  ") || text.contains(MARK) {
        return None;
    }
    let hanging = if label.is_some() { text.len() - said.len() } else { 2 };
    let lines = fold(text, width.saturating_sub(2), hanging);
    Some(lines.into_iter().map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n"))
}

/// Length of the longest prefix that ends neither within a character nor within a mark.
fn whole(bytes: &[u8]) -> usize {
    let mut end = bytes.len().saturating_sub(TAIL);
    if let Some(at) =
        bytes[end.saturating_sub(TAIL)..end].windows(MARK.len()).position(|three| three == MARK.as_bytes())
    {
        end = end.saturating_sub(TAIL) + at;
    }
    while end > 0 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    end
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.rest.len();
        self.rest.extend_from_slice(bytes);
        if let Some(at) = bytes.iter().rposition(|&byte| byte == b'\n') {
            self.pass(before + at + 1)?;
        } else if self.rest.len() > LONG_LINE {
            self.pass(whole(&self.rest))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass(self.rest.len())?;
        self.to.flush()
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // Callers that need to know the result have flushed.
        let _ = self.pass(self.rest.len());
    }
}

/// Prints a message on standard error, sanitised like [`Output`]: all messages with names and paths in them pass through here.
pub fn print_message(message: std::fmt::Arguments<'_>) {
    let message = message.to_string().replace(|one| one != '\n' && is_unsafe(one), "\u{fffd}");
    let message = format!("plumb: {message}");
    // A reader that is gone does not end the command.
    let print = |line: &str| drop(writeln!(io::stderr(), "{line}"));
    if !io::stderr().is_terminal() {
        return print(&message);
    }
    let width = terminal_width();
    message.lines().flat_map(|line| fold(line, width, HANGING)).for_each(|line| print(&line));
}

/// Prints a message on standard error, prefixed with `plumb: `.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::terminal::print_message(format_args!($($words)*))
    };
}
pub(crate) use say;

/// Replaces the terminal's last line with a status; an empty text removes it.
pub fn status(text: &str) {
    // A vanished terminal does not end the command.
    let _ = write!(io::stderr(), "\r\x1b[K{}", printable(text));
}

/// Moves to the start of a terminal line, wherever the cursor is: the spaces stay within an empty line, and wrap to the next if the line
/// has text.
pub fn begin_line() {
    let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    let _ = write!(io::stderr(), "{}\r\x1b[K", " ".repeat(width.saturating_sub(1)));
}

fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0).max(40))
}

/// Maps a command's result to an exit status: a closed reader, such as `head`, is not an error.
pub fn finish(result: Result<()>) -> Result<Exit> {
    match result {
        Err(error) if is_closed_pipe(&error) => Ok(Exit::Success),
        other => other.map(|()| Exit::Success),
    }
}

/// Whether the error is a closed pipe.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    fn written(colours: bool, write: impl Fn(&mut Output<'_>)) -> String {
        let mut bytes = Vec::new();
        write(&mut Output::lines(&mut bytes, 80, colours));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn nothing_but_styles_steers_the_terminal() {
        let name = "a\x1b[31mred\x1b]0;title\x07\u{202e}\u{9b}31m\r\u{fdd0}0000000000000000[31m";
        let red = AnsiColor::Red.on_default();
        let text = written(true, |out| {
            let styled = out.styled(red, name);
            writeln!(out, "{styled}\tend").unwrap();
        });
        assert!(text.starts_with("\x1b[31ma\u{fffd}[31mred") && text.ends_with("\x1b[0m\tend\n"), "{text:?}");
        assert_eq!(text.matches('\x1b').count(), 2, "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{9b}', '\r', '\x07']), "{text:?}");
        let plain = written(false, |out| writeln!(out, "{}", out.styled(red, name)).unwrap());
        assert!(!plain.contains('\x1b'), "{plain:?}");
    }

    #[test]
    fn long_remarks_are_folded_and_heads_of_tables_are_not() {
        let long = "samples of cpu-clock at 999 Hz, 0.164 s, all of the target's CPU time, 0 lost";
        let head = format!("# {:>40}  {:>40}  Function", "Self", "Children");
        let text =
            written(false, |out| write!(out, "# Samples:  {long}\n{head}\n  {long} {long}\n").unwrap());
        let [first, second, rest @ ..] = &text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert_eq!(
            format!("{} {}", first, second.strip_prefix("#           ").unwrap()),
            format!("# Samples:  {long}")
        );
        assert!(first.chars().count() <= 80 && second.chars().count() <= 80, "{text}");
        assert_eq!(rest, [&*head, &*format!("  {long} {long}")], "{text}");
    }

    /// However the bytes are split.
    #[test]
    fn long_lines_and_parts_of_characters_are_whole_in_the_end() {
        let long = "ä中🎉x".repeat(30_000);
        for step in [1, 7, 70_000] {
            let text = written(true, |out| {
                let styled = out.styled(AnsiColor::Red.on_default(), "red");
                let all = format!("{long}{styled}{long}");
                all.as_bytes().chunks(step).for_each(|part| out.write_all(part).unwrap());
            });
            assert!(text == format!("{long}\x1b[31mred\x1b[0m{long}"), "in steps of {step}");
        }
        for length in LONG_LINE - 70..LONG_LINE + 70 {
            let before = "x".repeat(length);
            let text = written(true, |out| {
                let styled = out.styled(AnsiColor::Red.on_default(), &"y".repeat(100));
                out.write_all(format!("{before}{styled}").as_bytes()).unwrap();
                out.write_all(b"z").unwrap();
            });
            assert!(text == format!("{before}\x1b[31m{}\x1b[0mz", "y".repeat(100)), "{length}");
        }
    }
}
