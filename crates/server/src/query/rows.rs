//! Rows of a selection, with the numbers of samples where all profiles have them.
//!
//! Elsewhere: profiles made of them (`profile`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use plumb_documents::findings::{AnswerBound, BoundReason};
use plumb_formats::pprof::message::Profile;
use plumb_store::{
    Batch, Cancellation, HeaviestStacks, Labels, Millis, PROFILE_TYPE, ProfileType, RowsTaken, SERVICE,
    Selected, Selector, SeriesKey, StoreError, StoredSample,
};

use super::profile::merged;
use super::selection::{Range, profile_type, select};
use crate::app::Context;
use crate::error::ApiError;
use crate::pyroscope::querier::StacktracesRequest;

/// Labels that differ between the kinds of one profile.
const KIND_LABELS: [&str; 3] = [PROFILE_TYPE, "__type__", "__unit__"];

/// Samples, with what they refer to.
#[derive(Clone, Copy)]
pub(super) struct SampleRows<'b> {
    pub batch: &'b Batch,
    pub samples: &'b [StoredSample],
}

impl<'b> SampleRows<'b> {
    /// All of a batch.
    pub fn all(batch: &'b Batch) -> Self {
        Self { batch, samples: batch.samples() }
    }

    /// The series that have some of the samples, by place.
    pub fn series(&self) -> BTreeMap<usize, &'b Labels> {
        let keys: HashSet<SeriesKey> = self.samples.iter().map(|sample| sample.series).collect();
        keys.into_iter().map(|key| (key.place(), self.batch.labels(key))).collect()
    }
}

/// Samples of a selection with their numbers where all profiles have them.
pub(super) struct CountedRows {
    batch: Arc<Batch>,
    /// Samples of the batch that count; `None`: all.
    samples: Option<Vec<StoredSample>>,
    /// Whether all profiles have the numbers of their samples.
    pub is_counted: bool,
    /// The part that was read, if not all.
    pub taken: Option<RowsTaken>,
    kinds: Vec<ProfileType>,
    end: i64,
}

impl CountedRows {
    /// Reads at most `rows` rows.
    pub fn read(context: &Context, request: &StacktracesRequest, rows: usize) -> Result<Self, ApiError> {
        let (selected, end) = counted(context, request)?;
        let (selected, taken) = if rows == usize::MAX { (selected, None) } else { selected.at_most(rows)? };
        let batch = Arc::new(selected.batch()?);
        let new = Self { batch, samples: None, is_counted: true, taken, kinds: Vec::new(), end };
        new.with_kinds(context, request)
    }

    /// Reads the sums of the `most` stacks with the largest values. Says so if there are more.
    pub fn heaviest(
        context: &Context,
        request: &StacktracesRequest,
        most: usize,
    ) -> Result<(Self, Option<AnswerBound>), ApiError> {
        let (selected, end) = counted(context, request)?;
        let (is_counted, kinds) = counted_kinds(request, |ids| {
            let (series, profiles) = selected.profiles()?;
            let profiles = profiles.iter().map(|profile| (profile.series, profile.time));
            is_counted((series.iter().enumerate().collect(), profiles), ids, &context.cancellation)
        })?;
        let kind = profile_type(&request.profile_type_id)?.to_string();
        let HeaviestStacks { batch, taken, of } = selected.heaviest_stacks(&kind, most)?;
        let bound = (taken < of).then(|| AnswerBound::new(BoundReason::Stacks, taken, of));
        let batch = Arc::new(batch);
        Ok((Self { batch, samples: None, is_counted, taken: None, kinds, end }, bound))
    }

    /// Reads the rows of several services at once, as each reading of a block takes as long as all. `None` if there are more than `rows`, or more than
    /// there is memory for.
    pub fn by_service(
        context: &Context,
        request: &StacktracesRequest,
        rows: usize,
    ) -> Result<Option<HashMap<String, Self>>, ApiError> {
        let (selected, end) = counted(context, request)?;
        let (selected, taken) = selected.at_most(rows)?;
        if taken.is_some() {
            return Ok(None);
        }
        let batch = match selected.batch() {
            Err(StoreError::TooLarge { .. }) => return Ok(None),
            batch => Arc::new(batch?),
        };
        let of = by_service(&batch, context)?;
        let one = |(service, samples): (&str, Vec<StoredSample>)| {
            let (batch, samples) = (batch.clone(), Some(samples));
            let new = Self { batch, samples, is_counted: true, taken: None, kinds: Vec::new(), end };
            Ok((service.to_owned(), new.with_kinds(context, request)?))
        };
        of.into_iter().map(one).collect::<Result<_, _>>().map(Some)
    }

