//! The commands that make the report again.

use plumb_profile::Profile;

use super::Args;

/// Longer ones are given without the command.
const LONGEST: usize = 70;

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
