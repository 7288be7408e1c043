//! The header above the table: the recording, its quality, and the share that the filters keep.

use std::io::{self, Write};

use plumb_analyze::{Precision, Summary, View, command_failure, coverage, is_clock, part_of};
use plumb_documents::report::EventReport;
use plumb_interpreters::{Language, language_of_loop};
use plumb_profile::{DsoKind, Meta, Profile, Scope};
use plumb_stack_quality::Completeness;

use crate::render::label;
use crate::terminal::{Output, printable};

/// Writes the header, each line behind a `#`.
pub fn write(shown: &EventReport<'_>, out: &mut Output<'_>) -> io::Result<()> {
    let view = &shown.view;
    let profile = view.profile();
    let meta = &profile.meta;
    if !meta.command.is_empty() {
        writeln!(out, "# Command:  {}", printable(&meta.command.join(" ")))?;
    }
    let recorded = recorded(meta, view.meta());
    if !recorded.is_empty() {
        writeln!(out, "# Recorded: {}", printable(&recorded.join(", ")))?;
    }
    if let Some(failure) = command_failure(meta) {
        writeln!(out, "# Failed:   {failure}")?;
    }
    writeln!(out, "# Samples:  {}", printable(&samples(view, shown).join(", ")))?;
    writeln!(out, "# Stacks:   {}", printable(&stacks(view, &Summary::new(view))))?;
    if shown.filter.takes_a_part() {
        let (part, whole) = (view.part(), view.recorded());
        let hint = if part.samples == 0 { ": none matches all of them" } else { "" };
        writeln!(
            out,
            "# Kept:     {}, {} of the event's, by filters{hint}",
            label::samples(part.samples),
            Precision::of(view).percent(part.percent_of(whole))
        )?;
    }
    if let Some(Language { name, versions, .. }) = missing_script(profile).filter(|_| !meta.by_kernel) {
        let label = format!("{name}:");
        writeln!(out, "# {label:<9} as root, plumb record --capture bpf shows its functions ({versions})")?;
    }
    for warning in view.warnings() {
        writeln!(out, "# Warning:  {}", printable(&warning))?;
    }
    writeln!(out, "#")
}

/// Returns a supported interpreter that was sampled without any interpreted frame: copied stacks hold none.
fn missing_script(profile: &Profile) -> Option<&'static Language> {
    // A profile of another tool may have them among its functions, unmarked.
    let is_imported = profile.meta.untold.cuts;
    if is_imported || profile.dsos.rows().iter().any(|dso| dso.kind == DsoKind::Script) {
        return None;
    }
    let mut functions = profile.symbols.functions.rows().iter();
    functions.find_map(|function| language_of_loop(profile.strings.get(function.name)))
}

fn recorded(meta: &Meta, selected: &Meta) -> Vec<String> {
    let mut parts = Vec::new();
    let mut machine = Vec::new();
    for text in [&meta.host, &meta.kernel, &meta.arch] {
        if !text.is_empty() {
            machine.push(text.clone());
        }
    }
    if !machine.is_empty() {
        parts.push(machine.join(" "));
    }
    if meta.cpus > 0 {
        parts.push(format!("{} CPUs", meta.cpus));
    }
    if meta.duration_ns > 0 {
        let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
        parts.push(seconds(meta.duration_ns));
        if selected.duration_ns != meta.duration_ns {
            parts.push(format!("of these {} selected", seconds(selected.duration_ns)));
        }
    }
    if !meta.recorder.is_empty() {
        parts.push(format!("by {}", meta.recorder));
    }
    parts
}

fn samples(view: &View<'_>, shown: &EventReport<'_>) -> Vec<String> {
    let meta = view.meta();
    let whole = view.recorded();
    let (name, unit) = shown.event_name();
    let mut first = match meta.untold.samples {
        true => "unknown number".to_owned(),
        false => whole.samples.to_string(),
    };
    if !name.is_empty() {
        first.push_str(&format!(" of {name}"));
    }
    // Measured times have no sampling rate.
    let is_measured = unit == "ns" && !name.is_empty() && !is_clock(name);
    if let Some(frequency) = meta.frequency_hz.filter(|_| !is_measured) {
        let most = if is_clock(name) || name.is_empty() { "" } else { "most " };
        first.push_str(&format!(" at {most}{frequency} Hz"));
    }
    let mut parts = vec![first];
    parts.push(match unit {
        "ns" => format!("{:.3} s", whole.weight as f64 / 1e9),
        "" => format!("{} counted", whole.weight),
        unit => match shown.event().and_then(|event| meta.occurrences_of(event)) {
            Some(counted) if counted == whole.samples && counted == whole.weight => {
                "each one that happened".into()
            }
            Some(counted) => format!("standing for {}, {counted} happened", whole.weight),
            None => format!("{} {unit}", whole.weight),
        },
    });
    if let Some(coverage) = coverage(view.profile(), &shown.filter) {
        let precision = Precision::of_samples(whole.samples).min(Precision::TENTHS);
        parts.push(format!("{} of the target's CPU time", precision.percent(coverage)));
    }
    if let Some(idle) = meta.idle_share() {
        parts.push(format!("processors idle {:.1}% of the time", idle * 100.0));
    }
    if meta.scope == Scope::Inherited {
        parts.push("events inherited: short-lived processes are missed".into());
    }
    parts.push(label::lost(meta, &shown.filter));
    if meta.damaged_records > 0 {
        parts.push(format!("{} damaged records", meta.damaged_records));
    }
    parts
}

fn stacks(view: &View<'_>, summary: &Summary) -> String {
    let profile = view.profile();
    let mut text = match summary.complete_percent() {
        Some(_) => {
            let complete = format!("{} complete", part_of(summary.complete, summary.samples));
            let limits = Completeness::of_view(view).limits();
            if limits.is_empty() { complete } else { format!("{complete} ({})", limits.join(", ")) }
        }
        None if summary.samples > 0 => "complete stacks: unknown".into(),
        None => return "no samples".into(),
    };
    let mut causes: Vec<String> = summary
        .causes
        .iter()
        .take(5)
        .map(|cause| {
            let file = cause.dso.map_or("", |dso| profile.strings.get(profile.dsos[dso].path));
            let blamed = if file.is_empty() { String::new() } else { format!(" ({file})") };
            format!("{} {}{blamed}", cause.cost.samples, cause.cut.text())
        })
        .collect();
    if summary.without_stack > 0 {
        causes.push(format!("{} no stack recorded", summary.without_stack));
    }
    if !causes.is_empty() {
        text.push_str(&format!("; cut: {}", causes.join(", ")));
    }
    if summary.causes.len() > 5 {
        text.push_str(&format!(", and {} more causes", summary.causes.len() - 5));
    }
    text
}
