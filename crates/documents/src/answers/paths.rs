//! The paths of a recording, each with the function that answers it.

use plumb_analyze::{
    Filter, Flame, Grouping, Key, Pattern, Procs, Report, ReportOptions, Summary, Tree, TreeOptions, View,
    coverage, explained_event, is_clock, is_untold,
};
use plumb_profile::{Event, Id, Profile};

use super::calls::calls;
use super::code::listing;
use super::compare::{diff, diff_flame};
use super::over_time::{chart, heatmap, timeline_of};
use super::selected::Selected;
use super::waits::waits;
use super::{Answer, AnswerError, AnswerFn, Lack, LoadedRecording, Question, body};
use crate::explain;
use crate::flame::{Facts, payload};
use crate::kernel::{EventOfTable, KernelDocument};
use crate::kernel_time;
use crate::meta::MetaDocument;
use crate::procs::ProcessesDocument;
use crate::table::{CauseJson, RowJson, TreeJson, causes};

/// All paths below a recording's own with what answers them.
pub const PATHS: [(&str, AnswerFn); 15] = [
    ("", about),
    ("/timeline", timeline_of),
    ("/heatmap", heatmap),
    ("/calls", calls),
    ("/flame", flame),
    ("/functions", functions),
    ("/function", function),
    ("/tree", tree),
    ("/processes", processes),
    ("/kernel", kernel_of),
    ("/waits", waits),
    ("/explain", explain_of),
    ("/listing", listing),
    ("/diff", diff),
    ("/diff/flame", diff_flame),
];

/// Facts, events, and how far the selection is to be trusted.
fn about(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let profile = &*recording.profile;
    let selected = Selected::new(parameters, &[])?;
    let (view, filter) = selected.view(profile)?;
    // The CPU time and the warnings are beside the number of samples that are selected.
    let mut facts = MetaDocument::new(&profile.meta).with_warnings(view.warnings());
    facts.target_cpu_ns = kernel_time::cpu_ns(&view, &filter);
    let chosen = SelectedPart::new(&view, &filter, &Summary::new(&view), selected.typed());
    body(&AboutAnswer::new(recording, facts, chosen))
}

document! {
    /// Facts of a recording, and of what is selected of it.
    pub(crate) struct AboutAnswer<'r> as "RecordingAbout" of (
        recording: &'r LoadedRecording,
        facts: MetaDocument<'r>,
        selected: SelectedPart<'r>,
    ) {
        #[serde(flatten)]
        facts: MetaDocument<'r> = facts,
        name: &'r str = &recording.name,
        recorder_cpu_ns: Option<u64> = recording.profile.meta.recorder_cpu_ns,
        events: Vec<EventEntry<'r>> = events(&recording.profile),
        lacks: &'r [Lack] = &recording.lacks,
        selected: SelectedPart<'r> = selected,
    }
}

document! {
    /// The selected part of a recording, and how far it is to be trusted.
    pub(crate) struct SelectedPart<'p> as "SelectedPart" of (
        view: &View<'p>,
        filter: &Filter,
        summary: &Summary,
        options: String,
    ) {
        event: Option<&'p str> = event_name(view.profile(), filter),
        unit: Option<&'p str> = unit(view.profile(), filter),
        duration_ns: u64 = view.meta().duration_ns,
        samples: u64 = view.recorded().samples,
        weight: u64 = view.recorded().weight,
        kept_samples: u64 = view.part().samples,
        kept_weight: u64 = view.part().weight,
        coverage_percent: Option<f64> = coverage(view.profile(), filter),
        complete_percent: Option<f64> = summary.complete_percent(),
        cut_causes: Vec<CauseJson> = causes(view, summary),
        options: String = options,
    }
}

