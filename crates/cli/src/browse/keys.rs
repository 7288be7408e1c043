//! Maps keys to actions.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::flame;
use super::state::{Narrow, State, Tab, Typing, typed_filter};
use super::table::ViewTable;

/// The work that a key asks for, besides drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Draw,
    /// Recompute the lines.
    Count,
    /// Pause or resume the display.
    Pause,
    /// Write the recording.
    Save,
    /// Discard the samples so far and start over.
    Reset,
    /// Show the samples of the next event.
    NextEvent,
    /// Show the instructions of the function under the cursor.
    Annotate,
    /// Show what changed from another recording.
    Diff,
    /// Leave.
    Quit,
}

/// Keys, for the help: key and meaning.
pub const HELP: [(&str, &str); 10] = [
    ("e p T s", "executables, processes, threads, symbols"),
    ("t c f", "stacks, callers, flame graph"),
    ("↑ ↓ PgUp PgDn", "move; also j k, Home, End"),
    ("→ ←", "open and close a branch; move in the flame graph"),
    ("E C", "open and close all branches"),
    ("Enter", "narrow down to what the cursor is on; zoom into it"),
    ("Esc", "drop the filter, or go back"),
    ("/", "show only lines with the text you type"),
    ("o", "order by children, or by self"),
    ("?", "this help; q and Ctrl-C leave"),
];

/// Keys for a live recording.
pub const LIVE_HELP: [(&str, &str); 5] = [
    ("d", "look back: a while, a minute, all"),
    ("Space", "pause; sampling goes on"),
    ("w", "write the recording to a file"),
    ("r", "reset: begin anew"),
    ("", "Shares are of all time sampled."),
];

/// Keys for a finished recording.
pub const FILE_HELP: [(&str, &str); 5] = [
    (":", "filter, as options have it: time 1-2, comm NAME, focus REGEX"),
    ("a", "annotate: the function's instructions and lines"),
    ("d", "diff: what changed from the recording of --base"),
    ("n", "the next event, if there are several"),
    ("", "Shares are those of plumb report."),
];

