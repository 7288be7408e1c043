//! One-screen report if most time is in code without names: its owner, and how to get names. No rule applies to such code.

use plumb_analyze::{Explanation, FrameIndex};
use plumb_documents::explain::headline::maker;
use plumb_stack_quality::{Runtime, Told, of_file};

use crate::render::document::Text;

/// Returns the facts about code without names: that its cause is unknown, and how to get names.
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
