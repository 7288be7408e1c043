//! The terminal: given back as it was, however this ends.

use std::fs::File;
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest time between two looks whether there is still a terminal.
const STEP: Duration = Duration::from_millis(500);

/// The terminal while it is drawn on. What ratatui sets up gives it back in a panic.
pub struct Screen {
    terminal: DefaultTerminal,
    /// Where keys come from, if not by standard input.
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

    /// What comes next; `None`: the terminal has been taken away.
    ///
    /// Crossterm is asked only once there is something: where the terminal goes away as it waits, it reads its end for ever.
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

    /// Whether the terminal has been taken away. Who looks for keys in it then does so for ever.
    pub fn is_gone(&self) -> bool {
        self.poll(Duration::ZERO).intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// What there is where keys come from, within some time. A signal, such as that of a new size, ends it early.
    fn poll(&self, patience: Duration) -> PollFlags {
        let stdin = stdin();
        let keys = self.keys.as_ref().map_or_else(|| stdin.as_fd(), File::as_fd);
        let mut files = [PollFd::new(&keys, PollFlags::IN)];
        let patience = Timespec::try_from(patience).unwrap_or_default();
        match poll(&mut files, Some(&patience)) {
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
