//! Answers about time: timelines, heat maps, flame charts.

use plumb_analyze::{Filter, FlameChart, Timeline, View, is_aggregated, zero_unix_ns};
use plumb_profile::Event;
use serde::Serialize;

use super::paths::{event_name, unit};
use super::selected::Selected;
use super::{Answer, AnswerError, LoadedRecording, Question, body};
use crate::flame::{Facts, payload};
use crate::heatmap::{COLUMNS, Heatmap, MOST_ROWS, ROWS};
use crate::timeline::TimelineDocument;
use crate::waits_map::WaitsMap;

/// Largest number of boxes in a flame chart: a page cannot handle more.
const MOST_BOXES: usize = 2_000_000;

/// Answers with the weights of threads over time, regardless of the selected time range: ranges are chosen there.
pub(super) fn timeline_of(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &["bins", "threads", "skip", "from_ns", "until_ns"])?;
    let bins = selected.number("bins", 400, 1..=4000)?;
    let threads = selected.number("threads", 64, 1..=1000)?;
    let skip = selected.number("skip", 0, 0..=100_000_000)?;
    let from = selected.number("from_ns", 0, 0..=usize::MAX)? as u64;
    let window = from..selected.number("until_ns", 0, 0..=usize::MAX)? as u64;
    let view = View::new(&recording.profile, &selected.whole(&recording.profile)?);
    let timeline = Timeline::new(&view, bins, skip..skip + threads, window);
    body(&TimelineDocument::new(&view, &timeline))
}

/// Answers with a heat map of one event, regardless of the selected time range: weights by time and offset within the second, or waits by time and
/// duration.
pub(super) fn heatmap(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let profile = &*recording.profile;
    let selected = Selected::new(parameters, &["by", "rows", "columns"])?;
    let rows = selected.number("rows", ROWS, 1..=MOST_ROWS)?;
    let columns = selected.number("columns", COLUMNS, 1..=2000)?;
    let filter = selected.any_time(profile)?;
    let view = View::new(profile, &filter);
    let is_timed = is_timed(recording);
    let event = event_name(profile, &filter);
    let has_latency = event.is_some_and(|event| Event::WAITS.contains(&event));
    let mut answer = match selected.text("by").unwrap_or("offset") {
        "offset" => {
            let map = Heatmap::of_view(&view, is_timed, rows, columns);
            HeatmapAnswer::of_offsets(map, unit(profile, &filter).unwrap_or("samples"), zero_unix_ns(profile))
        }
        "latency" if !has_latency => {
            let message =
                "only waits have a length: select the event off-cpu or run-queue (plumb record --off-cpu)";
            return Err(AnswerError::Invalid(message.into()));
        }
        "latency" if !is_timed => return Err(untimed()),
        "latency" => HeatmapAnswer::of_waits(WaitsMap::of_view(&view, columns)),
        other => {
            return Err(AnswerError::Invalid(format!("by={other}: a heat map is by offset or by latency")));
        }
    };
    (answer.event, answer.has_latency) = (event, has_latency);
    body(&answer)
}

/// Weights by time and by offset within the second, or waits by time and by length.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct HeatmapAnswer<'a> {
    version: u32,
    event: Option<&'a str>,
    unit: &'a str,
    column_ns: u64,
    /// Begin of the first column, since the start of the recording: times since 1970 exceed the precision of JavaScript's numbers.
    first_ns: i64,
    columns: Vec<Vec<u64>>,
    /// Begin of the first column of offsets, since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    start_ns: Option<u64>,
    /// Length of a row of offsets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    row_ns: Option<u64>,
    /// Weight of the samples without a time, which have no offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    untimed: Option<u64>,
    /// The shortest length of each row of lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    rows_from_ns: Option<Vec<u64>>,
    /// Whether the event's samples are waits, which have a length.
    has_latency: bool,
}

impl<'a> HeatmapAnswer<'a> {
    /// `zero_unix_ns`: start of the recording.
    fn of_offsets(map: Heatmap, unit: &'a str, zero_unix_ns: i64) -> Self {
        Self {
            version: crate::JSON_VERSION,
            unit,
            column_ns: map.column_ns,
            first_ns: i64::try_from(map.start_ns).map_or(0, |ns| ns.saturating_sub(zero_unix_ns)),
            columns: map.columns,
            start_ns: Some(map.start_ns),
            row_ns: Some(map.row_ns),
            untimed: Some(map.untimed),
            ..Self::default()
        }
    }

    fn of_waits(map: WaitsMap) -> Self {
        Self {
            version: crate::JSON_VERSION,
            unit: "waits",
            column_ns: map.column_ns,
            columns: map.columns,
            rows_from_ns: Some(map.rows),
            ..Self::default()
        }
    }
}

/// Answers with a flame chart.
pub(super) fn chart(
    recording: &LoadedRecording,
    view: &View<'_>,
    facts: &Facts,
) -> Result<Answer, AnswerError> {
    if !is_timed(recording) {
        return Err(untimed());
    }
    let Some(chart) = FlameChart::new(view, MOST_BOXES) else {
        let message = format!("more than {MOST_BOXES} boxes: select a shorter time, or one thread");
        return Err(AnswerError::Invalid(message));
    };
    Ok(("application/octet-stream", payload::encode_chart(&chart, facts)?))
}

/// Whether samples have times of their own.
fn is_timed(recording: &LoadedRecording) -> bool {
    !is_aggregated(&View::new(&recording.profile, &Filter::default()))
}

fn untimed() -> AnswerError {
    AnswerError::Invalid(
        "samples have no times of their own here: identical stacks were aggregated; record with plumb record --timeline".into(),
    )
}
