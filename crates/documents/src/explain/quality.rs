//! The quality of the recording, as the report has it.

use plumb_analyze::{CutCause, Explanation};
use serde::Deserialize;

use super::document::FileCost;
use super::shares::{ShareJson, WeightJson};

document! {
    /// The quality of the recording.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    pub struct QualityJson as "RecordingQuality" of (report: &Explanation<'_>) {
        /// Number of samples.
        pub samples: u64 = report.view.part().samples,
        lost_samples: Option<u64> = Some(report.view.profile().meta.lost_samples)
            .filter(|&lost| lost > 0 || report.untold.is_none()),
        damaged_records: u64 = report.view.profile().meta.damaged_records,
        frequency_hz: Option<u32> = report.view.profile().meta.frequency_hz,
        coverage_percent: Option<f64> = report.quality.coverage,
        complete_stacks_percent: Option<f64> = report.quality.stacks.complete_percent(),
        #[serde(skip_deserializing)]
        cut: Vec<CutJson> = report.quality.stacks.causes.iter().map(CutJson::new).collect(),
        nameless: ShareJson = ShareJson::new(report.quality.nameless_share),
        #[serde(skip_deserializing)]
        nameless_files: Vec<FileCost> = report.quality.nameless.iter().map(FileCost::new).collect(),
        without_line_percent: f64 = report.quality.without_line,
        ten_percent_is: ShareJson = ShareJson::new(report.quality.tenth),
        recorder_cpu_ns: Option<u64> = report.view.profile().meta.recorder_cpu_ns,
        warnings: Vec<String> = report.view.warnings(),
    }
}

document! {
    struct CutJson as "CutWeight" of (cause: &CutCause) {
        reason: &'static str = cause.cut.name(),
        cost: WeightJson = WeightJson::new(cause.cost),
    }
}