impl State {
    /// Handles a key. `table` is the one shown.
    pub fn key(&mut self, key: KeyEvent, table: &ViewTable) -> Action {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Action::Quit } else { Action::Draw };
        }
        match self.typing {
            Typing::Nothing => {}
            Typing::Text => return self.type_key(key.code),
            Typing::Filter(_) => return self.filter_key(key.code),
        }
        if self.help {
            self.help = false;
            return if key.code == KeyCode::Char('q') { Action::Quit } else { Action::Draw };
        }
        if self.tab == Tab::Flame && flame::key(key.code, table, &mut self.flame, self.width) {
            return Action::Draw;
        }
        let visible = self.visible(table);
        let last = visible.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('/') => (self.typing, self.cursor) = (Typing::Text, 0),
            KeyCode::Char('E') => self.open_all(table, true),
            KeyCode::Char('C') => self.open_all(table, false),
            KeyCode::Char(':') if !self.is_live => self.typing = Typing::Filter(String::new()),
            KeyCode::Char('a') if !self.is_live => return Action::Annotate,
            KeyCode::Char('d') if !self.is_live => return Action::Diff,
            KeyCode::Char('n') if !self.is_live => return Action::NextEvent,
            KeyCode::Char(' ') if self.is_live => return Action::Pause,
            KeyCode::Char('w') if self.is_live => return Action::Save,
            KeyCode::Char('r') if self.is_live => return Action::Reset,
            KeyCode::Char('d') if self.is_live => {
                self.turn_window();
                return Action::Count;
            }
            KeyCode::Char('o') => {
                self.by_self = !self.by_self;
                return Action::Count;
            }
            KeyCode::Char(letter) if Tab::ALL.iter().any(|tab| tab.key().0 == letter) => {
                let tab = Tab::ALL.into_iter().find(|tab| tab.key().0 == letter).unwrap_or(self.tab);
                self.show(tab);
                return Action::Count;
            }
            KeyCode::Up | KeyCode::Char('k') => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.cursor = (self.cursor + 1).min(last),
            KeyCode::PageUp => self.cursor = self.cursor.saturating_sub(self.page),
            KeyCode::PageDown => self.cursor = (self.cursor + self.page).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.cursor = 0,
            KeyCode::End | KeyCode::Char('G') => self.cursor = last,
            KeyCode::Right => self.unfold(table, &visible),
            KeyCode::Left => self.fold(table, &visible),
            KeyCode::Enter => return self.enter(table, &visible),
            KeyCode::Esc => return self.back(),
            _ => {}
        }
        Action::Draw
    }

    fn type_key(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Enter => self.typing = Typing::Nothing,
            KeyCode::Esc => {
                self.typing = Typing::Nothing;
                self.wanted.clear();
            }
            KeyCode::Backspace => {
                self.wanted.pop();
            }
            KeyCode::Char(letter) => self.wanted.push(letter),
            _ => {}
        }
        (self.cursor, self.top) = (0, 0);
        Action::Draw
    }

    /// Edits a filter; Enter adds it to the existing ones.
    fn filter_key(&mut self, code: KeyCode) -> Action {
        let Typing::Filter(text) = &mut self.typing else { return Action::Draw };
        match code {
            KeyCode::Backspace => _ = text.pop(),
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Esc => self.typing = Typing::Nothing,
            KeyCode::Enter => {
                let text = std::mem::take(text);
                self.typing = Typing::Nothing;
                match typed_filter(&text) {
                    _ if text.trim().is_empty() => {}
                    Ok(narrow) => {
                        self.narrowed.push((narrow, self.tab));
                        (self.cursor, self.top) = (0, 0);
                        return Action::Count;
                    }
                    Err(why) => self.message = Some(why),
                }
            }
            _ => {}
        }
        Action::Draw
    }

    fn open_all(&mut self, table: &ViewTable, open: bool) {
        let branches = table.lines.iter().filter(|line| line.children > 0);
        self.opened.extend(branches.map(|line| (line.id.clone(), open)));
        (self.cursor, self.top) = (0, 0);
    }

    fn unfold(&mut self, table: &ViewTable, visible: &[usize]) {
        let Some(&index) = visible.get(self.cursor) else { return };
        if table.lines[index].children == 0 {
            return;
        }
        if self.is_open(table, index) {
            self.cursor = (self.cursor + 1).min(visible.len().saturating_sub(1));
        } else {
            self.opened.insert(table.lines[index].id.clone(), true);
        }
    }

    /// Closes a branch. On a closed branch or a leaf, moves to the parent.
    fn fold(&mut self, table: &ViewTable, visible: &[usize]) {
        let Some(&index) = visible.get(self.cursor) else { return };
        let line = &table.lines[index];
        if line.children > 0 && self.is_open(table, index) && self.wanted.is_empty() {
            self.opened.insert(line.id.clone(), false);
        } else if let Some(above) =
            line.parent.and_then(|parent| visible.iter().position(|&shown| shown == parent))
        {
            self.cursor = above;
        }
    }

    /// Narrows down: from a program or process to its functions, from a function to the stacks that contain it.
    fn enter(&mut self, table: &ViewTable, visible: &[usize]) -> Action {
        let narrow = visible.get(self.cursor).and_then(|&index| table.lines[index].narrow.clone());
        let Some(narrow) = narrow else {
            self.message = Some("nothing to narrow down to here".into());
            return Action::Draw;
        };
        if self.narrowed.iter().any(|(known, _)| *known == narrow) {
            return Action::Draw;
        }
        let to = if matches!(narrow, Narrow::Symbol(_)) { Tab::Stacks } else { Tab::Symbols };
        self.narrowed.push((narrow, self.tab));
        self.wanted.clear();
        self.show(to);
        Action::Count
    }

    fn back(&mut self) -> Action {
        if !self.wanted.is_empty() {
            self.wanted.clear();
            self.cursor = 0;
            return Action::Draw;
        }
        let Some((_, tab)) = self.narrowed.pop() else { return Action::Draw };
        self.show(tab);
        Action::Count
    }
}
