//! `/api/v1/recordings`: the loaded recordings, followed by files dropped on the page.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use plumb_documents::answers::{
    self, Answer, LoadedRecording, NamedFiles, Question, RecordingEntry, RecordingList,
};
use tokio::sync::Semaphore;

use super::opened::{bytes_of, created, ended, json_of, name_of};
use super::page::guarded;
use crate::error::{ApiError, ErrorCode};
use crate::opened::FileReader;
use crate::parameters::Parameters;
use crate::recordings::paths;

/// Most answers computed at the same time; others wait. Each uses a CPU and may take as much memory as the recording.
const AT_ONCE: usize = 4;
/// Most files opened on the page, in addition to the loaded ones.
const MOST_OPENED: usize = 32;
/// Most bytes of one of them. Its sender is the user who runs this process.
const LARGEST: usize = 512 << 20;

/// Recordings to show, with options.
#[derive(Clone, Debug)]
pub struct ShownRecordings {
    /// The recordings.
    pub recordings: Vec<LoadedRecording>,
    /// Template of links to an editor, with `{file}` and `{line}`; empty: no links.
    pub editor: String,
    /// Reader of files dropped on the page.
    pub reader: FileReader,
}

#[derive(Clone)]
struct Shared {
    recordings: Arc<RwLock<Arc<[LoadedRecording]>>>,
    /// Number of recordings that were loaded at the start.
    named: usize,
    editor: Arc<str>,
    working: Arc<Semaphore>,
    reader: FileReader,
    /// One file is opened at a time: each may take much memory.
    opening: Arc<Semaphore>,
}

impl Shared {
    /// The current list: a recording is never changed or removed.
    fn recordings(&self) -> Arc<[LoadedRecording]> {
        self.recordings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) fn routes(shown: ShownRecordings) -> Router {
    let ShownRecordings { recordings, editor, reader } = shown;
    let shared = Shared {
        named: recordings.len(),
        recordings: Arc::new(RwLock::new(recordings.into())),
        editor: editor.into(),
        working: Arc::new(Semaphore::new(AT_ONCE)),
        reader,
        opening: Arc::new(Semaphore::new(1)),
    };
    let mut router = Router::new().route("/api/v1/recordings", get(list)).merge(post_route());
    for (path, work) in paths() {
        let path = format!("/api/v1/recordings/{{id}}{path}");
        let answer = move |State(shared): State<Shared>,
                           Path(id): Path<String>,
                           RawQuery(query): RawQuery| async move {
            let parameters = Parameters::parse(query.as_deref());
            let work = move |recordings: &[LoadedRecording]| match answers::recording(recordings, &id) {
                Some(recording) => {
                    let named_files = NamedFiles::Read;
                    Ok(work(&Question { recordings, recording, parameters: &parameters, named_files })?)
                }
                None => Err(unknown(&id)),
            };
            worked_out(shared, work).await
        };
        router = router.route(&path, get(answer));
    }
    router.with_state(shared)
}

async fn list(State(shared): State<Shared>) -> Response {
    let document = RecordingList::new(&shared.recordings(), &shared.editor);
    guarded("application/json", json_of(&document))
}

fn post_route() -> Router<Shared> {
    let open = |State(shared): State<Shared>, RawQuery(query): RawQuery, request: Request| async move {
        open(shared, query, request).await.unwrap_or_else(IntoResponse::into_response)
    };
    Router::new().route("/api/v1/recordings", post(open))
}

/// Opens a file dropped on the page, until the server ends.
async fn open(shared: Shared, query: Option<String>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let name = name_of(&parts.headers, query.as_deref())?;
    let stopping = |_| ApiError::new(ErrorCode::Unavailable, "the server is stopping");
    let opening = shared.opening.clone().acquire_owned().await.map_err(stopping)?;
    if shared.recordings().len() >= shared.named + MOST_OPENED {
        let message =
            format!("{MOST_OPENED} files were opened here, the limit; end plumb and start it again");
        return Err(ApiError::new(ErrorCode::ResourceExhausted, message));
    }
    let bytes = bytes_of(body, LARGEST).await?;
    let reader = shared.reader.clone();
    // Reading continues if the client has gone.
    let read = tokio::task::spawn_blocking(move || reader.read(&name, bytes).map(|read| (read, opening)));
    let (recording, _opening) = read.await.map_err(|_| ended())??;
    let mut all = shared.recordings.write().unwrap_or_else(PoisonError::into_inner);
    let entry = RecordingEntry::new(&recording, all.len().to_string());
    *all = all.iter().cloned().chain([recording]).collect();
    drop(all);
    Ok(created(&entry))
}

/// Computes an answer on a thread that may block.
async fn worked_out<F>(shared: Shared, work: F) -> Response
where
    F: FnOnce(&[LoadedRecording]) -> Result<Answer, ApiError> + Send + 'static,
{
    let Ok(permit) = shared.working.clone().acquire_owned().await else {
        return ApiError::new(ErrorCode::Unavailable, "the server is stopping").into_response();
    };
    let recordings = shared.recordings();
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
