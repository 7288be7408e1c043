//! The terminal: given back as it was, however this ends.

use std::fs::File;
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Interval at which a waiting screen checks that the terminal is still open.
const STEP: Duration = Duration::from_millis(500);

/// The terminal while it is drawn on. What ratatui sets up gives it back in a panic.
pub struct Screen {
    terminal: DefaultTerminal,
    /// The terminal's input, if standard input is not a terminal.
    keys: Option<File>,
}

impl Screen {
    /// Takes it.
    pub fn open() -> std::io::Result<Self> {
        let keys = if stdin().is_terminal() { None } else { File::open("/dev/tty").ok() };
        ratatui::try_init().map(|terminal| Self { terminal, keys })
    }

    /// Draws on it.
    pub fn draw(&mut self, picture: impl FnOnce(&mut ratatui::Frame<'_>)) -> std::io::Result<()> {
        self.terminal.draw(picture).map(|_| ())
    }

    /// Waits for the next event. Returns `None` if the terminal is closed.
    ///
    /// Never blocks in crossterm, which spins if the terminal is closed while it waits for input.
    pub fn wait(&self) -> std::io::Result<Option<Event>> {
        loop {
            if self.is_gone() {
                return Ok(None);
            }
            if event::poll(Duration::ZERO)? {
                return event::read().map(Some);
            }
            self.poll(STEP);
        }
    }

    /// Returns whether the terminal is closed. Crossterm must not be asked for events then: it spins.
    pub fn is_gone(&self) -> bool {
        self.poll(Duration::ZERO).intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Polls the terminal for input until the timeout, or until a signal such as SIGWINCH.
    fn poll(&self, timeout: Duration) -> PollFlags {
        let stdin = stdin();
        let keys = self.keys.as_ref().map_or_else(|| stdin.as_fd(), File::as_fd);
        let mut files = [PollFd::new(&keys, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        match poll(&mut files, Some(&timeout)) {
            Ok(_) => files[0].revents(),
            Err(_) => PollFlags::empty(),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Whether colours are wanted.
pub fn has_colours() -> bool {
    AutoStream::choice(&stdout()) != ColorChoice::Never
}
