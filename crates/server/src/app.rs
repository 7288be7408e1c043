//! State shared by all routes: the store, the limits, and moving work off the threads that serve sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use plumb_store::{Batch, Cancellation, Store, Tenant};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{ApiError, ErrorCode};
use crate::limits::RateLimiter;
use crate::metrics::{Metrics, RunningQuery};
use crate::opened::OpenedFiles;
use crate::options::{IngestLimits, ServerOptions};
use crate::peers;
use crate::selections::recent::Selections;
use crate::symbols::ElfSymbols;
use crate::watch::KeptFindings;

/// The context of a query: store, limits, tenant, cancellation.
pub(crate) struct Context {
    pub store: Arc<Store>,
    pub options: Arc<ServerOptions>,
    pub tenant: Tenant,
    /// HTTP client for the other servers of the bucket.
    pub peer_agent: ureq::Agent,
    /// Selections of the store last read for the page.
    pub selections: Selections,
    /// Findings computed in the background.
    pub kept_findings: KeptFindings,
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
    /// Findings computed in the background.
    pub kept_findings: KeptFindings,
    /// Rates at which tenants send profiles.
    pub rates: Arc<RateLimiter>,
    peer_agent: ureq::Agent,
    selections: Selections,
    queries: Arc<Semaphore>,
    /// One permit per KiB of bodies in memory.
    in_flight: Arc<Semaphore>,
    /// Requests that are read at the same time.
    small: Arc<Semaphore>,
    /// Bytes of requests since memory was last returned to the system.
    unreturned: Arc<AtomicUsize>,
}

/// Bytes per permit of [`App::in_flight`].
const PERMIT: usize = 1024;

/// Bytes of requests after which memory is returned: what one large request may take.
const RETURNED: usize = 64 << 20;

/// Time from which a query is taken to have used as much memory as a large request.
const LARGE_QUERY: Duration = Duration::from_millis(200);

/// Small requests that are read at the same time: more would wait for CPUs, and each takes some 20 MiB at most.
const SMALL: usize = 4;

impl App {
    pub fn new(store: Arc<Store>, options: ServerOptions) -> Self {
        store.set_symbol_source(Arc::new(ElfSymbols { temporary: store.temporary_directory() }));
        if let Some(limits) = &options.tenants {
            store.set_quotas(limits.quotas());
        }
        let queries = Arc::new(Semaphore::new(options.query.concurrent.max(1)));
        let in_flight = Arc::new(Semaphore::new(permits(options.ingest.memory.in_flight) as usize));
        let metrics = Arc::new(Metrics::new());
        let peer_agent = peers::agent(options.peer_authorities.as_ref());
        Self {
            store,
            options: Arc::new(options),
            metrics,
            opened: OpenedFiles::default(),
            kept_findings: KeptFindings::default(),
            rates: Arc::default(),
            peer_agent,
            selections: Selections::default(),
            queries,
            in_flight,
            small: Arc::new(Semaphore::new(SMALL)),
            unreturned: Arc::default(),
        }
    }

    /// The tenant of a request.
    pub fn tenant(&self, headers: &HeaderMap) -> Result<Tenant, ApiError> {
        match headers.get("x-scope-orgid") {
            None => Ok(Tenant::default()),
            Some(name) => Ok(Tenant::new(name.to_str().unwrap_or("\u{fffd}"))?),
        }
    }

    fn context(&self, tenant: Tenant) -> Context {
        Context {
            store: self.store.clone(),
            options: self.options.clone(),
            tenant,
            peer_agent: self.peer_agent.clone(),
            selections: self.selections.clone(),
            kept_findings: self.kept_findings.clone(),
            cancellation: Cancellation::default(),
        }
    }

