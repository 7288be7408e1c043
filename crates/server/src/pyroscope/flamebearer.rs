//! The answer of `/pyroscope/render`: a flame graph with a timeline, in a JSON format of its own.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::querier::{FlameGraph, FlameGraphDiff, Level};
use super::series::Point;

/// The answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rendered {
    pub version: u32,
    pub flamebearer: Flamebearer,
    pub metadata: Metadata,
    pub timeline: Option<Timeline>,
    pub groups: Option<BTreeMap<String, Timeline>>,
    pub heatmap: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ticks: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right_ticks: Option<i64>,
}

/// The flame graph.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Flamebearer {
    pub names: Vec<String>,
    pub levels: Levels,
    pub num_ticks: i64,
    pub max_self: i64,
}

impl From<FlameGraph> for Flamebearer {
    fn from(graph: FlameGraph) -> Self {
        let FlameGraph { names, levels, total, max_self } = graph;
        Self { names, levels: Levels(levels), num_ticks: total, max_self }
    }
}

impl From<FlameGraphDiff> for Flamebearer {
    fn from(graph: FlameGraphDiff) -> Self {
        let FlameGraphDiff { names, levels, total, max_self, .. } = graph;
        Self { names, levels: Levels(levels), num_ticks: total, max_self }
    }
}

/// Rows of boxes, written as lists of numbers.
pub(crate) struct Levels(pub Vec<Level>);

impl Serialize for Levels {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(self.0.iter().map(|level| &level.values))
    }
}

/// The unit and format of the numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub format: &'static str,
    pub spy_name: &'static str,
    pub sample_rate: u32,
    pub units: String,
    pub name: String,
}

/// Sums over time, in steps of seconds. A step without profiles has zero.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timeline {
    /// Seconds since 1970.
    pub start_time: i64,
    pub samples: Vec<u64>,
    /// Seconds of a step.
    pub duration_delta: i64,
    pub watermarks: Option<()>,
}

/// Most steps of a timeline: a step is a fraction of the range, so no range has more.
const MOST_STEPS: i64 = 20_000;

impl Timeline {
    /// From the points of a range in milliseconds, whose ends are rounded down to the start of a step.
    pub fn new(points: &[Point], start: i64, end: i64, step: i64) -> Self {
        let millis = step.max(1).saturating_mul(1000);
        let (start, end) = (start.div_euclid(millis), end.div_euclid(millis));
        let steps = end.saturating_sub(start).clamp(0, MOST_STEPS);
        let mut samples = vec![0; usize::try_from(steps).unwrap_or(0)];
        for point in points {
            let step = point.timestamp.div_euclid(millis).saturating_sub(start);
            if let Some(sample) = usize::try_from(step).ok().and_then(|step| samples.get_mut(step)) {
                *sample = point.value as u64;
            }
        }
        let start_time = start.saturating_mul(step);
        Self { start_time, samples, duration_delta: step, watermarks: None }
    }
}
