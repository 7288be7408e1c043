//! State of the display: changed by keys (`keys`), drawn by `draw`.
//!
//! Elsewhere: samples, the terminal.

use std::collections::HashMap;
use std::time::Duration;

use plumb_analyze::{BadSelection, Filter, Pattern, Rates, Selection, SelectionWord, ThreadPattern};
use plumb_profile::{Process, Profile};

use super::flame;
use super::table::{ViewLine, ViewTable};

/// The views, by the kind of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tab {
    /// Executables
    Executables,
    /// Processes
    Processes,
    /// Threads
    Threads,
    /// Functions, with total and self time
    Symbols,
    /// Call tree from the roots (top-down)
    Stacks,
    /// Call tree from the innermost functions (bottom-up)
    Callers,
    /// Flame graph
    Flame,
}

impl Tab {
    /// All views, in the order of the tab bar.
    pub const ALL: [Tab; 7] =
        [Tab::Executables, Tab::Processes, Tab::Threads, Tab::Symbols, Tab::Stacks, Tab::Callers, Tab::Flame];

    /// The view's key and name.
    pub fn key(self) -> (char, &'static str) {
        match self {
            Tab::Executables => ('e', "executables"),
            Tab::Processes => ('p', "processes"),
            Tab::Threads => ('T', "threads"),
            Tab::Symbols => ('s', "symbols"),
            Tab::Stacks => ('t', "stacks"),
            Tab::Callers => ('c', "callers"),
            Tab::Flame => ('f', "flame"),
        }
    }

    /// Titles of the name and place columns.
    pub fn titles(self) -> (&'static str, &'static str) {
        match self {
            Tab::Executables => ("Executable", "Path"),
            Tab::Processes => ("    Pid Executable", "Path"),
            Tab::Threads => ("    Tid Thread", "Executable"),
            Tab::Symbols => ("Symbol", "Shared Object"),
            Tab::Stacks | Tab::Flame => ("Call, and what it calls", "Shared Object"),
            Tab::Callers => ("Function, and who calls it", "Shared Object"),
        }
    }

    /// Whether the lines form a tree.
    pub fn is_tree(self) -> bool {
        matches!(self, Tab::Stacks | Tab::Callers | Tab::Flame)
    }
}

/// The part of the recording that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeRange {
    /// The last stretch of this length.
    Last(Duration),
    /// Everything since the start or the last reset.
    All,
}

impl TimeRange {
    /// Length in nanoseconds; `None` for [`All`](Self::All).
    pub fn nanoseconds(self) -> Option<u64> {
        match self {
            TimeRange::Last(length) => Some(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
            TimeRange::All => None,
        }
    }
}

/// A part of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Narrow {
    /// Processes that run this executable.
    Executable(String),
    /// The process with this id.
    Process(u32),
    /// The thread with this id.
    Thread(u32),
    /// Stacks with this function.
    Symbol(String),
    /// A typed filter, in the form of a command's option.
    Typed(SelectionWord, String),
}

impl Narrow {
    /// The text for the tab bar.
    pub fn text(&self) -> String {
        match self {
            Narrow::Executable(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
            Narrow::Process(Process::ENDED) => "processes that ended".into(),
            Narrow::Process(pid) => format!("process {pid}"),
            Narrow::Thread(tid) => format!("thread {tid}"),
            Narrow::Symbol(name) => name.clone(),
            Narrow::Typed(word, text) => format!("{} {text}", word.name()).trim_end().to_owned(),
        }
    }
}

/// Parses a typed filter: a word and its text.
pub(super) fn typed_filter(text: &str) -> Result<Narrow, String> {
    let text = text.trim().trim_start_matches('-');
    let (word, text) = text.split_once([' ', '=']).unwrap_or((text, ""));
    let known = SelectionWord::from_name(word).filter(|known| known.is_flag() || !text.trim().is_empty());
    known.map(|known| Narrow::Typed(known, text.trim().to_owned())).ok_or_else(|| {
        let words: Vec<&str> = SelectionWord::ALL.map(SelectionWord::name).to_vec();
        format!("filters: {}; for example: time 1-2", words.join(" "))
    })
}

/// The text being typed, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typing {
    /// No text is being typed; keys are commands.
    Nothing,
    /// The text to search lines for.
    Text,
    /// A filter.
    Filter(String),
}