    /// Runs a query of the server's own on a thread that may block. It takes no place among the queries of clients; their time limit applies to it,
    /// and dropping the future cancels it.
    pub async fn background_query<T, F>(&self, tenant: Tenant, work: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: FnOnce(&Context) -> Result<T, ApiError> + Send + 'static,
    {
        let context = self.context(tenant);
        let _wanted = CancelOnDrop(context.cancellation.clone());
        let limit = self.options.query.time;
        let answer = tokio::task::spawn_blocking(move || work(&context));
        match timeout(limit, answer).await {
            Ok(answer) => answer.map_err(|_| failed("the query"))?,
            Err(_) => Err(too_slow(limit.as_secs())),
        }
    }

    /// Runs a query on a thread that may block. After the time limit, or if the client closes the connection, the query is
    /// cancelled.
    pub async fn query<T, F>(&self, tenant: Tenant, work: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: FnOnce(&Context) -> Result<T, ApiError> + Send + 'static,
    {
        let context = self.context(tenant);
        // Dropped with this future, for whatever reason.
        let _wanted = CancelOnDrop(context.cancellation.clone());
        let metrics = self.metrics.clone();
        let queries = self.queries.clone();
        let limit = self.options.query.time;
        let app = self.clone();
        let answer = async move {
            let permit = queries.acquire_owned().await.map_err(|_| stopping())?;
            let work = move || {
                let running = RunningQuery::new(metrics);
                let begin = Instant::now();
                let answer = context.check().and_then(|()| work(&context));
                running.ended(context.cancellation.is_cancelled());
                // Counted first: another query may start only now.
                drop(permit);
                (answer, begin.elapsed())
            };
            let (answer, took) = tokio::task::spawn_blocking(work).await.map_err(|_| failed("the query"))?;
            if took >= LARGE_QUERY {
                app.freed(RETURNED).await;
            }
            answer
        };
        timeout(limit, answer).await.unwrap_or_else(|_| Err(too_slow(limit.as_secs())))
    }

    /// Deletes all data of a tenant, also if the client does not wait for the answer.
    pub async fn delete_tenant(&self, tenant: Tenant) -> Result<(), ApiError> {
        let app = self.clone();
        let deleted = tokio::spawn(async move {
            app.store.delete_tenant(&tenant).await?;
            app.kept_findings.forget(&tenant);
            app.selections.forget(&tenant);
            Ok(())
        });
        deleted.await.map_err(|_| failed("the deletion"))?
    }

    /// The rate of a tenant, in bytes a second, if it may send profiles now; `None`: unlimited. Otherwise an error that says when it may.
    pub fn admit(&self, tenant: &Tenant) -> Result<Option<u64>, ApiError> {
        let Some(rate) = self.options.tenants.as_ref().and_then(|limits| limits.rate(tenant)) else {
            return Ok(None);
        };
        self.rates.admit(tenant, rate, Instant::now()).map_err(|wait| {
            let seconds = wait.as_secs().saturating_add(1);
            let message = format!(
                "the tenant {tenant} sends more than {rate} bytes of profiles a second, its limit `rate`: send again in {seconds} s, sample less \
                 often, or ask the server's operator for a higher limit"
            );
            ApiError { retry_after: Some(seconds), ..ApiError::new(ErrorCode::ResourceExhausted, message) }
        })?;
        Ok(Some(rate))
    }

    /// Room for bytes of a body that have just arrived; held until they are dropped. Refuses instead of waiting: the sender of a body that has half
    /// arrived would wait for others that do the same.
    pub fn received(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        self.in_flight.clone().try_acquire_many_owned(permits(bytes)).map_err(|_| {
            let most = self.options.ingest.memory.in_flight >> 20;
            let message =
                format!("{most} MiB of requests are being received, the limit; send this one again later");
            ApiError::new(ErrorCode::Unavailable, message)
        })
    }

    /// Waits until no other large request is read, and no block written or merged.
    pub async fn large(&self) -> OwnedMutexGuard<()> {
        self.store.large_work().lock_owned().await
    }

    /// Parses a request into a batch on a thread that may block, and stores it. How much memory it takes is known only then: `work` first gets the
    /// limits of small requests, and if it exceeds one, those of all, alone.
    pub async fn ingest<F>(&self, tenant: Tenant, work: F) -> Result<(), ApiError>
    where
        F: Fn(&IngestLimits) -> Result<Batch, ApiError> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let permit = self.small.clone().acquire_owned().await.map_err(|_| stopping())?;
        match self.read(work.clone(), self.options.ingest.of_small()).await {
            Err(error) if error.code == ErrorCode::TooLarge => drop(permit),
            read => return self.keep(&tenant, read?).await,
        }
        let large = self.large().await;
        let batch = self.read(work, self.options.ingest.clone()).await;
        // Storing it may have to wait for a block that is written.
        drop(large);
        self.keep(&tenant, batch?).await
    }

    async fn read<F>(&self, work: Arc<F>, limits: IngestLimits) -> Result<Batch, ApiError>
    where
        F: Fn(&IngestLimits) -> Result<Batch, ApiError> + Send + Sync + 'static,
    {
        let most = limits.memory.decoded;
        let read = tokio::task::spawn_blocking(move || work(&limits)).await;
        let read = read.map_err(|_| failed("reading the profile"))?;
        // A refused request may have taken all that is allowed.
        self.freed(read.as_ref().map_or(most, Batch::memory)).await;
        read
    }

    /// Counts memory that a request has taken and will free, or has freed, and returns memory to the system after much of it: allocators keep it, in pieces
    /// that others do not fit into.
    async fn freed(&self, bytes: usize) {
        let Some(return_memory) = self.options.return_memory else { return };
        if self.unreturned.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) >= RETURNED {
            self.unreturned.store(0, Ordering::Relaxed);
            let _ = tokio::task::spawn_blocking(return_memory).await;
        }
    }

    async fn keep(&self, tenant: &Tenant, batch: Batch) -> Result<(), ApiError> {
        let samples = batch.samples().len() as u64;
        self.store.append(tenant, batch).await?;
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
