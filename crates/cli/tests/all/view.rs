//! `plumb view` as a user runs it: keys on a terminal, provided by `script` (util-linux); without it, a test prints so and
//! is skipped.

use crate::spun::{folder, plumb, recorded, text};
use crate::typed::Terminal;

#[test]
fn a_recording_is_looked_through_and_the_terminal_comes_back() {
    let Some(folder) = recorded("view-keys") else { return };
    // Compared with itself nothing has changed, but all is shown.
    let line = format!("{} view --base profile.plumb", env!("CARGO_BIN_EXE_plumb"));
    let Some(mut terminal) = Terminal::run(&folder, (30, 100), &line) else { return };
    // The last line has keys, or the data that this user could not see.
    let screen = terminal.until(|screen| screen.contains("f:flame") && screen.contains("[.] fib"));
    // Of any event that is sampled here.
    let is_of = |event: &str| screen.contains(&format!("samples of {event}"));
    assert!(is_of("cpu-clock") || is_of("cycles"), "{screen}");
    assert!(screen.contains("% of stacks complete"), "{screen}");
    assert!(screen.contains("Self↓"), "it opens ordered by self: {screen}");
    terminal.press("/busy\r");
    terminal.until(|screen| screen.contains("[.] busy") && !screen.contains("[.] fib"));
    terminal.press("\r");
    // Enter narrows the view to the stacks with the function.
    terminal.until(|screen| screen.contains("> busy") && screen.contains("start_thread"));
    terminal.press("f");
    // The stacks side by side, and the call under the cursor.
    terminal.until(|screen| {
        screen.contains("busy") && [", itself 0%", ", itself 0.0%"].iter().any(|own| screen.contains(own))
    });
    terminal.press("\x1b");
    terminal.until(|screen| screen.contains("[.] fib"));
    terminal.press("/asks\r");
    terminal.until(|screen| screen.contains("[.] asks") && !screen.contains("[.] fib"));
    terminal.press("a");
    terminal.until(|screen| screen.contains("q Esc back") && screen.contains("call"));
    terminal.press("g");
    terminal.until(|screen| screen.contains("lines 1-") && screen.contains("asks"));
    terminal.press("q");
    terminal.until(|screen| screen.contains("[.] asks") && !screen.contains("q Esc back"));
    terminal.press("d");
    let changes = terminal.until(|screen| screen.contains("q Esc back"));
    assert!(changes.contains("Base:") && changes.contains("fib"), "{changes}");
    terminal.press("q");
    terminal.press("q");
    let (before, after) = terminal.end();
    assert_eq!(before, after);
}

#[test]
fn profiles_of_other_tools_are_shown_with_what_they_lack() {
    let folder = folder("view-folded");
    std::fs::write(folder.join("x"), "sh;main;work 30\nsh;main 10\n").expect("the folder is there");
    let line = format!("{} view --view stacks x", env!("CARGO_BIN_EXE_plumb"));
    let Some(mut terminal) = Terminal::run(&folder, (30, 100), &line) else { return };
    terminal.until(|screen| screen.contains("40 samples") && screen.contains("imported from folded stacks"));
    terminal.until(|screen| screen.contains("work") && screen.contains("75%"));
    terminal.press("q");
    terminal.end();
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let folder = folder("view-none");
    let output = plumb(&folder, &["view"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("plumb report"), "{}", text(&output.stderr));
}
