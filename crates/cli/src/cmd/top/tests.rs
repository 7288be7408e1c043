//! Effects of keys, drawn on a terminal in memory.

use std::time::Duration;

use plumb_analyze::Rates;
use plumb_record::WindowSum;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use plumb_fixtures::Made;

use super::facts::facts;
use crate::browse::draw::{self, Picture};
use crate::browse::keys::Action;
use crate::browse::state::{State, Tab, TimeRange};
use crate::browse::table::ViewTable;

/// Samples of a program with two threads, and of another program.
fn made() -> Made {
    let mut made = Made::new();
    made.sample("app/1", "main@app;parse@app;read_word@libio.so", 50);
    made.sample("app/1", "main@app;parse@app", 20);
    made.sample("app/1", "main@app;sort@app;0x1234@libc.so.6", 20);
    made.sample("other/2", "main@other", 10);
    made
}

struct Top {
    made: Made,
    state: State,
    size: (u16, u16),
    warning: Option<&'static str>,
}

impl Top {
    fn new(tab: Tab) -> Self {
        let state = State::new(tab, TimeRange::Last(Duration::from_secs(10)));
        Self { made: made(), state, size: (80, 24), warning: None }
    }

    fn table(&self) -> ViewTable {
        ViewTable::new(&self.made.profile, &self.state)
    }

    fn press(&mut self, code: KeyCode) -> Action {
        let table = self.table();
        self.state.key(KeyEvent::new(code, KeyModifiers::NONE), &table)
    }

    fn text(&mut self, text: &str) {
        text.chars().for_each(|letter| {
            self.press(KeyCode::Char(letter));
        });
    }

