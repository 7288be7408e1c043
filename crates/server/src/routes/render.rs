//! `/pyroscope/render` and related paths: Pyroscope's older API, which many clients still use.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use plumb_store::ProfileType;
use serde::Serialize;

use crate::app::{App, Context};
use crate::error::{ApiError, ErrorCode};
use crate::moment;
use crate::parameters::Parameters;
use crate::pyroscope::flamebearer::{Metadata, Rendered, Timeline};
use crate::pyroscope::querier::{DiffRequest, ProfileTypesRequest, StacktracesRequest};
use crate::pyroscope::series::SelectSeriesRequest;
use crate::pyroscope::types::LabelValuesRequest;
use crate::query;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/pyroscope/render", get(render))
        .route("/pyroscope/render-diff", get(render_diff))
        .route("/pyroscope/label-values", get(label_values))
}

/// Answers a query with parameters in the path.
async fn answer<A: Serialize + 'static>(
    app: App,
    query: Option<String>,
    headers: HeaderMap,
    work: fn(&Context, &Parameters) -> Result<A, ApiError>,
) -> Response {
    let answered = async {
        let tenant = app.tenant(&headers)?;
        let parameters = Parameters::parse(query.as_deref());
        app.query(tenant, move |context| {
            let answer = work(context, &parameters)?;
            serde_json::to_vec(&answer).map_err(|error| {
                ApiError::new(ErrorCode::Internal, format!("cannot write the answer: {error}"))
            })
        })
        .await
    };
    match answered.await {
        Ok(body) => ([("Content-Type", HeaderValue::from_static("application/json"))], body).into_response(),
        Err(error) => error.into_response(),
    }
}

async fn render(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answer(app, query, headers, rendered).await
}

async fn render_diff(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answer(app, query, headers, rendered_diff).await
}

async fn label_values(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answer(app, query, headers, values).await
}

/// The values of a label; for `__name__`, complete profile types.
fn values(context: &Context, parameters: &Parameters) -> Result<Vec<String>, ApiError> {
    match parameters.get("label").unwrap_or_default() {
        "" => Err(ApiError::invalid("label parameter is required")),
        "__name__" => {
            let types = query::profile_types(context, ProfileTypesRequest::default())?.profile_types;
            Ok(types.into_iter().map(|one| one.id).collect())
        }
        name => {
            let request = LabelValuesRequest { name: name.into(), ..LabelValuesRequest::default() };
            Ok(query::label_values(context, request)?.names)
        }
    }
}

/// The selection, from the parameters with these names.
fn selected(
    parameters: &Parameters,
    [query, from, until]: [&str; 3],
) -> Result<(StacktracesRequest, ProfileType), ApiError> {
    let text = parameters.get(query).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| ApiError::invalid(format!("{query:?} is required")))?;
    let (kind, selector) = text.split_at(text.find('{').unwrap_or(text.len()));
    if kind.trim().is_empty() {
        return Err(ApiError::invalid(format!("{query:?} must contain a profile-type selection")));
    }
    let profile_type = query::profile_type(kind.trim())?;
    let now = moment::now();
    let time = |name: &str| match parameters.get(name).filter(|text| !text.is_empty()) {
        None => Ok(now),
        Some(text) => moment::parse(text, now).ok_or_else(|| {
            ApiError::invalid(format!(
                "{name:?} is no time: {text:?}; write now-1h, or milliseconds since 1970"
            ))
        }),
    };
    let (start, end) = (time(from)?, time(until)?);
    let nodes = parameters.get("maxNodes").or_else(|| parameters.get("max-nodes"));
    let request = StacktracesRequest {
        profile_type_id: kind.trim().into(),
        label_selector: selector.into(),
        start,
        end,
        max_nodes: nodes.and_then(|nodes| nodes.parse().ok()),
        ..StacktracesRequest::default()
    };
    Ok((request, profile_type))
}