    fn with_kinds(self, context: &Context, request: &StacktracesRequest) -> Result<Self, ApiError> {
        let (is_counted, kinds) = counted_kinds(request, |ids| {
            let rows = self.rows();
            let profiles = rows.samples.iter().map(|sample| (sample.series.place(), sample.time));
            is_counted((rows.series(), profiles), ids, &context.cancellation)
        })?;
        Ok(Self { is_counted, kinds, ..self })
    }

    /// The samples.
    pub fn rows(&self) -> SampleRows<'_> {
        let samples = self.samples.as_deref().unwrap_or(self.batch.samples());
        SampleRows { batch: &self.batch, samples }
    }

    /// The samples merged by stack.
    pub fn merged(&self, context: &Context) -> Result<Profile, ApiError> {
        merged(self.rows(), &self.kinds, self.end, &context.cancellation)
    }
}

/// The samples of each service.
pub(super) fn by_service<'b>(
    batch: &'b Batch,
    context: &Context,
) -> Result<HashMap<&'b str, Vec<StoredSample>>, ApiError> {
    let services: Vec<&str> =
        batch.all_series().map(|labels| labels.get(SERVICE).unwrap_or_default()).collect();
    let mut of: HashMap<&str, Vec<StoredSample>> = HashMap::new();
    for sample in batch.samples() {
        context.check()?;
        of.entry(services[sample.series.place()]).or_default().push(*sample);
    }
    Ok(of)
}

/// The type of a request's values, behind that of their numbers.
fn kinds(request: &StacktracesRequest) -> Result<(ProfileType, ProfileType), ApiError> {
    let kind = profile_type(&request.profile_type_id)?;
    let (sample_type, sample_unit) = ("samples".to_owned(), "count".to_owned());
    Ok((ProfileType { sample_type, sample_unit, ..kind.clone() }, kind))
}

/// Whether a profile of these values has the numbers of its samples, and its types. `is_counted` answers that by the names of both types.
fn counted_kinds(
    request: &StacktracesRequest,
    is_counted: impl FnOnce((&str, &str)) -> Result<bool, ApiError>,
) -> Result<(bool, Vec<ProfileType>), ApiError> {
    let (count, kind) = kinds(request)?;
    if kind == count {
        return Ok((true, vec![kind]));
    }
    let is_counted = is_counted((&count.to_string(), &kind.to_string()))?;
    Ok((is_counted, if is_counted { vec![count, kind] } else { vec![kind] }))
}

/// The selected values and their numbers, and the end of the selected time.
fn counted(context: &Context, request: &StacktracesRequest) -> Result<(Selected, i64), ApiError> {
    let (count, kind) = kinds(request)?;
    let selector = Selector::parse(&request.label_selector)?;
    let selector = selector.with_any(PROFILE_TYPE, &[&count.to_string(), &kind.to_string()])?;
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    Ok((select(context, selector, range)?, range.end))
}

/// Whether each profile with values has the numbers of its samples beside them: not all clients send them. Profiles are given by series and time, some
/// more than once.
fn is_counted(
    (series, profiles): (BTreeMap<usize, &Labels>, impl Iterator<Item = (usize, Millis)>),
    (count, values): (&str, &str),
    cancellation: &Cancellation,
) -> Result<bool, ApiError> {
    let without_kind = |labels: &Labels| {
        let mut labels = labels.clone();
        KIND_LABELS.iter().for_each(|name| labels.set(*name, ""));
        labels
    };
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut sources = HashMap::new();
    for (series, labels) in series {
        let new = places.len();
        let source = *places.entry(without_kind(labels)).or_insert(new);
        sources.insert(series, (source, labels.get(PROFILE_TYPE).unwrap_or_default()));
    }
    let (mut counted, mut valued) = (HashSet::new(), HashSet::new());
    for (series, time) in profiles {
        cancellation.check()?;
        let (source, kind) = sources[&series];
        let profile = (source, time);
        if kind == count {
            counted.insert(profile);
        } else if kind == values {
            valued.insert(profile);
        }
    }
    Ok(!valued.is_empty() && valued.is_subset(&counted))
}
