//! Effects of keys on a finished recording, drawn on a terminal in memory.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use plumb_fixtures::Made;

/// Two events, and a sample that the tests' filter excludes.
fn made() -> Made {
    let mut made = Made::new();
    made.sample("app/1", "main@app;parse@app;read_word@libio.so", 70)
        .sample("app/1", "main@app;parse@app", 30)
        .sample("other/2", "main@other;idle@other", 100);
    made.event("page-faults", "page-faults").sample("app/1", "main@app;touch@app", 3);
    made
}

fn shown<'p>(made: &'p Made, events: &'p mut Vec<Filter>) -> Shown<'p> {
    let mut filters = FilterArgs::default();
    filters.samples.comm = vec!["app".into()];
    *events = filters.filter_per_event(&made.profile).unwrap();
    let file = PathBuf::from("profile.plumb");
    let args = Args { file, view: Tab::Symbols, base: None, filters };
    Shown::new(&made.profile, events, Box::leak(Box::new(args)), crate::cmd::LISTINGS)
}

fn press(shown: &mut Shown<'_>, code: KeyCode) -> bool {
    shown.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn screen(shown: &mut Shown<'_>) -> String {
    let mut terminal = Terminal::new(TestBackend::new(80, 20)).unwrap();
    terminal.draw(|frame| shown.draw(frame, false)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..20).map(line).collect()
}

#[test]
fn shares_are_of_what_the_filters_keep_and_events_are_apart() {
    let (made, mut events) = (made(), Vec::new());
    let mut shown = shown(&made, &mut events);
    let first = screen(&mut shown);
    let line = |text: &str, word: &str| {
        let line = text.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {text}"));
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(first.starts_with("plumb view  2 samples of cpu-clock"), "{first}");
    assert_eq!(line(&first, "] parse"), ["50%", "15%"], "as in plumb report");
    assert!(!first.contains("idle") && !first.contains("touch"), "{first}");
    assert!(press(&mut shown, KeyCode::Char('n')));
    let second = screen(&mut shown);
    assert!(second.contains("1 sample of page-faults  3 page-faults"), "{second}");
    assert_eq!(line(&second, "] touch"), ["100%", "100%"]);
    press(&mut shown, KeyCode::Char('n'));
    assert_eq!(screen(&mut shown), first);
}

#[test]
fn a_function_that_only_calls_others_is_found_in_the_order_of_self() {
    let (made, mut events) = (made(), Vec::new());
    let mut shown = shown(&made, &mut events);
    for key in "/main".chars() {
        press(&mut shown, KeyCode::Char(key));
    }
    let found = screen(&mut shown);
    assert!(found.contains("Self↓") && found.contains("[.] main"), "{found}");
}

#[test]
fn keys_narrow_down_and_go_back_and_those_of_top_do_nothing() {
    let (made, mut events) = (made(), Vec::new());
    let mut shown = shown(&made, &mut events);
    press(&mut shown, KeyCode::Char('e'));
    press(&mut shown, KeyCode::Enter);
    assert!(screen(&mut shown).contains("> [app]"));
    press(&mut shown, KeyCode::Char('t'));
    let tree = screen(&mut shown);
    assert!(tree.contains("▾ main") && tree.contains("read_word"), "{tree}");
    for key in [' ', 'w', 'r'] {
        assert!(press(&mut shown, KeyCode::Char(key)));
        assert_eq!(screen(&mut shown), tree, "{key}");
    }
    press(&mut shown, KeyCode::Char('?'));
    let help = screen(&mut shown);
    assert!(help.contains("next event") && !help.contains("pause"), "{help}");
    press(&mut shown, KeyCode::Esc);
    press(&mut shown, KeyCode::Esc);
    assert!(!screen(&mut shown).contains("> [app]"));
    assert!(!press(&mut shown, KeyCode::Char('q')));
}

#[test]
fn filters_are_typed_as_options_have_them_and_taken_back() {
    let (made, mut events) = (made(), Vec::new());
    let mut shown = shown(&made, &mut events);
    let first = screen(&mut shown);
    let enter = |shown: &mut Shown<'_>, text: &str| {
        [":", text].concat().chars().for_each(|letter| _ = press(shown, KeyCode::Char(letter)));
        press(shown, KeyCode::Enter);
        screen(shown)
    };
    // The first sample is at the start, the second a millisecond later.
    let early = enter(&mut shown, "time 0-0.0005");
    assert!(early.contains("> time 0-0.0005") && early.contains("1 sample of cpu-clock"), "{early}");
    let inner = enter(&mut shown, "focus read_");
    assert!(inner.contains("> focus read_") && inner.contains("read_word"), "{inner}");
    assert!(!enter(&mut shown, "focus (").contains("> focus ("), "a bad pattern is not taken");
    assert!(enter(&mut shown, "color red").contains("filters: comm exe"));
    for _ in 0..2 {
        press(&mut shown, KeyCode::Esc);
    }
    assert_eq!(screen(&mut shown), first);
    press(&mut shown, KeyCode::Char('T'));
    let threads = screen(&mut shown);
    assert!(threads.contains("1 app") && threads.contains("Tid Thread"), "{threads}");
    press(&mut shown, KeyCode::Enter);
    assert!(screen(&mut shown).contains("> thread 1"));
}

#[test]
fn what_cant_be_annotated_is_said_on_the_screen() {
    let (made, mut events) = (made(), Vec::new());
    let mut shown = shown(&made, &mut events);
    let before = screen(&mut shown);
    press(&mut shown, KeyCode::Char('a'));
    let text = screen(&mut shown);
    // The file does not exist.
    assert!(text.contains("/opt/libio.so") && text.contains("q Esc back"), "{text}");
    assert!(press(&mut shown, KeyCode::Char('q')), "back, and no further");
    assert_eq!(screen(&mut shown), before);
    press(&mut shown, KeyCode::Char('e'));
    press(&mut shown, KeyCode::Char('a'));
    assert!(screen(&mut shown).contains("only functions"));
}