document! {
    /// An event of a recording, with all its samples.
    pub(crate) struct EventEntry<'p> as "EventEntry" of (profile: &'p Profile, event: &Event, sum: (u64, u64)) {
        name: &'p str = profile.strings.get(event.name),
        unit: &'p str = profile.strings.get(event.unit),
        samples: u64 = sum.0,
        weight: u64 = sum.1,
        is_clock: bool = is_clock(profile.strings.get(event.name)),
    }
}

fn events(profile: &Profile) -> Vec<EventEntry<'_>> {
    let mut sums = vec![(0_u64, 0_u64); profile.events.len()];
    for sample in profile.samples.iter() {
        let sum = &mut sums[sample.event.index()];
        *sum = (sum.0 + 1, sum.1.saturating_add(sample.weight));
    }
    let events = profile.events.rows().iter().zip(sums);
    events.map(|(event, sum)| EventEntry::new(profile, event, sum)).collect()
}

pub(super) fn event_name<'p>(profile: &'p Profile, filter: &Filter) -> Option<&'p str> {
    filter.event.map(|event| profile.strings.get(profile.events[event].name))
}

pub(super) fn unit<'p>(profile: &'p Profile, filter: &Filter) -> Option<&'p str> {
    filter.event.map(|event| profile.strings.get(profile.events[event].unit))
}

/// Number of boxes of a flame graph: more than a screen shows.
const DEFAULT_BOXES: usize = 40_000;
/// Most boxes that can be requested.
const MOST_BOXES: usize = 10_000_000;

/// A flame graph as `plumb flame` puts it into its page, of the heaviest boxes.
fn flame(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["by", "order", "boxes"])?;
    let most = selected.number("boxes", DEFAULT_BOXES, 1..=MOST_BOXES)?;
    let profile = &*recording.profile;
    let grouping = match selected.text("by") {
        None => crate::flame::default_grouping(profile),
        Some("none") => Grouping::None,
        Some("thread") => Grouping::Thread,
        Some("comm") => Grouping::Comm,
        Some("process") => Grouping::Process,
        Some(other) => {
            return Err(AnswerError::Invalid(format!(
                "by={other}: stacks are grouped by none, thread, comm or process"
            )));
        }
    };
    let (view, filter) = selected.view(profile)?;
    let facts = Facts::new(&view, &filter, &recording.name);
    match selected.text("order") {
        None | Some("name") => {
            let mut flame = Flame::new(&view, grouping);
            flame.keep_heaviest(most);
            Ok(("application/octet-stream", payload::encode(&flame, &facts)?))
        }
        Some("time") => chart(recording, &view, &facts),
        Some(other) => Err(AnswerError::Invalid(format!("order={other}: boxes are ordered by name or time"))),
    }
}

/// Most rows of a table.
const MOST_ROWS: usize = 100_000;

fn functions(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["sort", "limit"])?;
    let limit = selected.number("limit", 1000, 1..=MOST_ROWS)?;
    let keys = selected.text("sort").unwrap_or("dso,sym").split(',').map(str::parse::<Key>);
    let keys = keys.collect::<Result<Vec<Key>, _>>();
    let keys = keys.map_err(|error| AnswerError::Invalid(format!("sort: {error}")))?;
    let profile = &*recording.profile;
    let (view, filter) = selected.view(profile)?;
    let options = ReportOptions { keys, ..ReportOptions::default() };
    let report = Report::new(&view, &filter, &options);
    let rows = report.rows.iter().take(limit).map(|row| RowJson::new(&view, row, &options.keys));
    let rows_more = report.rows.len().saturating_sub(limit);
    body(&FunctionsAnswer::new(Head::new(&view, &filter), rows.collect(), rows_more))
}

document! {
    /// Members common to all tables of one event.
    pub(crate) struct Head<'p> as "Head" of (view: &View<'p>, filter: &Filter) {
        version: u32 = crate::JSON_VERSION,
        event: Option<&'p str> = event_name(view.profile(), filter),
        unit: Option<&'p str> = unit(view.profile(), filter),
        samples: u64 = view.recorded().samples,
        weight: u64 = view.recorded().weight,
        kept_samples: u64 = view.part().samples,
        kept_weight: u64 = view.part().weight,
    }
}