/// State of the display.
#[derive(Clone, Debug)]
pub struct State {
    /// Whether the recording is live: then a window of its time is shown, which can be paused, saved and reset.
    pub is_live: bool,
    /// The filter given on the command line.
    pub base: Filter,
    /// Current view.
    pub tab: Tab,
    /// Whether functions are ordered by self time.
    pub by_self: bool,
    /// The part of the recording that is shown.
    pub window: TimeRange,
    /// The parts that the user has narrowed down to, each with the view left for it.
    pub narrowed: Vec<(Narrow, Tab)>,
    /// Text that the lines must contain.
    pub wanted: String,
    /// The text being typed.
    pub typing: Typing,
    /// The frozen window, while paused.
    pub paused: Option<Rates>,
    /// Whether the help is shown.
    pub help: bool,
    /// The line under the cursor: its index among the visible lines.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
    /// Lines on the screen at the last drawing.
    pub page: usize,
    /// Columns of the screen at the last drawing.
    pub width: usize,
    /// Position in the flame graph.
    pub flame: flame::Position,
    /// Branches that the user has opened or closed.
    pub opened: HashMap<String, bool>,
    /// Message for the user, shown until the next key.
    pub message: Option<String>,
    window_first: TimeRange,
}

impl State {
    /// The initial state for a finished recording, restricted to the samples that a filter keeps.
    pub fn of_file(tab: Tab, base: Filter) -> Self {
        Self { is_live: false, base, ..Self::new(tab, TimeRange::All) }
    }

    /// The initial state for a live recording.
    pub fn new(tab: Tab, window: TimeRange) -> Self {
        Self {
            is_live: true,
            base: Filter::default(),
            tab,
            by_self: true,
            window,
            narrowed: Vec::new(),
            wanted: String::new(),
            typing: Typing::Nothing,
            paused: None,
            help: false,
            cursor: 0,
            top: 0,
            page: 1,
            width: 80,
            flame: flame::Position::default(),
            opened: HashMap::new(),
            message: None,
            window_first: if window == TimeRange::All {
                TimeRange::Last(Duration::from_secs(10))
            } else {
                window
            },
        }
    }

    /// The filter for the samples to show.
    ///
    /// # Errors
    /// A typed filter is invalid.
    pub fn filter(&self, profile: &Profile) -> Result<Filter, BadSelection> {
        let mut filter = self.base.clone();
        for (narrow, _) in &self.narrowed {
            match narrow {
                Narrow::Typed(word, text) => {
                    let mut selection = Selection::default();
                    selection.add(*word, text.as_str());
                    filter = selection.narrowed(filter, profile)?;
                }
                Narrow::Thread(tid) => filter.threads = vec![ThreadPattern::Tid(*tid)],
                Narrow::Executable(path) => filter.exes.push(Pattern::Exact(path.clone())),
                Narrow::Process(pid) => filter.pids.push(*pid),
                // All of several functions must be in the stack, which `focus` can't express: the innermost one is used.
                Narrow::Symbol(name) => filter.focus = vec![Pattern::Exact(name.clone())],
            }
        }
        Ok(filter)
    }

    /// Whether lines have a total share, callees included.
    pub fn has_total(&self) -> bool {
        matches!(self.tab, Tab::Symbols | Tab::Stacks | Tab::Flame)
    }

    /// Title of the share column. For a caller, the share is the part of the function's weight that came through that caller.
    pub fn share_title(&self) -> &'static str {
        if self.tab == Tab::Callers { "Share" } else { "Self" }
    }

    /// Switches to the next window: the configured one, a minute, all.
    pub fn turn_window(&mut self) {
        let minute = TimeRange::Last(Duration::from_secs(60));
        self.window = match self.window {
            TimeRange::All => self.window_first,
            window if window == minute || self.window_first == minute => TimeRange::All,
            _ => minute,
        };
    }

    /// Switches to another view.
    pub fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.cursor = 0;
        self.top = 0;
    }

    /// Indices of the lines to show.
    pub fn visible(&self, table: &ViewTable) -> Vec<usize> {
        let wanted = self.wanted.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let mut shown = vec![wanted.is_empty(); table.lines.len()];
        if !wanted.is_empty() {
            // Children come after their parent.
            for (index, line) in table.lines.iter().enumerate().rev() {
                shown[index] |= has(&line.name) || has(&line.place);
                if let (true, Some(parent)) = (shown[index], line.parent) {
                    shown[parent] = true;
                }
            }
            return (0..shown.len()).filter(|&index| shown[index]).collect();
        }
        for (index, line) in table.lines.iter().enumerate() {
            if let Some(parent) = line.parent {
                shown[index] = shown[parent] && self.is_open(table, parent);
            }
        }
        (0..shown.len()).filter(|&index| shown[index]).collect()
    }

    /// The line under the cursor.
    pub fn current<'t>(&self, table: &'t ViewTable) -> Option<&'t ViewLine> {
        let index = match self.tab {
            Tab::Flame => flame::line_at(table, &self.flame, self.width),
            _ => self.visible(table).get(self.cursor).copied(),
        };
        index.and_then(|index| table.lines.get(index))
    }

    /// Whether the children of a line are shown.
    pub fn is_open(&self, table: &ViewTable, index: usize) -> bool {
        let Some(line) = table.lines.get(index) else { return false };
        let by_itself = line.parent.is_none() || line.children == 1;
        !self.wanted.is_empty() || self.opened.get(&line.id).copied().unwrap_or(by_itself)
    }
}
