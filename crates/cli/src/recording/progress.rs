//! A recording's messages on the terminal, and a line that shows its progress. The line is omitted if standard error is not a terminal,
//! and while a command uses the terminal: two programs writing to one line make it unreadable.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use plumb_analyze::part_of;
use plumb_ingest::Statistics;
use plumb_record::{Notices, Progress, RecordRequest};
use plumb_target::{Notice, Prints, Target};

use super::notice;
use crate::render::label;
use crate::terminal::{begin_line, say, status};

/// Time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(200);

/// The terminal of a recording.
pub struct ProgressLine {
    enabled: bool,
    /// Whether the recorded command also writes to the terminal.
    shares: bool,
    shown: Option<Instant>,
}

impl Notices for ProgressLine {
    fn message(&mut self, text: &str) {
        self.clear();
        say!("{text}");
    }

    fn of_target(&mut self, target: &Target, notice: Notice) {
        self.clear();
        notice::say_of(target, notice);
    }

    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::UntilSignal { waits } if self.enabled => {
                let what = if waits { "waiting for it to start" } else { "recording" };
                say!("{what}; Ctrl-C ends it");
            }
            Progress::UntilSignal { .. } => {}
            Progress::Sampling { elapsed, statistics } => self.show(elapsed, statistics),
            Progress::Sampled => {
                self.clear();
                // The command's last line may lack a line break.
                if std::mem::take(&mut self.shares) && self.enabled {
                    begin_line();
                }
            }
            Progress::Names(found) => self.names(found),
            Progress::Named => self.clear(),
        }
    }
}

impl ProgressLine {
    /// Messages without a line.
    pub fn quiet() -> Self {
        Self { enabled: false, shares: false, shown: None }
    }

    /// Creates the line, unless it would not be seen.
    pub fn new(request: &RecordRequest) -> Self {
        let is_command = matches!(request.target, Target::Command(_));
        let shares = is_command && !matches!(request.sampling.prints, Prints::Nowhere);
        Self { enabled: stderr().is_terminal(), shares, shown: None }
    }

    /// Shows the state of the recording.
    fn show(&mut self, elapsed: Duration, statistics: &Statistics) {
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
    fn names(&mut self, progress: &plumb_symbolize::Progress) {
        if !self.due() {
            return;
        }
        self.line(&match progress {
            plumb_symbolize::Progress::File { path, done, total } => {
                format!("plumb: symbols: file {done} of {total}: {path}")
            }
            plumb_symbolize::Progress::Download { url, bytes } => {
                format!("plumb: {url}: {} KiB", bytes >> 10)
            }
        });
    }

    /// Removes the line.
    fn clear(&mut self) {
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