fn metadata(kind: ProfileType, format: &'static str) -> Metadata {
    let sample_rate = if kind.sample_type == "cpu" { 1_000_000_000 } else { 100 };
    let units = match kind.sample_type.as_str() {
        "inuse_objects" | "alloc_objects" | "goroutine" | "samples" => "objects".to_owned(),
        "cpu" => "samples".to_owned(),
        _ => kind.sample_unit,
    };
    Metadata { format, spy_name: "", sample_rate, units, name: kind.sample_type }
}

fn rendered(context: &Context, parameters: &Parameters) -> Result<Rendered, ApiError> {
    if let Some(format @ "dot") = parameters.get("format") {
        let message =
            format!("format {format:?} is not supported; use json, or SelectMergeProfile for pprof");
        return Err(ApiError::new(ErrorCode::Unimplemented, message));
    }
    let (request, kind) = selected(parameters, ["query", "from", "until"])?;
    let (start, end) = (request.start, request.end);
    let step = step_seconds(start, end);
    let group_by: Vec<String> = parameters.all("groupBy").map(str::to_owned).collect();
    let series = SelectSeriesRequest {
        profile_type_id: request.profile_type_id.clone(),
        label_selector: request.label_selector.clone(),
        start,
        end,
        step: step as f64,
        group_by: group_by.clone(),
        aggregation: i32::from(parameters.get("aggregation") == Some("avg")),
        ..SelectSeriesRequest::default()
    };
    let graph = query::stacktraces(context, request)?.flamegraph.unwrap_or_default();
    let series = query::select_series(context, series)?.series;
    let timeline = match &series[..] {
        [one] => Timeline::new(&one.points, start, end, step),
        _ => Timeline::new(&[], start, end, step),
    };
    let groups = group_by.first().map(|by| {
        let group = series.iter().map(|one| {
            let label = one.labels.iter().find(|label| label.name == *by);
            let name = label.map_or("*", |label| &label.value);
            (name.to_owned(), Timeline::new(&one.points, start, end, step))
        });
        group.collect::<BTreeMap<_, _>>()
    });
    Ok(Rendered {
        version: 1,
        flamebearer: graph.into(),
        metadata: metadata(kind, "single"),
        timeline: Some(timeline),
        groups,
        heatmap: None,
        left_ticks: None,
        right_ticks: None,
    })
}

fn rendered_diff(context: &Context, parameters: &Parameters) -> Result<Rendered, ApiError> {
    let (left, kind) = selected(parameters, ["leftQuery", "leftFrom", "leftUntil"])?;
    let (right, other) = selected(parameters, ["rightQuery", "rightFrom", "rightUntil"])?;
    if kind != other {
        return Err(ApiError::invalid("profile types must match"));
    }
    let request = DiffRequest { left: Some(left), right: Some(right) };
    let graph = query::diff(context, request)?.flamegraph.unwrap_or_default();
    Ok(Rendered {
        version: 1,
        left_ticks: Some(graph.left_ticks),
        right_ticks: Some(graph.right_ticks),
        flamebearer: graph.into(),
        metadata: metadata(kind, "double"),
        timeline: None,
        groups: None,
        heatmap: None,
    })
}

/// The step in seconds, a round number that divides a range into at most about 1,500.
fn step_seconds(start: i64, end: i64) -> i64 {
    /// Upper bound of the exact step in milliseconds, and the round step in seconds.
    const STEPS: [(i64, i64); 16] = [
        (17_500, 15),
        (25_000, 20),
        (45_000, 30),
        (90_000, 60),
        (210_000, 120),
        (450_000, 300),
        (750_000, 600),
        (1_050_000, 900),
        (1_500_000, 1200),
        (2_700_000, 1800),
        (5_400_000, 3600),
        (9_000_000, 7200),
        (16_200_000, 10_800),
        (32_400_000, 21_600),
        (86_400_000, 43_200),
        (604_800_000, 86_400),
    ];
    let wanted = end.saturating_sub(start) / 1500;
    STEPS.iter().find(|(most, _)| wanted <= *most).map_or(604_800, |&(_, step)| step)
}
