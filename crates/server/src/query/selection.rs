//! The samples that a request selects: a profile type, a label selector, and a time range within the limits.

use plumb_store::{Millis, PROFILE_TYPE, ProfileType, Selected, Selection, Selector};

use super::duration::{GoDuration, PrometheusDuration};
use crate::app::Context;
use crate::error::ApiError;
use crate::options::QueryLimits;
use crate::peers;

/// A range of time in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub start: i64,
    pub end: i64,
}

impl Range {
    /// Checks a range against the limits. Both ends are required.
    pub fn checked(start: i64, end: i64, limits: &QueryLimits) -> Result<Self, ApiError> {
        if start == 0 || end == 0 {
            return Err(ApiError::invalid("missing time range in the query"));
        }
        Self::within(start, end, limits)
    }

    /// As [`checked`](Self::checked), but without both ends the range is all of time.
    pub fn or_all(start: i64, end: i64, limits: &QueryLimits) -> Result<Self, ApiError> {
        if start == 0 && end == 0 {
            return Ok(Self { start: i64::MIN, end: i64::MAX });
        }
        Self::within(start, end, limits)
    }

    fn within(start: i64, end: i64, limits: &QueryLimits) -> Result<Self, ApiError> {
        if start > end {
            return Err(ApiError::invalid("query start time is after end time"));
        }
        let length = u128::from(end.abs_diff(start));
        match limits.length {
            Some(limit) if length > limit.as_millis() => Err(ApiError::invalid(format!(
                "the query time range exceeds the limit (max_query_length, actual: {}, limit: {})",
                GoDuration(length),
                PrometheusDuration(limit.as_millis())
            ))),
            _ => Ok(Self { start, end }),
        }
    }
}

/// Parses a request's profile type.
pub(crate) fn profile_type(text: &str) -> Result<ProfileType, ApiError> {
    ProfileType::parse(text).ok_or_else(|| {
        let parts = text.split(':').count();
        ApiError::invalid(format!(
            "profile-type selection must be of the form <name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>(:delta), got({parts}): {text:?}"
        ))
    })
}

/// A selector for the series of a type.
pub(crate) fn of_type(kind: &str, selector: &str) -> Result<Selector, ApiError> {
    let kind = profile_type(kind)?;
    Ok(Selector::parse(selector)?.with(PROFILE_TYPE, kind.to_string()))
}

/// Reads the selected profiles from the store.
pub(crate) fn select(context: &Context, selector: Selector, range: Range) -> Result<Selected, ApiError> {
    let selection = Selection { selector, from: Millis(range.start), until: Millis(range.end) };
    peers::select(context, selection)
}

/// Number of nodes of a flame graph: the requested number, within the limits.
pub(crate) fn nodes(wanted: Option<i64>, limits: &QueryLimits) -> Result<usize, ApiError> {
    let most = limits.most_nodes;
    match wanted.unwrap_or(0) {
        0 => Ok(limits.nodes),
        below if below < 0 => {
            Err(ApiError::invalid(format!("max flamegraph nodes limit must be set (max allowed {most})")))
        }
        wanted => usize::try_from(wanted).ok().filter(|&wanted| wanted <= most).ok_or_else(|| {
            ApiError::invalid(format!("max flamegraph nodes limit {wanted} is greater than allowed {most}"))
        }),
    }
}
