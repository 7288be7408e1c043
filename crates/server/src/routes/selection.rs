//! `/api/v1/selection`: profiles of the store, answered like a recording: selected by `query`, `type`, `from` and `until`, narrowed by a
//! recording's filters, in the same documents as a recording.
//!
//! Invariant: no file is read that a profile names, since senders of profiles would choose the files that the server reads. Elsewhere: the answers
//! (`plumb_documents`), loading and caching profiles (`selections`).

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use plumb_documents::answers::{AnswerFn, LoadedRecording, NamedFiles, Question};

use super::api::{Answer, selected};
use super::page::guarded;
use crate::app::{App, Context};
use crate::error::ApiError;
use crate::parameters::Parameters;
use crate::recordings;
use crate::selections;

/// Answers that need data missing in a store: times of samples, processes, and interrupted system calls.
const UNKNOWN: [&str; 5] = ["/timeline", "/heatmap", "/waits", "/processes", "/calls"];

/// Parameters that select profiles, and those that select the base of a comparison.
const WORDS: [[&str; 3]; 2] = [["query", "from", "until"], ["base-query", "base-from", "base-until"]];

/// The paths below `/api/v1/selection` with their handlers.
pub(super) fn paths() -> impl Iterator<Item = (&'static str, AnswerFn)> {
    recordings::paths().filter(|(path, _)| !UNKNOWN.contains(path))
}

pub(super) fn routes() -> Router<App> {
    let mut router = Router::new();
    for (path, work) in paths() {
        let answer = move |State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap| async move {
            answered(app, work, query, &headers).await.unwrap_or_else(IntoResponse::into_response)
        };
        router = router.route(&format!("/api/v1/selection{path}"), get(answer));
    }
    router
}

async fn answered(
    app: App,
    work: AnswerFn,
    query: Option<String>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = app.tenant(headers)?;
    let parameters = Parameters::parse(query.as_deref());
    let (kind, body) = app.query(tenant, move |context| answer(context, work, &parameters)).await?;
    Ok(guarded(kind, body))
}

fn answer(context: &Context, work: AnswerFn, parameters: &Parameters) -> Result<Answer, ApiError> {
    let is_word = |name: &str| name == "type" || WORDS.as_flattened().contains(&name);
    let rest = parameters.iter().filter(|(name, _)| !is_word(name));
    let mut rest: Parameters = rest.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let [new, base] = WORDS;
    let mut sides = vec![loaded(context, parameters, new)?];
    if base.iter().any(|name| parameters.get(name).is_some()) {
        // Missing base parameters are taken from the selection.
        let pick = |name, other| if parameters.get(name).is_some() { name } else { other };
        let names = std::array::from_fn(|place| pick(base[place], new[place]));
        sides.push(loaded(context, parameters, names)?);
        rest = rest.with("base", "1");
    }
    let sides: Vec<LoadedRecording> = sides.iter().map(|side| LoadedRecording::clone(side)).collect();
    context.check()?;
    let asked = Question {
        recordings: &sides,
        recording: &sides[0],
        parameters: &rest,
        named_files: NamedFiles::Ignore,
    };
    Ok(work(&asked)?)
}

fn loaded(
    context: &Context,
    parameters: &Parameters,
    names: [&str; 3],
) -> Result<Arc<LoadedRecording>, ApiError> {
    selections::loaded(context, &selected(context, parameters, names)?)
}
