//! State shared by all routes: the store, the limits, and moving work off the threads that serve sockets.

use std::sync::Arc;

use axum::http::HeaderMap;
use plumb_store::{Batch, Cancellation, Store, Tenant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, ErrorCode};
use crate::metrics::{Metrics, RunningQuery};
use crate::opened::OpenedFiles;
use crate::options::ServerOptions;
use crate::peers;
use crate::selections::recent::Selections;
use crate::symbols::ElfSymbols;

/// The context of a query: store, limits, tenant, cancellation.
pub(crate) struct Context {
    pub store: Arc<Store>,
    pub options: Arc<ServerOptions>,
    pub tenant: Tenant,
    /// HTTP client for the other servers of the bucket.
    pub peer_agent: ureq::Agent,
    /// Selections of the store last read for the page.
    pub selections: Selections,
    /// Set once the client no longer waits for the answer.
    pub cancellation: Cancellation,
}

impl Context {
    /// Fails once the client no longer waits; called between long steps of a query.
    pub fn check(&self) -> Result<(), ApiError> {
        Ok(self.cancellation.check()?)
    }
}

/// The state of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub store: Arc<Store>,
    pub options: Arc<ServerOptions>,
    pub metrics: Arc<Metrics>,
    /// Files dropped on the page.
    pub opened: OpenedFiles,
    peer_agent: ureq::Agent,
    selections: Selections,
    queries: Arc<Semaphore>,
    /// One permit per KiB of unpacked bodies.
    in_flight: Arc<Semaphore>,
}

/// Bytes per permit of [`App::in_flight`].
const PERMIT: usize = 1024;

impl App {
    pub fn new(store: Arc<Store>, options: ServerOptions) -> Self {
        store.set_symbol_source(Arc::new(ElfSymbols { temporary: store.temporary_directory() }));
        let queries = Arc::new(Semaphore::new(options.query.concurrent.max(1)));
        let in_flight = Arc::new(Semaphore::new(permits(options.ingest.in_flight) as usize));
        let metrics = Arc::new(Metrics::new());
        let peer_agent = peers::agent(options.peer_authorities.as_ref());
        Self {
            store,
            options: Arc::new(options),
            metrics,
            opened: OpenedFiles::default(),
            peer_agent,
            selections: Selections::default(),
            queries,
            in_flight,
        }
    }

    /// The tenant of a request.
    pub fn tenant(&self, headers: &HeaderMap) -> Result<Tenant, ApiError> {
        match headers.get("x-scope-orgid") {
            None => Ok(Tenant::default()),
            Some(name) => Ok(Tenant::new(name.to_str().unwrap_or("\u{fffd}"))?),
        }
    }

    /// Runs a query on a thread that may block. After the time limit, or if the client closes the connection, the query is
    /// cancelled.
    pub async fn query<T, F>(&self, tenant: Tenant, work: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: FnOnce(&Context) -> Result<T, ApiError> + Send + 'static,
    {
        let cancellation = Cancellation::default();
        let context = Context {
            store: self.store.clone(),
            options: self.options.clone(),
            tenant,
            peer_agent: self.peer_agent.clone(),
            selections: self.selections.clone(),
            cancellation: cancellation.clone(),
        };
        // Dropped with this future, for whatever reason.
        let _wanted = CancelOnDrop(cancellation);
        let metrics = self.metrics.clone();
        let queries = self.queries.clone();
        let limit = self.options.query.time;
        let answer = async move {
            let permit = queries.acquire_owned().await.map_err(|_| stopping())?;
            let work = move || {
                let running = RunningQuery::new(metrics);
                let answer = context.check().and_then(|()| work(&context));
                running.ended(context.cancellation.is_cancelled());
                // Counted first: another query may start only now.
                drop(permit);
                answer
            };
            tokio::task::spawn_blocking(work).await.map_err(|_| failed("the query"))?
        };
        timeout(limit, answer).await.unwrap_or_else(|_| Err(too_slow(limit.as_secs())))
    }

    /// Waits until there is memory for a body of this size.
    pub async fn room(&self, size: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let wanted = permits(size).min(permits(self.options.ingest.in_flight));
        self.in_flight.clone().acquire_many_owned(wanted).await.map_err(|_| stopping())
    }

    /// Parses a request into a batch on a thread that may block, and stores it. `size`: bytes of the request, or of its unpacked body.
    pub async fn ingest<F>(&self, tenant: Tenant, size: usize, work: F) -> Result<(), ApiError>
    where
        F: FnOnce(&ServerOptions) -> Result<Batch, ApiError> + Send + 'static,
    {
        let permit = self.room(size).await?;
        let options = self.options.clone();
        let batch = tokio::task::spawn_blocking(move || work(&options)).await;
        let batch = batch.map_err(|_| failed("reading the profile"))??;
        let samples = batch.samples().len() as u64;
        let stored = self.store.append(&tenant, batch).await;
        drop(permit);
        stored?;
        self.metrics.samples.inc_by(samples);
        Ok(())
    }
}

/// Cancels a query when it is dropped.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT).clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX)
}

fn stopping() -> ApiError {
    ApiError::new(ErrorCode::Unavailable, "the server is stopping")
}

fn failed(what: &str) -> ApiError {
    ApiError::new(ErrorCode::Internal, format!("{what} ended unexpectedly; the server's log has more"))
}

fn too_slow(seconds: u64) -> ApiError {
    let message = format!("the query took more than {seconds} s; select fewer services or a shorter time");
    ApiError::new(ErrorCode::DeadlineExceeded, message)
}
