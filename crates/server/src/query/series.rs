//! Sums over time. A step covers the time after the previous step, up to and including its own time stamp.

use std::collections::{BTreeMap, HashMap};

use plumb_store::{Cancellation, Dictionary, Labels, Selected, StackNodeId};

use super::call_site::{self, BeginsWith};
use super::labels::pairs;
use super::lasting::{Beginnings, parts};
use super::selection::{Range, of_type, select};
use crate::app::Context;
use crate::error::ApiError;
use crate::pyroscope::series::{Point, SelectSeriesRequest, SelectSeriesResponse, Series};

/// The number of [`SelectSeriesRequest::aggregation`] for means.
pub(crate) const AVERAGE: i32 = 1;

/// A profile's sum with the labels that it is grouped by.
pub(crate) struct GroupedProfile {
    /// Index of its series.
    pub series: usize,
    pub labels: Labels,
    pub time: i64,
    pub value: i64,
}

/// Sums over time by labels, largest first, as Pyroscope has them: the first step is whole, so that it begins before the range.
pub(crate) fn select_series(
    context: &Context,
    request: SelectSeriesRequest,
) -> Result<SelectSeriesResponse, ApiError> {
    let before = step_millis(request.step)?;
    sums(context, request, Steps::AsPyroscope { before }, None)
}

/// Sums over time by labels, largest first: they add up to the sum of the range. With a function, of the stacks that contain it.
///
/// A profile counts in the steps that it overlaps, to the part that it does: windows of 15 seconds in steps of another length would make a comb, and
/// more CPUs than there are. There are steps after the range for what lasts longer than it.
pub(crate) fn series_of(
    context: &Context,
    request: SelectSeriesRequest,
    function: Option<&str>,
) -> Result<SelectSeriesResponse, ApiError> {
    sums(context, request, Steps::ByOverlap, function)
}

/// The steps in which a profile counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// The one in which it begins. `before`: milliseconds before the range that count too.
    AsPyroscope { before: i64 },
    /// All that it overlaps.
    ByOverlap,
}

fn sums(
    context: &Context,
    request: SelectSeriesRequest,
    steps: Steps,
    function: Option<&str>,
) -> Result<SelectSeriesResponse, ApiError> {
    let selector = of_type(&request.profile_type_id, &request.label_selector)?;
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    let step = step_millis(request.step)?;
    let functions = call_site::functions(request.stack_trace_selector)?;
    let before = if let Steps::AsPyroscope { before } = steps { before } else { 0 };
    let wider = Range { start: range.start.saturating_sub(before), ..range };
    let selected = select(context, selector, wider)?;
    let profiles = match functions.is_empty() && function.is_none() {
        true => grouped(&selected, &request.group_by)?,
        false => grouped_of(&selected, &request.group_by, (&functions, function), &context.cancellation)?,
    };
    let mut groups: BTreeMap<Labels, BTreeMap<i64, (f64, u32)>> = BTreeMap::new();
    let beginnings = match steps {
        Steps::AsPyroscope { .. } => None,
        Steps::ByOverlap => {
            let beginnings = profiles.iter().map(|profile| (profile.series, profile.time));
            Some(Beginnings::new(beginnings, &context.cancellation)?)
        }
    };
    for profile in profiles {
        let GroupedProfile { series, labels, time, value } = profile;
        let end = beginnings.as_ref().map_or(time, |all| all.end(series, time));
        let of_group = groups.entry(labels).or_default();
        context.check()?;
        for (time, part) in parts((time, end), value, (range.start, step)) {
            let (sum, count) = of_group.entry(time).or_default();
            *sum += part as f64;
            *count += 1;
        }
    }
    let is_mean = request.aggregation == AVERAGE;
    let series = groups.into_iter().map(|(labels, points)| Series {
        labels: pairs(&labels),
        points: points
            .into_iter()
            .map(|(timestamp, (sum, count))| {
                let value = if is_mean { sum / f64::from(count) } else { sum };
                Point { value, timestamp }
            })
            .collect(),
    });
    let mut series: Vec<(f64, Series)> =
        series.map(|series| (series.points.iter().map(|point| point.value).sum(), series)).collect();
    // Stable: equal ones stay sorted by their labels.
    series.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    if let Some(limit) = limit(request.limit)? {
        series.truncate(limit);
    }
    Ok(SelectSeriesResponse { series: series.into_iter().map(|(_, series)| series).collect() })
}

