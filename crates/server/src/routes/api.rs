//! plumb's own API, `/api/v1`: parameters in the path, JSON in the answer. Tables are exact: they are computed from complete stacks.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use plumb_documents::functions::FunctionValues;
use plumb_store::{PROFILE_TYPE, ProfileType, SERVICE};
use serde::Serialize;

use super::export::export;
use super::findings::findings;
use super::verdict::verdict;
use crate::app::{App, Context};
use crate::client::default_type;
use crate::error::{ApiError, ErrorCode};
use crate::moment;
use crate::parameters::Parameters;
use crate::pyroscope::querier::{DiffRequest, StacktracesRequest};
use crate::pyroscope::series::SelectSeriesRequest;
use crate::pyroscope::types::{LabelNamesRequest, LabelValuesRequest};
use crate::query;

/// OpenAPI description of the API.
const OPENAPI: &str = include_str!("openapi.json");

/// Default number of points of a series.
const POINTS: i64 = 60;

/// A body with its content type.
pub(super) type Answer = (&'static str, Vec<u8>);

/// Handler of a path.
type Work = fn(&Context, &Parameters) -> Result<Answer, ApiError>;

/// All paths with their handlers; each is described in `openapi.json`.
pub(super) const PATHS: [(&str, Work); 11] = [
    ("/api/v1/services", services),
    ("/api/v1/labels", labels),
    ("/api/v1/types", types),
    ("/api/v1/functions", functions),
    ("/api/v1/function", function),
    ("/api/v1/flame", flame),
    ("/api/v1/series", series),
    ("/api/v1/diff", diff),
    ("/api/v1/export", export),
    ("/api/v1/verdict", verdict),
    ("/api/v1/findings", findings),
];

pub(super) fn routes() -> Router<App> {
    let mut router = Router::new();
    for (path, work) in PATHS {
        router = router.route(
            path,
            get(move |State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap| async move {
                let answered = async {
                    let tenant = app.tenant(&headers)?;
                    let parameters = Parameters::parse(query.as_deref());
                    app.query(tenant, move |context| work(context, &parameters)).await
                };
                answered.await.map_or_else(IntoResponse::into_response, response)
            }),
        );
    }
    router
}

/// The description, which needs no token.
pub(super) async fn openapi() -> Response {
    response(("application/json", OPENAPI.as_bytes().to_vec()))
}

fn response((kind, body): Answer) -> Response {
    ([("Content-Type", HeaderValue::from_static(kind))], body).into_response()
}

pub(super) fn json<T: Serialize>(answer: &T) -> Result<Answer, ApiError> {
    let body = serde_json::to_vec(answer);
    let body = body
        .map_err(|error| ApiError::new(ErrorCode::Internal, format!("cannot write the answer: {error}")))?;
    Ok(("application/json", body))
}

pub(super) fn number(parameters: &Parameters, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = parameters.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let wrong = |_| ApiError::invalid(format!("{name} is no whole number: {text:?}"));
    text.parse().map(Some).map_err(wrong)
}

/// The time range; by default the last hour.
pub(super) fn range(parameters: &Parameters, [from, until]: [&str; 2]) -> Result<(i64, i64), ApiError> {
    let now = moment::now();
    let time = |name: &str, default: &str| {
        let text = parameters.get(name).filter(|text| !text.is_empty()).unwrap_or(default);
        moment::parse(text, now).ok_or_else(|| {
            ApiError::invalid(format!(
                "{name} is no time: {text:?}; write now-1h, 2026-11-24T14:00 (UTC), or milliseconds since 1970"
            ))
        })
    };
    let range = (time(from, "now-1h")?, time(until, "now")?);
    if range.0 > range.1 {
        return Err(ApiError::invalid(format!("{from} is after {until}")));
    }
    Ok(range)
}

/// The profile type: the requested one, or the choice of [`default_type`] among the selected ones.
pub(super) fn kind(
    context: &Context,
    parameters: &Parameters,
    selector: &str,
    (start, end): (i64, i64),
) -> Result<String, ApiError> {
    let named = parameters.get("type").filter(|kind| !kind.is_empty());
    if let Some(kind) = named.filter(|kind| ProfileType::parse(kind).is_some()) {
        return Ok(kind.to_owned());
    }
    let types = selected_types(context, selector, (start, end))?;
    if let Some(wrong) = named {
        let there = if types.is_empty() { "none is selected".to_owned() } else { types.join(", ") };
        return Err(ApiError::invalid(format!("{wrong:?} is no profile type; selected are: {there}")));
    }
    default_type(&types).map(str::to_owned).map_err(ApiError::invalid)
}

/// The types of profiles that a selector matches.
fn selected_types(
    context: &Context,
    selector: &str,
    (start, end): (i64, i64),
) -> Result<Vec<String>, ApiError> {
    let matchers = Some(selector.to_owned()).filter(|one| !one.is_empty()).into_iter().collect();
    let request = LabelValuesRequest { name: PROFILE_TYPE.to_owned(), matchers, start, end };
    Ok(query::label_values(context, request)?.names)
}

pub(super) fn selected(
    context: &Context,
    parameters: &Parameters,
    names: [&str; 3],
) -> Result<StacktracesRequest, ApiError> {
    let [query, from, until] = names;
    let (start, end) = range(parameters, [from, until])?;
    let label_selector = parameters.get(query).unwrap_or_default().to_owned();
    Ok(StacktracesRequest {
        profile_type_id: kind(context, parameters, &label_selector, (start, end))?,
        label_selector,
        start,
        end,
        max_nodes: number(parameters, "nodes")?,
        ..StacktracesRequest::default()
    })
}

fn services(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    values(context, parameters, SERVICE)
}

fn values(context: &Context, parameters: &Parameters, name: &str) -> Result<Answer, ApiError> {
    let (start, end) = range(parameters, ["from", "until"])?;
    let matchers = parameters.get("query").map(str::to_owned).into_iter().collect();
    let request = LabelValuesRequest { name: name.to_owned(), matchers, start, end };
    json(&query::label_values(context, request)?.names)
}

/// The values of a label, or the names of all labels.
fn labels(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    if let Some(name) = parameters.get("name").filter(|name| !name.is_empty()) {
        return values(context, parameters, name);
    }
    let (start, end) = range(parameters, ["from", "until"])?;
    let matchers = parameters.get("query").map(str::to_owned).into_iter().collect();
    json(&query::label_names(context, LabelNamesRequest { matchers, start, end })?.names)
}

fn types(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let (start, end) = range(parameters, ["from", "until"])?;
    json(&selected_types(context, parameters.get("query").unwrap_or_default(), (start, end))?)
}

/// A table of functions, largest self value first.
fn functions(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let tree = query::call_tree(context, &selected(context, parameters, ["query", "from", "until"])?)?;
    let mut rows = query::functions(&tree, &context.cancellation)?;
    if parameters.get("order") == Some("total") {
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    }
    let functions = rows.len();
    let limit = number(parameters, "limit")?.unwrap_or(100);
    rows.truncate(usize::try_from(limit).unwrap_or(0));
    json(&FunctionValues { total: tree.total()[0], functions, rows })
}

/// Callers and callees of a function.
fn function(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let name = parameters.get("name").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ApiError::invalid("the parameter name is missing: a function's name"))?;
    let tree = query::call_tree(context, &selected(context, parameters, ["query", "from", "until"])?)?;
    let found = query::neighbours(&tree, name, &context.cancellation)?;
    let nothing = || ApiError::new(ErrorCode::NotFound, format!("no selected stack has a function {name:?}"));
    json(&found.ok_or_else(nothing)?)
}

