//! The progress line on the terminal during a recording. Omitted if standard error is not a terminal, and while a command uses the terminal:
//! two programs writing to one line make it unreadable.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use plumb_ingest::Statistics;
use plumb_symbolize::Progress;
use plumb_target::{Prints, Target};

use super::RecordRequest;
use crate::render::label;
use crate::render::precision::part_of;
use crate::terminal::{begin_line, say, status};

/// Time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(200);

/// The progress line.
pub(super) struct ProgressLine {
    enabled: bool,
    /// Whether the recorded command also writes to the terminal.
    shares: bool,
    shown: Option<Instant>,
}

impl ProgressLine {
    /// Creates the line, unless it would not be seen or is not wanted.
    pub fn new(request: &RecordRequest) -> Self {
        let is_command = matches!(request.target, Target::Command(_));
        let shares = is_command && !matches!(request.sampling.prints, Prints::Nowhere);
        Self { enabled: !request.is_quiet && stderr().is_terminal(), shares, shown: None }
    }

    /// The command has ended, and the terminal is plumb's own again. The command's last line may lack a line break.
    pub fn has_terminal(&mut self) {
        if std::mem::take(&mut self.shares) && self.enabled {
            begin_line();
        }
    }

    /// Prints a sentence that stays on the screen.
    pub fn note(&self, text: &str) {
        if self.enabled {
            say!("{text}");
        }
    }

    /// Shows the state of the recording.
    pub fn show(&mut self, elapsed: Duration, statistics: &Statistics) {
        if self.shares || !self.due() {
            return;
        }
        let Statistics { samples, complete, .. } = statistics;
        let lost = statistics.lost_samples + statistics.lost_records;
        let share = part_of(*complete, *samples);
        self.line(&format!(
            "plumb: {:.1} s  {}  {lost} lost  {share} complete stacks",
            elapsed.as_secs_f64(),
            label::samples(*samples)
        ));
    }

    /// Shows the progress of looking up names.
    pub fn progress(&mut self, progress: &Progress) {
        if !self.due() {
            return;
        }
        self.line(&match progress {
            Progress::File { path, done, total } => format!("plumb: symbols: file {done} of {total}: {path}"),
            Progress::Download { url, bytes } => format!("plumb: {url}: {} KiB", bytes >> 10),
        });
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.shown.take().is_some() {
            status("");
        }
    }

    fn due(&self) -> bool {
        self.enabled && self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL)
    }

    fn line(&mut self, text: &str) {
        self.shown = Some(Instant::now());
        // A line that wraps can't be removed: 79 characters fit almost everywhere.
        let text: String = text.chars().take(79).collect();
        status(&text);
    }
}
