//! The commands that make the report again.

use plumb_profile::Profile;

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