    /// The text of the screen, line by line.
    fn screen(&mut self) -> Vec<String> {
        let (width, height) = self.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let table = self.table();
        let rates = Rates { to_ns: 4_000_000_000, samples: 4, own_cpu_ns: 40_000_000, ..Rates::default() };
        let facts = facts(&WindowSum { rates, ..WindowSum::default() }, Duration::from_secs(1));
        let (title, warning) = ("plumb top", self.warning);
        let picture = Picture { title, facts: &facts, warning, table: &table, colours: false };
        terminal.draw(|frame| draw::draw(frame, &mut self.state, &picture)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    /// The lines of the screen that show a share.
    fn rows(&mut self) -> Vec<String> {
        self.screen().into_iter().filter(|line| line.contains('%') && !line.contains("plumb")).collect()
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn symbols_have_the_shares_of_a_report_and_both_orders() {
    let mut top = Top::new(Tab::Symbols);
    let rows = top.rows();
    assert_eq!(words(&rows[0]), ["50%", "50%", "[.]", "read_word", "libio.so"], "{rows:?}");
    // A function without a name is shown as a location in a file.
    assert!(rows.iter().any(|row| row.contains("libc.so.6+0x1234")), "{rows:?}");
    assert_eq!(top.press(KeyCode::Char('o')), Action::Count);
    let rows = top.rows();
    assert_eq!(words(&rows[0])[..4], ["90%", "0%", "[.]", "main"], "{rows:?}");
    let parse = rows.iter().find(|row| row.contains("parse")).unwrap();
    assert_eq!(words(parse), ["70%", "20%", "[.]", "parse", "app"]);
}

#[test]
fn low_coverage_is_explained_above_the_lines() {
    let mut top = Top::new(Tab::Symbols);
    let cause = "coverage is 46%: BPF programs of other tools (probe) ran for 5.40 s, and the kernel drops samples meanwhile that a BPF \
                 program is to take; --capture perf has them";
    let rows = top.rows();
    top.warning = Some(cause);
    let screen = top.screen().join("\n");
    let begin = screen.find("coverage is 46%").expect("it is shown");
    let end = screen.find("e:executables").or_else(|| screen.find("Self")).expect("the lines follow");
    let shown: Vec<&str> = screen[begin..end].split_whitespace().collect();
    assert!(shown.join(" ").starts_with(cause), "{screen}");
    assert_eq!(top.rows().len(), rows.len() + 1, "the sentence has a percentage, and no row is lost");
    top.size = (40, 15);
    let screen = top.screen();
    assert!(
        screen.iter().any(|line| line.contains("read_word")),
        "a small screen has room for rows: {screen:#?}"
    );
}

#[test]
fn executables_and_processes_lead_to_their_functions_and_back() {
    let mut top = Top::new(Tab::Executables);
    let rows = top.rows();
    assert_eq!(words(&rows[0])[..2], ["90%", "[app]"], "{rows:?}");
    assert_eq!(words(&rows[1])[..2], ["10%", "[other]"]);
    top.press(KeyCode::Down);
    assert_eq!(top.press(KeyCode::Enter), Action::Count);
    assert_eq!(top.state.tab, Tab::Symbols);
    let rows = top.rows();
    // Shares remain relative to all samples.
    assert_eq!(rows.len(), 1);
    assert_eq!(words(&rows[0])[..2], ["10%", "10%"]);
    assert!(top.screen().iter().any(|line| line.contains("> [other]")));
    top.press(KeyCode::Esc);
    assert_eq!((top.state.tab, top.rows().len()), (Tab::Executables, 2));
    top.press(KeyCode::Char('p'));
    assert_eq!(words(&top.rows()[0])[..3], ["90%", "1", "[app]"]);
    top.press(KeyCode::Enter);
    assert!(top.rows().iter().all(|row| !row.contains("10%")));
}

#[test]
fn branches_open_and_close() {
    let mut top = Top::new(Tab::Stacks);
    let names = |rows: Vec<String>| -> Vec<String> {
        rows.iter()
            .map(|row| row.trim_end().rsplit("▾ ").next().unwrap().rsplit("▸ ").next().unwrap().trim().into())
            .collect()
    };
    top.size = (44, 20);
    let before = names(top.rows());
    assert!(before.iter().any(|row| row.starts_with("main")), "{before:?}");
    assert!(!before.iter().any(|row| row.contains("parse")), "main has two callees: closed, {before:?}");
    top.press(KeyCode::Down);
    top.press(KeyCode::Right);
    let opened = names(top.rows());
    assert!(opened.iter().any(|row| row.contains("parse")) && opened.iter().any(|row| row.contains("sort")));
    top.press(KeyCode::Left);
    assert_eq!(names(top.rows()), before);
    // The search keeps the parents of the lines that match.
    top.text("/READ_w");
    let found = names(top.rows());
    assert!(
        found.iter().any(|row| row.contains("read_word")) && found.iter().any(|row| row.starts_with("main"))
    );
    assert!(!found.iter().any(|row| row.contains("sort")), "{found:?}");
}

#[test]
fn a_filter_is_typed_kept_and_dropped() {
    let mut top = Top::new(Tab::Symbols);
    let all = top.rows().len();
    top.text("/parse");
    assert_eq!(top.rows().len(), 1);
    assert!(top.screen().last().unwrap().contains("/parse"));
    top.press(KeyCode::Backspace);
    top.press(KeyCode::Char('q'));
    assert_eq!(top.state.wanted, "parsq", "a letter is a letter while typing");
    assert!(top.screen().iter().any(|line| line.contains("no line has this text")));
    top.press(KeyCode::Backspace);
    top.press(KeyCode::Enter);
    assert_eq!(top.rows().len(), 1, "kept");
    top.press(KeyCode::Esc);
    assert_eq!(top.rows().len(), all);
}

#[test]
fn keys_ask_for_what_others_do() {
    let mut top = Top::new(Tab::Symbols);
    assert_eq!(top.press(KeyCode::Char(' ')), Action::Pause);
    assert_eq!(top.press(KeyCode::Char('w')), Action::Save);
    assert_eq!(top.press(KeyCode::Char('r')), Action::Reset);
    assert_eq!(top.press(KeyCode::Char('q')), Action::Quit);
    let table = top.table();
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(top.state.key(ctrl_c, &table), Action::Quit);
    let mut windows = Vec::new();
    for _ in 0..3 {
        top.press(KeyCode::Char('d'));
        windows.push(top.state.window);
    }
    let seconds = |seconds| TimeRange::Last(Duration::from_secs(seconds));
    assert_eq!(windows, [seconds(60), TimeRange::All, seconds(10)]);
}

#[test]
fn a_small_terminal_shows_facts_lines_and_keys() {
    let mut top = Top::new(Tab::Symbols);
    for size in [(80, 24), (40, 15), (10, 3), (1, 1)] {
        top.size = size;
        for tab in Tab::ALL {
            top.state.show(tab);
            top.screen();
        }
    }
    top.size = (40, 15);
    top.state.show(Tab::Symbols);
    let screen = top.screen().join("\n");
    for text in ["4 samples", "0 lost", "plumb 1.0% of a CPU", "window 4.0 s", "s:symbols", "main", "? help"]
    {
        assert!(screen.contains(text), "no {text:?} in:\n{screen}");
    }
    top.press(KeyCode::Char('?'));
    let help = top.screen().join("\n");
    assert!(help.contains("narrow down") && help.contains("leave"), "{help}");
}

#[test]
fn the_cursor_stays_on_the_screen_and_on_lines() {
    let mut top = Top::new(Tab::Symbols);
    top.size = (40, 8);
    top.press(KeyCode::End);
    let last = top.rows();
    assert!(last.iter().any(|row| row.contains("] sort")), "{last:?}");
    for _ in 0..20 {
        top.press(KeyCode::Down);
    }
    assert_eq!(top.rows(), last);
    top.press(KeyCode::Home);
    assert!(top.rows()[0].contains("read_word"));
}

/// The lines of the flame graph, without header and footer.
fn flame(top: &mut Top) -> Vec<String> {
    let screen = top.screen();
    screen[2..screen.len() - 1].iter().filter(|line| !line.is_empty()).cloned().collect()
}

/// The words of a line with their columns.
fn columns(line: &str) -> Vec<(usize, &str)> {
    line.split_whitespace().map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word)).collect()
}

#[test]
fn a_flame_graph_has_callees_under_callers_as_wide_as_their_shares() {
    let mut top = Top::new(Tab::Flame);
    top.size = (100, 20);
    let rows = flame(&mut top);
    // Grouped by thread: 90 of 100 columns are app's, and 70 of them parse's.
    assert_eq!(columns(&rows[0]), [(0, "app"), (90, "other")], "{rows:#?}");
    assert_eq!(columns(&rows[1]), [(0, "main"), (90, "main")]);
    assert_eq!(columns(&rows[2]), [(0, "parse"), (70, "sort")]);
    assert_eq!(columns(&rows[3])[0], (0, "read_word"));
    assert_eq!(columns(&rows[3])[1].0, 70, "what sort calls is under sort: {rows:#?}");
}

#[test]
fn the_cursor_walks_in_the_flame_graph_and_zooms() {
    let mut top = Top::new(Tab::Flame);
    top.size = (100, 20);
    let said = |top: &mut Top| top.screen().last().unwrap().clone();
    assert!(said(&mut top).starts_with("90%, itself 0%  app"), "{}", said(&mut top));
    for code in [KeyCode::Down, KeyCode::Down] {
        top.press(code);
    }
    assert!(said(&mut top).starts_with("70%, itself 20%  parse"), "the widest callee: {}", said(&mut top));
    top.press(KeyCode::Right);
    assert!(said(&mut top).contains("sort"));
    top.press(KeyCode::Enter);
    let rows = flame(&mut top);
    assert_eq!(columns(&rows[2]), [(0, "sort")], "its callers stay above it: {rows:#?}");
    assert_eq!(columns(&rows[0]), [(0, "app")]);
    assert!(said(&mut top).starts_with("20%"), "shares stay those of all: {}", said(&mut top));
    top.press(KeyCode::Esc);
    top.press(KeyCode::Esc);
    top.press(KeyCode::Esc);
    assert_eq!(columns(&flame(&mut top)[2]), [(0, "parse"), (70, "sort")]);
    top.press(KeyCode::Left);
    top.press(KeyCode::Up);
    assert!(said(&mut top).contains("main"));
}

#[test]
fn callers_stand_under_where_the_time_was_spent_and_all_open_and_close() {
    let mut top = Top::new(Tab::Callers);
    top.press(KeyCode::Char('E'));
    let rows = top.rows();
    assert_eq!(words(&rows[0])[0], "50%", "{rows:#?}");
    let screen = top.screen();
    assert!(screen.iter().any(|line| line.contains("Share") && !line.contains("Self")), "{screen:?}");
    assert!(
        rows[0].contains("read_word") && rows[1].contains("parse") && rows[2].contains("main"),
        "{rows:#?}"
    );
    top.press(KeyCode::Char('C'));
    assert!(top.rows().len() < rows.len());
}