document! {
    pub(crate) struct FunctionsAnswer<'p> as "FunctionsAnswer" of (head: Head<'p>, rows: Vec<RowJson>, rows_more: usize) {
        #[serde(flatten)]
        head: Head<'p> = head,
        rows: Vec<RowJson> = rows,
        rows_more: usize = rows_more,
    }
}

document! {
    pub(crate) struct TreesAnswer<'p> as "NamedTreesAnswer" of (head: Head<'p>, trees: Vec<TreeJson>) {
        #[serde(flatten)]
        head: Head<'p> = head,
        trees: Vec<TreeJson> = trees,
    }
}

/// Callers and callees of a function, all paths merged.
fn function(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["name", "min"])?;
    let name = selected.required("name")?;
    let options = TreeOptions::above(selected.percent("min", 0.1)?);
    let profile = &*recording.profile;
    let (view, filter) = selected.view(profile)?;
    let pattern = Pattern::Exact(name.to_owned());
    let callers = Tree::callers(&view, &pattern, options);
    let callees = Tree::callees(&view, &pattern, options);
    let named = Some(name.to_owned());
    let trees = vec![
        TreeJson::new(&view, "callers", named.clone(), &callers),
        TreeJson::new(&view, "callees", named, &callees),
    ];
    body(&TreesAnswer::new(Head::new(&view, &filter), trees))
}

fn tree(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["direction", "min"])?;
    let options = TreeOptions::above(selected.percent("min", 0.5)?);
    let profile = &*recording.profile;
    let (view, filter) = selected.view(profile)?;
    let (kind, tree) = match selected.text("direction").unwrap_or("top-down") {
        "top-down" => ("top-down", Tree::top_down(&view, options)),
        "bottom-up" => ("bottom-up", Tree::bottom_up(&view, options)),
        other => {
            return Err(AnswerError::Invalid(format!(
                "direction={other}: a call tree is top-down or bottom-up"
            )));
        }
    };
    let trees = vec![TreeJson::new(&view, kind, None, &tree)];
    body(&TreesAnswer::new(Head::new(&view, &filter), trees))
}

fn processes(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &[])?;
    let profile = &*recording.profile;
    // Nobody's process idles.
    let filter = Filter { no_idle: true, ..selected.filter(profile)? };
    let view = View::new(profile, &filter);
    let found = Procs::new(&view, &filter);
    let all: Vec<usize> = (0..found.programs.len()).collect();
    body(&ProcessesDocument::new(&view, &found, &all))
}

fn kernel_of(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["stacks"])?;
    let stacks = selected.number("stacks", 3, 0..=100)?;
    let profile = &*recording.profile;
    let (view, filter) = selected.view(profile)?;
    let time = kernel_time::of_view(&view, &filter);
    let mut document = KernelDocument::new(&view, &time, stacks);
    document.of_event =
        Some(EventOfTable { event: event_name(profile, &filter), unit: unit(profile, &filter) });
    body(&document)
}

/// The verdict. Of the event that is selected if that is a clock, otherwise of the first that is.
fn explain_of(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["threshold"])?;
    let threshold = selected.percent("threshold", 10.0)?;
    let profile = &*recording.profile;
    let filter = selected.filter(profile)?;
    let is_explained = |name: &str| is_clock(name) || is_untold(name);
    let event = match event_name(profile, &filter) {
        Some(name) if is_explained(name) => filter.event,
        _ => explained_event(profile),
    };
    let Some(event) = event else {
        return Err(AnswerError::NotFound(
            "no samples of processor time, which is what is explained; the other views show the events that there are".into(),
        ));
    };
    let filter = Filter { event: Some(event), no_idle: true, ..selected.any_event(profile)? };
    body(&explain::verdict(profile, &filter, threshold, asked.named_files))
}
