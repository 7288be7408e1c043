//! Members that several parts of the report have: costs, shares, places in code.

use plumb_analyze::{CallPath, Cost, FrameIndex, HotFunction, Kind, Share, View};
use serde::Deserialize;

document! {
    /// A share in percent, with the ends of its 95% confidence interval.
    #[derive(Clone, Copy, Debug, Default, Deserialize)]
    pub struct ShareJson as "ShareInterval" of (share: Share) {
        /// The share.
        pub percent: f64 = share.percent,
        /// Lower end.
        pub low: f64 = share.low,
        /// Upper end.
        pub high: f64 = share.high,
    }
}

document! {
    /// The weight of samples, and their number.
    pub struct WeightJson as "Weight" of (cost: Cost) {
        weight: u64 = cost.weight,
        samples: u64 = cost.samples,
    }
}

document! {
    /// A function as one of its frames has it.
    pub struct CodePlaceJson as "CodePlace" of (view: &View<'_>, frame: FrameIndex) {
        function: String = view.frame(frame).name.to_string(),
        file: String = view.frame(frame).dso_path.to_owned(),
        kernel: bool = view.frame(frame).kind == Kind::Kernel,
    }
}

document! {
    /// A function with its part of the samples.
    pub(super) struct PlaceCostJson as "PlaceCost" of (view: &View<'_>, part: &(FrameIndex, Cost)) {
        #[serde(flatten)]
        place: CodePlaceJson = CodePlaceJson::new(view, part.0),
        cost: WeightJson = WeightJson::new(part.1),
    }
}

document! {
    /// A source line.
    pub(super) struct LineJson as "SourceLine" of (file: &str, line: u32) {
        file: String = file.to_owned(),
        line: u32 = line,
    }
}

document! {
    /// A hot function.
    pub(super) struct HotFunctionJson as "HotFunction" of (view: &View<'_>, one: &HotFunction, paths: Option<&Vec<CallPath>>) {
        #[serde(flatten)]
        place: CodePlaceJson = CodePlaceJson::new(view, one.frame),
        inlined: bool = one.inlined,
        #[serde(rename = "self")]
        own: ShareJson = ShareJson::new(one.own_share),
        self_cost: WeightJson = WeightJson::new(one.own),
        total: ShareJson = ShareJson::new(one.total_share),
        total_cost: WeightJson = WeightJson::new(one.total),
        line: Option<LineJson> = one.line.as_ref().map(|(file, line)| LineJson::new(file, *line)),
        callers: Option<Vec<CallPathJson>> =
            paths.map(|paths| paths.iter().map(|path| CallPathJson::new(view, one, path)).collect()),
    }
}

document! {
    pub(super) struct CallPathJson as "CallPath" of (view: &View<'_>, of: &HotFunction, path: &CallPath) {
        callers: Vec<String> = path.callers.iter().map(|&frame| view.frame(frame).name.to_string()).collect(),
        whole: bool = path.is_whole,
        cost: WeightJson = WeightJson::new(path.cost),
        percent_of_function: f64 = path.cost.percent_of(of.own),
    }
}
