//! The facts that the page shows above the picture.

use plumb_analyze::{Filter, Summary, View, is_clock};
use serde::Serialize;

/// Facts about the recording, under the names that the page reads. Unknown ones are left out.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Heading.
    pub title: String,
    /// The command that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Samples in the picture.
    pub samples: u64,
    /// Samples in the recording.
    pub recorded: u64,
    /// Samples in the picture whose stack reaches its root, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<u64>,
    /// Samples that the kernel dropped.
    pub lost: u64,
    /// Name of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Unit of weights.
    pub unit: String,
    /// Quantity of the weights: CPU time, another time, or the counted events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighs: Option<String>,
    /// Samples asked for per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Length of the selected time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Start of the selected time, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Name of the tool that wrote the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder: Option<String>,
    /// The filters, as they were typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<String>,
    /// Whether the page opens as an icicle.
    pub icicle: bool,
    /// Warnings for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Facts {
    /// Collects the facts about a view's recording. The title is the command, or the recording's name if no command is known.
    pub fn new(view: &View<'_>, filter: &Filter, name: &str) -> Self {
        let profile = view.profile();
        let meta = view.meta();
        let summary = Summary::new(view);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let command = some(&meta.command.join(" "));
        let shown = filter.event.map(|id| &profile.events[id]).or(profile.events.rows().first());
        let (event, unit) = shown.map_or(("", "samples"), |event| {
            (profile.strings.get(event.name), profile.strings.get(event.unit))
        });
        let weighs = if unit == "ns" && (event.is_empty() || is_clock(event)) { "CPU time" } else { event };
        Facts {
            title: command.clone().unwrap_or_else(|| name.to_owned()),
            command,
            samples: summary.samples,
            recorded: profile.samples.len() as u64,
            complete: (!summary.untold).then_some(summary.complete),
            lost: meta.lost_samples,
            event: some(event),
            unit: unit.to_owned(),
            weighs: some(weighs),
            hz: meta.frequency_hz,
            duration_ns: (meta.duration_ns > 0).then_some(meta.duration_ns),
            start_ms: (meta.start_unix_ns > 0).then_some(meta.start_unix_ns / 1_000_000),
            host: some(&meta.host),
            recorder: some(&meta.recorder),
            filters: None,
            icicle: false,
            warnings: view.warnings(),
        }
    }

    /// Returns the facts in one line, for output without a page.
    pub fn line(&self) -> String {
        let mut parts = vec![format!("{} samples", self.samples)];
        let percent = |complete| complete as f64 * 100.0 / self.samples.max(1) as f64;
        parts.extend(self.complete.map(|complete| format!("{:.1} % complete stacks", percent(complete))));
        parts.push(format!("{} lost", self.lost));
        parts.extend(self.event.clone());
        parts.extend(self.duration_ns.map(|ns| format!("{:.2} s", ns as f64 / 1e9)));
        parts.extend(self.filters.as_ref().map(|filters| format!("filtered: {filters}")));
        parts.join(", ")
    }
}
