//! What is shown and how: changed by keys (`keys`), drawn by `draw`.
//!
//! Not here: samples, the terminal.

use std::collections::HashMap;
use std::time::Duration;

use plumb_analyze::{BadSelection, Filter, Pattern, Rates, Selection, SelectionWord, ThreadPattern};
use plumb_profile::{Process, Profile};

use super::flame;
use super::table::{Line, Table};

/// What lines are about.
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
    /// All, in the order in which they are shown.
    pub const ALL: [Tab; 7] =
        [Tab::Executables, Tab::Processes, Tab::Threads, Tab::Symbols, Tab::Stacks, Tab::Callers, Tab::Flame];

    /// The key that shows it, and its name.
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

    /// What stands above names and places.
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

    /// Whether lines are under others.
    pub fn is_tree(self) -> bool {
        matches!(self, Tab::Stacks | Tab::Callers | Tab::Flame)
    }
}

/// How far is looked back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// So long.
    Last(Duration),
    /// To the start, or to the last reset.
    All,
}

impl Window {
    /// Its length, if it has one.
    pub fn nanoseconds(self) -> Option<u64> {
        match self {
            Window::Last(length) => Some(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
            Window::All => None,
        }
    }
}

/// A part of what was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Narrow {
    /// Processes that run this.
    Executable(String),
    /// The process with this id.
    Process(u32),
    /// The thread with this id.
    Thread(u32),
    /// Stacks with this function.
    Symbol(String),
    /// A filter that was typed, as an option of commands has it.
    Typed(SelectionWord, String),
}

impl Narrow {
    /// For people.
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

/// The filter that was typed: a word and its text.
pub(super) fn typed_filter(text: &str) -> Result<Narrow, String> {
    let text = text.trim().trim_start_matches('-');
    let (word, text) = text.split_once([' ', '=']).unwrap_or((text, ""));
    let known = SelectionWord::from_name(word).filter(|known| known.is_flag() || !text.trim().is_empty());
    known.map(|known| Narrow::Typed(known, text.trim().to_owned())).ok_or_else(|| {
        let words: Vec<&str> = SelectionWord::ALL.map(SelectionWord::name).to_vec();
        format!("filters: {}; for example: time 1-2", words.join(" "))
    })
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typing {
    /// Nothing: keys do what the help says.
    Nothing,
    /// The text that lines have to have.
    Text,
    /// A filter.
    Filter(String),
}

/// What is shown and how.
#[derive(Clone, Debug)]
pub struct State {
    /// Whether samples come as it is looked at: then a part of their time is shown, which can be stopped, kept and left.
    pub is_live: bool,
    /// The samples that there are to be looked at.
    pub base: Filter,
    /// Which lines.
    pub tab: Tab,
    /// Whether functions are ordered by what was spent in them alone.
    pub by_self: bool,
    /// How far is looked back.
    pub window: Window,
    /// The parts that were entered, and from where.
    pub narrowed: Vec<(Narrow, Tab)>,
    /// Text that lines have to have.
    pub wanted: String,
    /// What is being typed.
    pub typing: Typing,
    /// The window that stands still, while it does.
    pub paused: Option<Rates>,
    /// Whether the keys are explained.
    pub help: bool,
    /// The line that the cursor is on: its number among those shown.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
    /// Lines on the screen at the last drawing.
    pub page: usize,
    /// Columns of the screen at the last drawing.
    pub width: usize,
    /// Where the user is in the flame graph.
    pub flame: flame::Position,
    /// Branches that the user has opened or closed.
    pub opened: HashMap<String, bool>,
    /// What the user is to be told, until the next key.
    pub message: Option<String>,
    window_first: Window,
}

impl State {
    /// The first picture of a recording that is done, of the samples that a filter keeps.
    pub fn of_file(tab: Tab, base: Filter) -> Self {
        Self { is_live: false, base, ..Self::new(tab, Window::All) }
    }

    /// The first picture of one that goes on.
    pub fn new(tab: Tab, window: Window) -> Self {
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
            window_first: if window == Window::All { Window::Last(Duration::from_secs(10)) } else { window },
        }
    }

    /// The samples that are to be looked at.
    ///
    /// # Errors
    /// What was typed is no filter.
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
                // Of several each has to be there, which is what focus can't say: the innermost one counts.
                Narrow::Symbol(name) => filter.focus = vec![Pattern::Exact(name.clone())],
            }
        }
        Ok(filter)
    }

    /// Whether lines have a share with what they called.
    pub fn has_total(&self) -> bool {
        matches!(self.tab, Tab::Symbols | Tab::Stacks | Tab::Flame)
    }

    /// What stands above the share that all lines have. Of a caller it is what it brought to the function above it.
    pub fn share_title(&self) -> &'static str {
        if self.tab == Tab::Callers { "Share" } else { "Self" }
    }

    /// The next window: the one that was asked for, a minute, all.
    pub fn turn_window(&mut self) {
        let minute = Window::Last(Duration::from_secs(60));
        self.window = match self.window {
            Window::All => self.window_first,
            window if window == minute || self.window_first == minute => Window::All,
            _ => minute,
        };
    }

    /// Shows other lines.
    pub fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.cursor = 0;
        self.top = 0;
    }

    /// The lines to show, by their numbers.
    pub fn visible(&self, table: &Table) -> Vec<usize> {
        let wanted = self.wanted.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let mut shown = vec![wanted.is_empty(); table.lines.len()];
        if !wanted.is_empty() {
            // What is under a line comes after it.
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

    /// The line that the cursor is on.
    pub fn current<'t>(&self, table: &'t Table) -> Option<&'t Line> {
        let index = match self.tab {
            Tab::Flame => flame::line_at(table, &self.flame, self.width),
            _ => self.visible(table).get(self.cursor).copied(),
        };
        index.and_then(|index| table.lines.get(index))
    }

    /// Whether what is under a line is shown.
    pub fn is_open(&self, table: &Table, index: usize) -> bool {
        let Some(line) = table.lines.get(index) else { return false };
        let by_itself = line.parent.is_none() || line.children == 1;
        !self.wanted.is_empty() || self.opened.get(&line.id).copied().unwrap_or(by_itself)
    }
}
