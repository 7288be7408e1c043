//! One-screen report: the data that many samples lack, callers or names, and the remedy. Rules don't apply to unknown code.
//!
//! Elsewhere: the report that says it (`plumb_documents::explain::report`).

use plumb_analyze::{Bottleneck, Explanation, FrameIndex, Obstacle};
use plumb_documents::explain::headline::{maker, short_percent};
use plumb_documents::text::Text;
use plumb_stack_quality::{Completeness, Runtime, Told, nameless, of_file};

/// Smallest share of samples whose gap is reported, in percent.
const LEAST: f64 = 10.0;

/// The reason for most truncated stacks, the file or process where most names are missing, and samples that the kernel delayed.
pub(super) fn facts(report: &Explanation<'_>) -> Vec<(String, Text)> {
    let profile = report.view.profile();
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64 * 100.0;
    let fact = |what: &str, percent: f64, where_: String, remedy: &dyn Fn() -> String| {
        let remedy = (percent >= LEAST).then(remedy)?;
        let is_told = !remedy.is_empty() && !remedy.starts_with("none");
        let text = format!("{} {where_}: {remedy}", short_percent(percent));
        is_told.then(|| (what.to_owned(), Text::from(text)))
    };
    let stacks = Completeness::of(profile);
    let cut = stacks.causes.first().and_then(|cause| {
        let where_ = format!("of stacks end at {}", cause.text());
        fact("callers", share(cause.samples, stacks.samples), where_, &|| cause.remedy().to_owned())
    });
    let names = || {
        let (places, samples) = nameless(profile);
        let place = places.first()?;
        let where_ = format!("of samples have none, in {}", place.place);
        fact("names", share(place.samples, samples), where_, &|| place.remedy(profile))
    };
    let names = if says_names(report) { None } else { names() };
    let late = report.view.delayed_samples().map(|text| ("late".to_owned(), Text::from(text)));
    cut.into_iter().chain(names).chain(late).collect()
}

/// The remedy that names most of the unnamed code, if the headline is about that.
pub(super) fn names_remedy(report: &Explanation<'_>) -> Option<String> {
    let Some(Obstacle::Names(_)) = report.outlook.obstacle() else { return None };
    let profile = report.view.profile();
    let remedy = nameless(profile).0.first()?.remedy(profile);
    (!remedy.is_empty()).then(|| format!(": {remedy}"))
}

/// Whether the headline is about unnamed code and includes the remedy.
fn says_names(report: &Explanation<'_>) -> bool {
    if matches!(report.outlook.obstacle(), Some(Obstacle::Names(_))) {
        return true;
    }
    let is_nameless = |what| matches!(what, Bottleneck::Function(frame) if !report.view.frame(frame).named);
    report.first().is_some_and(|(what, _)| is_nameless(what))
}

/// The remedy for a function without a name; empty: none is known.
pub(super) fn remedy_of(report: &Explanation<'_>, frame: FrameIndex) -> String {
    let profile = report.view.profile();
    let remedy = match maker(report, frame) {
        Some(pid) => Runtime::of(profile, pid).map(|runtime| runtime.names(&Told::of(profile, pid))),
        None => report.view.frame(frame).dso.map(|dso| of_file(profile, dso)),
    };
    remedy.unwrap_or_default()
}
