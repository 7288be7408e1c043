//! Contents of a terminal, of usual and of small size: lines of two programs don't mix, words are not cut, nothing remains
//! of earlier contents.
//!
//! Needs `script` (util-linux) and perf events; without them, a test prints so and is skipped.

use crate::spun::{folder, may_record, recorded};
use crate::typed::Terminal;

/// The rows of a screen as displayed.
fn rows(terminal: &Terminal, columns: u16) -> Vec<String> {
    let seen = terminal.seen.lock().expect("nobody panics with it");
    seen.0.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
}

#[test]
fn what_a_recorded_command_prints_stays_as_it_printed_it() {
    if !may_record() {
        return;
    }
    let folder = folder("screens-mixed");
    // Longer than the progress line takes to appear, and without a line break at the end.
    let command = "sh -c 'printf begin-; sleep 1; printf end'";
    let line = format!("{} record -- {command}", env!("CARGO_BIN_EXE_plumb"));
    let Some(mut terminal) = Terminal::run(&folder, (24, 80), &line) else { return };
    terminal.until(|screen| screen.contains("see it with"));
    assert!(terminal.all().contains("begin-end"), "{:?}", terminal.all());
    let rows = rows(&terminal, 80);
    assert!(rows.iter().any(|row| row == "begin-end"), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("plumb: profile.plumb")), "{rows:#?}");
    assert!(rows.iter().all(|row| !row.contains("plumb: ") || row.starts_with("plumb: ")), "{rows:#?}");
    terminal.end();
}

#[test]
fn the_summary_is_broken_at_words() {
    if !may_record() {
        return;
    }
    let folder = folder("screens-words");
    let line = format!("{} record -- sh -c true", env!("CARGO_BIN_EXE_plumb"));
    let Some(mut terminal) = Terminal::run(&folder, (24, 44), &line) else { return };
    terminal.until(|screen| screen.contains("plumb report"));
    let all = terminal.all();
    let said: Vec<&str> = all.split("\u{1b}[K").last().expect("there is one").lines().collect();
    let said = &said[..said.iter().position(|line| line.trim().is_empty()).unwrap_or(said.len())];
    // The output contains only the program's own line breaks, none of the terminal's.
    assert!(said.len() > 3 && said.iter().all(|line| line.chars().count() <= 44), "{said:#?}");
    assert!(said.iter().any(|line| line.starts_with("    ")), "something did not fit: {said:#?}");
    terminal.end();
}

/// Keys, and the resulting screen: all other views, the help, and the first view again.
const KEYS: [(&str, &str); 6] = [
    ("f", "itself"),
    ("t", "Call, and"),
    ("?", "PgUp"),
    (" ", "Call, and"),
    ("e", "Executable"),
    ("s", "Self↓"),
];

/// A view looks the same after other views as when it is shown first.
fn leaves_nothing(size: (u16, u16), command: &str, name: &str) {
    let Some(folder) = recorded(name) else { return };
    let line = format!("{} {command}", env!("CARGO_BIN_EXE_plumb"));
    let shown = |keys: &[(&str, &str)]| {
        let mut terminal = Terminal::run(&folder, size, &line)?;
        let last = |screen: &str| screen.lines().last().unwrap_or_default().to_owned();
        terminal.until(|screen| !last(screen).trim().is_empty());
        // The facts about the recording, if any, disappear with the first key.
        terminal.press("s");
        let mut screen = terminal.until(|screen| last(screen).contains("quit"));
        for (key, is_so) in keys {
            terminal.press(key);
            screen = terminal.until(|screen| screen.contains(is_so));
        }
        terminal.press("q");
        terminal.end();
        Some(screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
    };
    let (Some(first), Some(last)) = (shown(&[]), shown(&KEYS)) else { return };
    assert!(first.lines().count() <= usize::from(size.0), "{first}");
    assert_eq!(first, last, "{size:?}");
}

/// Closing a window ends the programs in it, even if they ignore hangups.
#[test]
fn the_view_ends_with_its_terminal() {
    let Some(folder) = recorded("screens-gone") else { return };
    let line = format!("sh -c 'trap \"\" HUP; echo $$ >pid; exec {} view'", env!("CARGO_BIN_EXE_plumb"));
    let Some(mut terminal) = Terminal::run(&folder, (24, 80), &line) else { return };
    terminal.until(|screen| screen.contains("Self↓"));
    terminal.close();
    let pid = std::fs::read_to_string(folder.join("pid")).expect("the shell wrote it");
    let pid: u32 = pid.trim().parse().expect("it is a number");
    let begin = std::time::Instant::now();
    while plumb_process::procfs::is_alive(pid) {
        assert!(begin.elapsed().as_secs() < 60, "it goes on without a terminal");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn pictures_leave_nothing_on_a_usual_terminal() {
    leaves_nothing((24, 80), "view", "screens-usual");
}

#[test]
fn pictures_leave_nothing_on_a_small_terminal() {
    leaves_nothing((10, 40), "view", "screens-small");
}
