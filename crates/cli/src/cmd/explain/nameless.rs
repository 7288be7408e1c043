//! What the report says where most time is in code without names: whose it is, and how it gets some. No rule is held against such code.

use plumb_analyze::{Explanation, FrameIndex};
use plumb_profile::DsoKind;

use super::places;
use crate::render::document::Text;
use crate::stack_quality::{Runtime, Told, of_file};

/// The process that made the code at run time, if it is in no file.
fn maker(report: &Explanation<'_>, frame: FrameIndex) -> Option<u32> {
    let dso = report.view.frame(frame).dso?;
    match report.view.profile().dsos[dso].kind {
        DsoKind::Anonymous { pid } => Some(pid),
        _ => None,
    }
}

/// What the time goes into.
pub(super) fn subject(report: &Explanation<'_>, frame: FrameIndex) -> Text {
    match maker(report, frame) {
        Some(_) => Text::from("Code that was compiled at run time and has no names"),
        None => places::listed(report, frame),
    }
}

/// What is known of it, and what to do.
pub(super) fn facts(report: &Explanation<'_>, frame: FrameIndex) -> Vec<(String, Text)> {
    let profile = report.view.profile();
    let remedy = match maker(report, frame) {
        Some(pid) => Runtime::of(profile, pid)
            .map(|runtime| runtime.names(&Told::of(profile, pid)))
            .unwrap_or_default(),
        None => report.view.frame(frame).dso.map(|dso| of_file(profile, dso)).unwrap_or_default(),
    };
    let mut facts = vec![("cause".to_owned(), Text::from("not known: without names no rule holds"))];
    match remedy.strip_prefix("none: ") {
        Some(why) => facts.push(("names".into(), Text::from("not available: ").and(why))),
        None if remedy.is_empty() => {}
        None => facts.push(("do".into(), Text::from("get names: ").and(remedy.as_str()))),
    }
    facts
}
