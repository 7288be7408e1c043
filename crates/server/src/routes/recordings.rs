//! `/api/v1/recordings`: the recordings that were loaded. Read only.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use plumb_report::answers::{self, Answer, LoadedRecording, Question};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::page::guarded;
use crate::error::{ApiError, ErrorCode};
use crate::parameters::Parameters;
use crate::recordings::paths;

/// Answers that are worked out at the same time; others wait. Each takes a processor and may take as much memory as the recording.
const AT_ONCE: usize = 4;

#[derive(Clone)]
struct Shared {
    recordings: Arc<[LoadedRecording]>,
    working: Arc<Semaphore>,
}

pub(super) fn routes(recordings: Vec<LoadedRecording>) -> Router {
    let shared = Shared { recordings: recordings.into(), working: Arc::new(Semaphore::new(AT_ONCE)) };
    let mut router = Router::new().route("/api/v1/recordings", get(list));
    for (path, work) in paths() {
        let path = format!("/api/v1/recordings/{{id}}{path}");
        let answer = move |State(shared): State<Shared>,
                           Path(id): Path<String>,
                           RawQuery(query): RawQuery| async move {
            let parameters = Parameters::parse(query.as_deref());
            let work = move |recordings: &[LoadedRecording]| match answers::recording(recordings, &id) {
                Some(recording) => Ok(work(&Question { recordings, recording, parameters: &parameters })?),
                None => Err(unknown(&id)),
            };
            worked_out(shared, work).await
        };
        router = router.route(&path, get(answer));
    }
    router.with_state(shared)
}

async fn list(State(shared): State<Shared>) -> Response {
    let all: Vec<Value> =
        shared.recordings.iter().enumerate().map(|(id, recording)| recording.entry(id)).collect();
    guarded("application/json", json!({"version": 1, "recordings": all}).to_string().into_bytes())
}

/// Answers on a thread that may compute.
async fn worked_out<F>(shared: Shared, work: F) -> Response
where
    F: FnOnce(&[LoadedRecording]) -> Result<Answer, ApiError> + Send + 'static,
{
    let Ok(permit) = shared.working.acquire_owned().await else {
        return ApiError::new(ErrorCode::Unavailable, "the server is stopping").into_response();
    };
    let recordings = shared.recordings;
    let answer = tokio::task::spawn_blocking(move || {
        let _working = permit;
        work(&recordings)
    });
    match answer.await {
        Ok(Ok((kind, body))) => guarded(kind, body),
        Ok(Err(error)) => error.into_response(),
        Err(_) => ApiError::new(ErrorCode::Internal, "the analysis ended unexpectedly").into_response(),
    }
}

fn unknown(id: &str) -> ApiError {
    let id: String = id.chars().take(50).collect();
    ApiError::new(ErrorCode::NotFound, format!("no recording {id:?}; /api/v1/recordings lists them"))
}
