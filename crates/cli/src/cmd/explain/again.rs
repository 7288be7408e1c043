//! The commands that a report names, as they are typed: those that make it again, and those that tell more of the same target.

use std::path::Path;

use plumb_profile::Profile;

use super::Args;
use super::args::DEFAULT_FILE;

/// Longer ones are given without the command.
const LONGEST: usize = 200;

/// As they are typed: the recording first, where it is known how it was made.
pub(super) fn commands(profile: &Profile, is_recorded_now: bool) -> Vec<String> {
    let mut commands = Vec::new();
    let meta = &profile.meta;
    if !is_recorded_now && meta.recorder.starts_with("plumb") && !meta.command.is_empty() {
        let hz = meta.frequency_hz.map_or(String::new(), |hz| format!("-F {hz} "));
        commands.push(format!("plumb record {hz}-- {}", shell_words::join(&meta.command)));
    }
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let words: Vec<String> = ["plumb".to_owned()].into_iter().chain(arguments).collect();
    commands.push(shell_words::join(&words));
    commands
}

/// The command for the whole report: of the recording if there is a file of it, or else as it was typed. Calls that were watched while it was
/// recorded are not in the file.
pub(super) fn full(args: &Args, has_calls: bool) -> String {
    if let Some(file) = args.kept().filter(|_| !has_calls || !args.records()) {
        return format!("plumb explain --full {}", shell_words::quote(&file.display().to_string()));
    }
    let typed = std::env::args_os().skip(2).map(|argument| argument.to_string_lossy().into_owned());
    let typed = shell_words::join(typed);
    match typed.len() {
        0..=LONGEST => format!("plumb explain --full {typed}"),
        _ => "plumb explain --full -- COMMAND".to_owned(),
    }
}

/// The command that records its waits.
pub(super) fn off_cpu(profile: &Profile, args: &Args) -> String {
    of_target("plumb record --off-cpu", profile, args)
}

/// The command that gives advice on its system calls.
pub(super) fn kernel(profile: &Profile, args: &Args) -> String {
    of_target("plumb kernel --advice", profile, args)
}

/// A command for the same target: the options that name it, if any, otherwise the recorded command.
fn of_target(before: &str, profile: &Profile, args: &Args) -> String {
    let (named, command) = (args.target.words(), shell_words::join(&profile.meta.command));
    match command.len() {
        _ if !named.is_empty() => format!("{before} {}", shell_words::join(named)),
        0 | LONGEST.. => format!("{before} -- COMMAND"),
        _ => format!("{before} -- {command}"),
    }
}

/// The command that shows the instructions of a function: from the recording if it is in a file.
pub(super) fn annotate(name: &str, args: &Args) -> String {
    let name = shell_words::quote(name);
    let file = |file: &Path| match file == Path::new(DEFAULT_FILE) {
        true => String::new(),
        false => format!(" {}", shell_words::quote(&file.display().to_string())),
    };
    match args.kept() {
        Some(kept) => format!("plumb annotate {name}{}", file(kept)),
        None => format!("plumb annotate {name} x.plumb (add -o x.plumb here first)"),
    }
}
