//! The existing series: their types, labels and label sets.

use std::collections::BTreeSet;

use plumb_store::{Labels, PROFILE_TYPE, ProfileType, Selected, Selector};

use super::selection::{Range, select};
use crate::app::Context;
use crate::error::ApiError;
use crate::pyroscope::querier::{
    AnalyzeQueryRequest, AnalyzeQueryResponse, ProfileTypesRequest, ProfileTypesResponse, QueryImpact,
    QueryScope, SeriesRequest, SeriesResponse,
};
use crate::pyroscope::types;

/// The labels of the series that match any of the selectors; of all series without selectors.
fn series(context: &Context, matchers: &[String], range: Range) -> Result<Vec<Labels>, ApiError> {
    let all = Selector::default();
    let selectors: Vec<Selector> = match matchers {
        [] => vec![all],
        some => some.iter().map(|text| Selector::parse(text)).collect::<Result<_, _>>()?,
    };
    let mut found = BTreeSet::new();
    for selector in selectors {
        found.extend(select(context, selector, range)?.series()?);
    }
    Ok(found.into_iter().collect())
}

/// The profile types.
pub(crate) fn profile_types(
    context: &Context,
    request: ProfileTypesRequest,
) -> Result<ProfileTypesResponse, ApiError> {
    let range = Range::or_all(request.start, request.end, &context.options.query)?;
    let found = series(context, &[], range)?;
    let texts: BTreeSet<&str> = found.iter().filter_map(|labels| labels.get(PROFILE_TYPE)).collect();
    let profile_types = texts.into_iter().filter_map(ProfileType::parse).map(wire_type).collect();
    Ok(ProfileTypesResponse { profile_types })
}

fn wire_type(kind: ProfileType) -> types::ProfileType {
    types::ProfileType {
        id: kind.to_string(),
        name: kind.name,
        sample_type: kind.sample_type,
        sample_unit: kind.sample_unit,
        period_type: kind.period_type,
        period_unit: kind.period_unit,
    }
}

/// The names of labels.
pub(crate) fn label_names(
    context: &Context,
    request: types::LabelNamesRequest,
) -> Result<types::NamesResponse, ApiError> {
    let range = Range::or_all(request.start, request.end, &context.options.query)?;
    let found = series(context, &request.matchers, range)?;
    let names: BTreeSet<&str> = found.iter().flat_map(Labels::iter).map(|(name, _)| name).collect();
    Ok(types::NamesResponse { names: names.into_iter().map(str::to_owned).collect() })
}

/// The values of a label.
pub(crate) fn label_values(
    context: &Context,
    request: types::LabelValuesRequest,
) -> Result<types::NamesResponse, ApiError> {
    if request.name.is_empty() {
        return Err(ApiError::invalid("a label name is required"));
    }
    let range = Range::or_all(request.start, request.end, &context.options.query)?;
    let found = series(context, &request.matchers, range)?;
    let values: BTreeSet<&str> = found.iter().filter_map(|labels| labels.get(&request.name)).collect();
    Ok(types::NamesResponse { names: values.into_iter().map(str::to_owned).collect() })
}

/// Label sets, complete or restricted to some labels.
pub(crate) fn series_labels(context: &Context, request: SeriesRequest) -> Result<SeriesResponse, ApiError> {
    let range = Range::or_all(request.start, request.end, &context.options.query)?;
    let found = series(context, &request.matchers, range)?;
    let cut = |labels: Labels| match request.label_names.is_empty() {
        true => labels,
        false => labels.only(&request.label_names),
    };
    let sets: BTreeSet<Labels> = found.into_iter().map(cut).filter(|labels| !labels.is_empty()).collect();
    Ok(SeriesResponse { labels_set: sets.iter().map(wire_labels).collect() })
}

fn wire_labels(labels: &Labels) -> types::LabelSet {
    types::LabelSet { labels: pairs(labels) }
}

/// Labels as message fields.
pub(crate) fn pairs(labels: &Labels) -> Vec<types::LabelPair> {
    let pair = |(name, value): (&str, &str)| types::LabelPair { name: name.into(), value: value.into() };
    labels.iter().map(pair).collect()
}

fn everything(context: &Context) -> Result<Selected, ApiError> {
    select(context, Selector::default(), Range { start: i64::MIN, end: i64::MAX })
}

/// Whether the store has profiles, and their time range.
pub(crate) fn stats(
    context: &Context,
    _: types::ProfileStatsRequest,
) -> Result<types::ProfileStatsResponse, ApiError> {
    let (_, profiles) = everything(context)?.profiles()?;
    let times = || profiles.iter().map(|profile| profile.time.0);
    Ok(types::ProfileStatsResponse {
        data_ingested: !profiles.is_empty(),
        oldest_profile_time: times().min().unwrap_or(0),
        newest_profile_time: times().max().unwrap_or(0),
    })
}

/// The amount of data that a query would read.
pub(crate) fn analyze(
    context: &Context,
    request: AnalyzeQueryRequest,
) -> Result<AnalyzeQueryResponse, ApiError> {
    let range = Range::or_all(request.start, request.end, &context.options.query)?;
    let query = request.query.trim();
    let (kind, selector) = query.split_at(query.find('{').unwrap_or(query.len()));
    let mut selector = Selector::parse(selector)?;
    if !kind.is_empty() {
        selector = selector.with(PROFILE_TYPE, super::profile_type(kind)?.to_string());
    }
    let (series, profiles) = select(context, selector, range)?.profiles()?;
    let scope = QueryScope {
        component_type: "store".into(),
        component_count: 1,
        series_count: series.len() as u64,
        profile_count: profiles.len() as u64,
        ..QueryScope::default()
    };
    let impact = QueryImpact { total_queried_series: series.len() as u64, ..QueryImpact::default() };
    Ok(AnalyzeQueryResponse { query_scopes: vec![scope], query_impact: Some(impact) })
}
