//! The commands that a report names, as they are typed: those that make it again, and those that tell more of the same target.

use std::path::Path;

use plumb_analyze::{Explanation, FrameIndex, Pattern, sampled};
use plumb_profile::{DsoKind, Profile};

use super::Args;
use super::args::DEFAULT_FILE;
use plumb_documents::explain::places;

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
pub(super) fn off_cpu(report: &Explanation<'_>, args: &Args) -> String {
    of_target("plumb record --off-cpu", report.view.profile(), args)
}

/// The command that gives advice on its system calls.
pub(super) fn kernel(report: &Explanation<'_>, args: &Args) -> String {
    of_target("plumb kernel --advice", report.view.profile(), args)
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

/// The name of the function whose code has that of a frame: where that was inlined alone, of the one with the most samples into which it was.
pub(super) fn with_code(report: &Explanation<'_>, frame: FrameIndex) -> String {
    let name = &report.view.frame(frame).name;
    let found = Pattern::parse(name).map(|name| sampled(&report.view, Some(&name), None));
    let found = found.unwrap_or_default();
    let is_inlined = found.iter().all(|function| !function.inlined.is_empty());
    match found.first().filter(|_| is_inlined) {
        Some(function) => places::short_name(&function.name),
        None => places::name(&report.view, frame),
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

/// Whether a function is code of the processor's, in a file.
pub(super) fn has_instructions(report: &Explanation<'_>, frame: FrameIndex) -> bool {
    let dso = report.view.frame(frame).dso.map(|dso| report.view.profile().dsos[dso].kind);
    !matches!(dso, Some(DsoKind::Script | DsoKind::Anonymous { .. }))
}
