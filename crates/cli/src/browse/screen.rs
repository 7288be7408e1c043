//! The terminal: given back as it was, however this ends.

use std::io::stdout;

use anstream::{AutoStream, ColorChoice};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The terminal while it is drawn on. What ratatui sets up gives it back in a panic.
pub struct Screen(DefaultTerminal);

impl Screen {
    /// Takes it.
    pub fn open() -> std::io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    /// Draws on it.
    pub fn draw(&mut self, picture: impl FnOnce(&mut ratatui::Frame<'_>)) -> std::io::Result<()> {
        self.0.draw(picture).map(|_| ())
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

/// Whether the terminal has been taken away. Who looks for keys in it then does so for ever.
pub fn is_gone() -> bool {
    let stdin = std::io::stdin();
    let mut files = [PollFd::new(&stdin, PollFlags::IN)];
    let polled = poll(&mut files, Some(&Timespec::default()));
    polled.is_ok() && files[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
