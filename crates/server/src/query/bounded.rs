//! Profiles for answers whose cost grows with the samples: `plumb explain`'s report on a selection. They are bounded, and state the bounds.
//!
//! Invariant: anything left out has an entry in the answer. Elsewhere: exports, which are complete or an error.

use std::cmp::Reverse;

use plumb_documents::findings::{AnswerBound, BoundReason};
use plumb_formats::pprof::message::Profile;

use super::rows::CountedRows;
use crate::app::Context;
use crate::error::ApiError;
use crate::pyroscope::querier::StacktracesRequest;

/// A profile within the limits of a query.
pub(crate) struct BoundedProfile {
    pub message: Profile,
    /// Whether it has the numbers of its samples.
    pub is_counted: bool,
    /// The applied bounds; empty if it is complete.
    pub bounds: Vec<AnswerBound>,
}

/// Warning of a profile without the numbers of its samples.
const UNCOUNTED: &str = "the profiles came without the number of their samples: each stack counts as one, and small differences are not significant";

impl BoundedProfile {
    /// The shortcomings of the profile, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let uncounted = !self.is_counted && !self.message.sample.is_empty();
        let uncounted = uncounted.then(|| UNCOUNTED.to_owned());
        uncounted.into_iter().chain(self.bounds.iter().map(|bound| bound.says.clone())).collect()
    }
}

/// The samples of a selection, merged by stack, of as many stacks as an answer examines.
pub(crate) fn bounded_profile(
    context: &Context,
    request: &StacktracesRequest,
) -> Result<BoundedProfile, ApiError> {
    heaviest_stacks(context, request, context.options.query.stacks)
}

/// As [`bounded_profile`], with all stacks that there is memory for.
pub(crate) fn thinned_profile(
    context: &Context,
    request: &StacktracesRequest,
) -> Result<BoundedProfile, ApiError> {
    heaviest_stacks(context, request, usize::MAX)
}

fn heaviest_stacks(
    context: &Context,
    request: &StacktracesRequest,
    most: usize,
) -> Result<BoundedProfile, ApiError> {
    let (rows, stacks) = CountedRows::heaviest(context, request, most)?;
    let mut profile = bounded(context, &rows, usize::MAX)?;
    profile.bounds.extend(stacks);
    Ok(profile)
}

/// The rows as a profile with at most `stacks` stacks.
pub(super) fn bounded(
    context: &Context,
    rows: &CountedRows,
    stacks: usize,
) -> Result<BoundedProfile, ApiError> {
    let (mut message, is_counted) = (rows.merged(context)?, rows.is_counted);
    let rows = rows.taken.map(|rows| AnswerBound::new(BoundReason::Rows, rows.taken, rows.of));
    let stacks = heaviest(&mut message, stacks);
    let samples = told_apart(&mut message, context.options.query.samples);
    // The profile may combine profiles with different periods.
    message.period = 0;
    Ok(BoundedProfile {
        message,
        is_counted,
        bounds: [rows, stacks, samples].into_iter().flatten().collect(),
    })
}

/// Keeps the stacks with the largest values.
fn heaviest(message: &mut Profile, most: usize) -> Option<AnswerBound> {
    let all = message.sample.len();
    if all <= most {
        return None;
    }
    message.sample.sort_by_key(|sample| Reverse(sample.value.last().copied()));
    message.sample.truncate(most);
    Some(AnswerBound::new(BoundReason::Stacks, most as u64, all as u64))
}

/// Lowers the sample counts in front of the values of a profile, but not the values, until they are small enough: each sample takes memory, and
/// further ones hardly change the statistics.
fn told_apart(message: &mut Profile, most: u32) -> Option<AnswerBound> {
    if message.sample_type.len() < 2 {
        return None;
    }
    let counts = || message.sample.iter().filter_map(|sample| sample.value.first());
    let all = counts().fold(0_i64, |sum, &count| sum.saturating_add(count));
    if all <= i64::from(most) {
        return None;
    }
    for count in message.sample.iter_mut().filter_map(|sample| sample.value.first_mut()) {
        let part = i128::from(*count) * i128::from(most) / i128::from(all);
        *count = i64::try_from(part).unwrap_or(1).max(1);
    }
    Some(AnswerBound::new(BoundReason::Samples, most.into(), all.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use plumb_formats::pprof::message::{PprofSample, ValueType};

    use super::*;

    /// Stacks with these numbers of samples, each of value 10.
    fn message(counts: &[i64]) -> Profile {
        let sample = |(place, &count): (usize, &i64)| PprofSample {
            location_id: vec![place as u64],
            value: vec![count, count * 10],
            label: Vec::new(),
        };
        let sample_type = vec![ValueType::default(), ValueType::default()];
        Profile { sample_type, sample: counts.iter().enumerate().map(sample).collect(), ..Profile::default() }
    }

    #[test]
    fn the_heaviest_stacks_stay() {
        let mut some = message(&[3, 9, 1, 7]);
        assert_eq!(heaviest(&mut some, 4), None);
        assert_eq!(heaviest(&mut some, 2), Some(AnswerBound::new(BoundReason::Stacks, 2, 4)));
        assert_eq!(some.sample.iter().map(|one| one.value[0]).collect::<Vec<_>>(), [9, 7]);
    }

    #[test]
    fn samples_are_thinned_and_values_stay() {
        let mut some = message(&[600, 399, 1]);
        assert_eq!(told_apart(&mut some, 1000), None);
        assert_eq!(told_apart(&mut some, 100), Some(AnswerBound::new(BoundReason::Samples, 100, 1000)));
        let values: Vec<&[i64]> = some.sample.iter().map(|one| &*one.value).collect();
        assert_eq!(values, [&[60, 6000][..], &[39, 3990], &[1, 10]]);
    }
}
