//! `querier.v1`: what Grafana's data source and `profilecli` ask.

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{MethodRouter, post};
use prost::Message;
use serde::de::DeserializeOwned;

use crate::app::{App, Context};
use crate::connect::{self, Answer};
use crate::error::ApiError;
use crate::query;

/// The service's name, before that of the method.
macro_rules! path {
    ($method:literal) => {
        concat!("/querier.v1.QuerierService/", $method)
    };
}

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(path!("ProfileTypes"), answer(query::profile_types))
        .route(path!("LabelNames"), answer(query::label_names))
        .route(path!("LabelValues"), answer(query::label_values))
        .route(path!("Series"), answer(query::series_labels))
        .route(path!("SelectMergeStacktraces"), answer(query::stacktraces))
        .route(path!("SelectMergeSpanProfile"), answer(query::span_profile))
        .route(path!("SelectMergeProfile"), answer(query::merge_profile))
        .route(path!("SelectSeries"), answer(query::select_series))
        .route(path!("SelectHeatmap"), answer(query::heatmap))
        .route(path!("Diff"), answer(query::diff))
        .route(path!("GetProfileStats"), answer(query::stats))
        .route(path!("AnalyzeQuery"), answer(query::analyze))
}

fn answer<Q, A>(query: fn(&Context, Q) -> Result<A, ApiError>) -> MethodRouter<App>
where
    Q: Message + Default + DeserializeOwned + 'static,
    A: Answer + 'static,
{
    post(move |state: State<App>, request: Request| connect::query(state, request, query))
}