/// A step in milliseconds.
pub(crate) fn step_millis(seconds: f64) -> Result<i64, ApiError> {
    if seconds.is_nan() || seconds < 0.001 {
        return Err(ApiError::invalid("step must be >= 1ms"));
    }
    // At most a year, in seconds.
    Ok((seconds.min(31_536_000.0) * 1000.0) as i64)
}

/// The number of groups to return; `None`: all.
pub(crate) fn limit(wanted: Option<i64>) -> Result<Option<usize>, ApiError> {
    let wanted = wanted.unwrap_or(0);
    let limit = usize::try_from(wanted);
    let limit = limit.map_err(|_| ApiError::invalid(format!("limit must be non-negative, got {wanted}")))?;
    Ok(Some(limit).filter(|&limit| limit > 0))
}

/// The step that contains a time: the first one of the grid from `start` that is not before it.
pub(crate) fn step_of(time: i64, start: i64, step: i64) -> i64 {
    let since = i128::from(time) - i128::from(start);
    let step = i128::from(step);
    let steps = since.div_euclid(step) + i128::from(since.rem_euclid(step) != 0);
    i64::try_from(i128::from(start) + steps * step).unwrap_or(time)
}

/// The sums of individual profiles.
pub(crate) fn grouped(selected: &Selected, by: &[String]) -> Result<Vec<GroupedProfile>, ApiError> {
    let (series, profiles) = selected.profiles()?;
    let groups: Vec<Labels> = series.iter().map(|labels| labels.only(by)).collect();
    let profile = profiles.into_iter().map(|profile| GroupedProfile {
        series: profile.series,
        labels: groups[profile.series].clone(),
        time: profile.time.0,
        value: profile.total,
    });
    Ok(profile.collect())
}

/// As [`grouped`], for stacks that begin with given functions, and contain a function.
fn grouped_of(
    selected: &Selected,
    by: &[String],
    (functions, function): (&[String], Option<&str>),
    cancellation: &Cancellation,
) -> Result<Vec<GroupedProfile>, ApiError> {
    let batch = selected.batch()?;
    let mut begins = BeginsWith::new(&batch.dictionary, functions);
    let with_function = function.map(|name| with_function(&batch.dictionary, name));
    let has = |stack: StackNodeId| with_function.as_ref().is_none_or(|with| with[stack.place()]);
    let mut sums: HashMap<_, i64> = HashMap::new();
    for sample in batch.samples() {
        cancellation.check()?;
        if has(sample.stack) && begins.is(sample.stack) {
            let sum = sums.entry((sample.series, sample.time)).or_default();
            *sum = sum.saturating_add(sample.value);
        }
    }
    let profile = sums.into_iter().map(|((series, time), value)| GroupedProfile {
        series: series.place(),
        labels: batch.labels(series).only(by),
        time: time.0,
        value,
    });
    Ok(profile.collect())
}

/// For each node, whether its function or one of its callers has the name.
fn with_function(dictionary: &Dictionary, name: &str) -> Vec<bool> {
    let mut with: Vec<bool> = Vec::with_capacity(dictionary.nodes().len());
    for node in dictionary.nodes() {
        let is_below = node.caller.is_some_and(|caller| with[caller.place()]);
        with.push(is_below || dictionary.resolve(dictionary.frame_at(node.frame).function) == name);
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_with_its_own_time() {
        for (time, step) in [(100, 100), (101, 115), (115, 115), (116, 130), (99, 100), (85, 85), (86, 100)] {
            assert_eq!(step_of(time, 100, 15), step, "{time}");
        }
        assert!(step_millis(0.0001).is_err() && step_millis(f64::NAN).is_err() && step_millis(-1.0).is_err());
        assert_eq!(step_millis(0.5).ok(), Some(500));
        assert!(step_of(i64::MAX, i64::MIN, 7) > 0);
    }
}
