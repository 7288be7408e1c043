//! Functions and their lines as written in the report: `relax (graph.cc:141)`.
//!
//! Elsewhere: the choice of the function for a cause.

use plumb_analyze::{
    CallAdvice, CodeAdvice, Explanation, Extent, FrameIndex, HotFunction, Pattern, View, ViewFrame, sampled,
    shorten, without_parameters,
};

use crate::text::Text;

/// Longest name in running text.
const NAME_WIDTH: usize = 60;

/// Returns a function's name for running text.
pub fn name(view: &View<'_>, frame: FrameIndex) -> String {
    short(view.frame(frame))
}

/// Returns a frame's name for running text.
pub fn short(frame: &ViewFrame<'_>) -> String {
    short_name(&frame.name)
}

/// Shortens a name for running text, without parameters.
pub fn short_name(name: &str) -> String {
    shorten(without_parameters(name), NAME_WIDTH).into_owned()
}

/// Returns the last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns a function with its line.
pub fn function(report: &Explanation<'_>, frame: FrameIndex) -> Text {
    with_line(report, frame, line(report, frame))
}

/// Returns the user's function in which a cause was found, with its line.
pub fn of_cause(report: &Explanation<'_>, cause: &CodeAdvice) -> Option<Text> {
    if let Some(at) = &cause.at {
        let text = Text::default().name(short_name(&at.function));
        return Some(text.and(" (").name(in_file(&at.file, at.line)).and(")"));
    }
    let frame = cause.places.first().or(cause.functions.first()).map(|&(frame, _)| frame)?;
    let own_line = || line(report, frame);
    let line = match cause.extent {
        // The line with the time, not the one of the call.
        Extent::Instructions => hot_line(report, frame).or_else(own_line),
        Extent::Calls | Extent::Files => own_line(),
    };
    Some(with_line(report, frame, line))
}

/// Returns the file of the functions that a cause is about.
pub fn file_of(report: &Explanation<'_>, cause: &CodeAdvice) -> Option<Text> {
    let &(frame, _) = cause.functions.first()?;
    Some(Text::default().name(file_name(report.view.frame(frame).dso_path)))
}

/// Returns the user's function that makes the calls of a rule, with its line.
pub fn of_calls(report: &Explanation<'_>, advice: &CallAdvice) -> Option<Text> {
    let callers = report.callers_of(advice);
    callers.places.first().map(|&(frame, _)| function(report, frame))
}

/// Returns a function of another view than the report's, with its line if the frame has one.
pub fn function_in(view: &View<'_>, frame: FrameIndex) -> Text {
    let shown = view.frame(frame);
    let text = Text::default().name(short(shown));
    match shown.line {
        0 => text,
        line => text.and(" (").name(in_file(shown.file, line)).and(")"),
    }
}

/// Returns `graph.cc:88`: the line of the frame, or the hottest line of its function if the frame has none.
pub fn line(report: &Explanation<'_>, frame: FrameIndex) -> Option<String> {
    let shown = report.view.frame(frame);
    match shown.line {
        0 => hot_line(report, frame),
        number => Some(in_file(shown.file, number)),
    }
}

/// Returns the name of the function whose code has that of a frame: of an inlined one, the function with the most samples into which it was inlined.
pub fn with_code(report: &Explanation<'_>, frame: FrameIndex) -> String {
    let name = &report.view.frame(frame).name;
    let found = Pattern::parse(name).map(|name| sampled(&report.view, Some(&name), None));
    let found = found.unwrap_or_default();
    let is_inlined = found.iter().all(|function| !function.inlined.is_empty());
    match found.first().filter(|_| is_inlined) {
        Some(function) => short_name(&function.name),
        None => self::name(&report.view, frame),
    }
}

/// Returns the hottest line of a function, or the file with its code.
pub fn hottest(report: &Explanation<'_>, function: &HotFunction) -> String {
    match &function.line {
        Some((file, line)) => in_file(file, *line),
        None => file_name(report.view.frame(function.frame).dso_path).to_owned(),
    }
}

/// Returns a listed function with its hottest line, any other with the file of its code.
pub fn listed(report: &Explanation<'_>, frame: FrameIndex) -> Text {
    let listed = report.functions.iter().find(|function| function.frame == frame);
    let file = || file_name(report.view.frame(frame).dso_path).to_owned();
    with_line(report, frame, Some(listed.map_or_else(file, |function| hottest(report, function))))
}

fn with_line(report: &Explanation<'_>, frame: FrameIndex, line: Option<String>) -> Text {
    let text = Text::default().name(name(&report.view, frame));
    match line {
        Some(line) => text.and(" (").name(line).and(")"),
        None => text,
    }
}

/// Returns the hottest line of a function, if it is listed.
fn hot_line(report: &Explanation<'_>, frame: FrameIndex) -> Option<String> {
    let symbol = report.view.frame(frame).symbol;
    let hot = report.functions.iter().find(|function| report.view.frame(function.frame).symbol == symbol)?;
    hot.line.as_ref().map(|(file, line)| in_file(file, *line))
}

fn in_file(file: &str, line: u32) -> String {
    format!("{}:{line}", file_name(file))
}