fn flame(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let request = selected(context, parameters, ["query", "from", "until"])?;
    json(&query::stacktraces(context, request)?.flamegraph)
}

fn diff(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let left = Some(selected(context, parameters, ["left", "left_from", "left_until"])?);
    let right = Some(selected(context, parameters, ["right", "right_from", "right_until"])?);
    json(&query::diff(context, DiffRequest { left, right })?.flamegraph)
}

fn series(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let request = selected(context, parameters, ["query", "from", "until"])?;
    let least = (request.end.saturating_sub(request.start) / 1000 / POINTS).max(15);
    let step = number(parameters, "step")?.unwrap_or(least);
    let request = SelectSeriesRequest {
        profile_type_id: request.profile_type_id,
        label_selector: request.label_selector,
        start: request.start,
        end: request.end,
        step: step as f64,
        group_by: parameters.all("by").map(str::to_owned).collect(),
        limit: number(parameters, "limit")?,
        ..SelectSeriesRequest::default()
    };
    let function = parameters.get("function").filter(|name| !name.is_empty());
    json(&query::series_of(context, request, function)?.series)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::collections::BTreeSet;

    use super::{OPENAPI, PATHS};

    #[test]
    fn every_path_is_described() {
        let description: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let described: BTreeSet<&str> =
            description["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let answered = PATHS.iter().map(|(path, _)| *path).chain(super::super::symbols::PATHS);
        let answered = answered.chain(["/api/v1/selection", "/api/v1/selection/{answer}"]);
        let answered = answered.chain([super::super::tenant::PATH]);
        let answered = answered.chain(["/api/v1/opened", "/api/v1/opened/{id}/{answer}"]);
        assert_eq!(described, answered.collect());
    }
}
