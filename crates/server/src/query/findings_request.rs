//! The request for findings.

use plumb_store::Selector;

use crate::pyroscope::querier::StacktracesRequest;

/// Least time before the range in which earlier versions are looked for, in milliseconds.
const LEAST_BEFORE: i64 = 900_000;

/// The request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FindingsRequest {
    /// The profile type of CPU time.
    pub profile_type: String,
    pub label_selector: String,
    pub start: i64,
    pub end: i64,
    /// Smallest share of a service's CPU time for a finding.
    pub threshold: f64,
    /// Most services that are examined.
    pub services: usize,
}

impl FindingsRequest {
    /// Default number of services that are examined.
    pub const SERVICES: usize = 20;
    /// Default threshold, as `plumb explain` has it.
    pub const THRESHOLD: f64 = 10.0;

    /// The request for the findings in all services of a range, with the defaults.
    pub fn of_all(profile_type: &str, (start, end): (i64, i64)) -> Self {
        Self {
            profile_type: profile_type.to_owned(),
            label_selector: String::new(),
            start,
            end,
            threshold: Self::THRESHOLD,
            services: Self::SERVICES,
        }
    }

    /// Start of the time before the range in which a version is looked for with which the one in the range is compared: as long as the range.
    pub fn before(&self) -> i64 {
        self.start.saturating_sub(self.end.saturating_sub(self.start).max(LEAST_BEFORE)).max(1)
    }

    /// The request for the samples of its time that a selector matches.
    pub fn stacktraces(&self, selector: Selector) -> StacktracesRequest {
        StacktracesRequest {
            profile_type_id: self.profile_type.clone(),
            label_selector: selector.to_string(),
            start: self.start,
            end: self.end,
            ..StacktracesRequest::default()
        }
    }
}
