//! Delivery: sends requests to the server as they arrive, and spools them on disk while it is unreachable.
//!
//! Invariant: sampling never waits for the network or the disk. Requests arrive in the order in which they were made, except those that the
//! server rejected. Each sample of a request is in exactly one of the totals at any time. A request whose answer was lost is sent again with the
//! same bytes, by which the server recognizes it.

mod client;
mod spool;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clock::unix_ns;
use crate::error::AgentError;
use crate::options::AgentOptions;
use crate::totals::{SampleCount, SharedTotals};
use client::{Client, Outcome};
use spool::Spool;

/// Shortest and longest pause before the server is tried again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Capacity of the queue to the thread, in requests. The thread drains the queue at least after each failed attempt.
const WAITING: usize = 16;
/// Time to send waiting requests when the agent ends; the rest stays in the spool.
const FAREWELL: Duration = Duration::from_secs(5);

/// A request that is compressed and ready to send.
#[derive(Debug)]
pub(crate) struct Request {
    /// Compressed bytes.
    pub body: Vec<u8>,
    /// Number of samples in it, and the quantities that they represent.
    pub count: SampleCount,
}

/// Handle of the thread that sends.
pub(crate) struct Delivery {
    sender: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
    totals: Arc<SharedTotals>,
}

/// The client and the spool, before the thread exists: a thread inherits the capabilities and the signal mask of its creator.
pub(crate) struct PreparedDelivery {
    client: Client,
    spool: Spool,
}

impl PreparedDelivery {
    /// Opens the spool.
    pub fn open(options: &AgentOptions) -> Result<Self, AgentError> {
        let client = Client::new(options)?;
        Ok(Self { client, spool: Spool::open(&options.spool)? })
    }

    /// Starts the thread, beginning with the requests in the spool.
    pub fn begin(self, totals: Arc<SharedTotals>) -> Result<Delivery, AgentError> {
        let Self { client, spool } = self;
        let found = spool.count();
        if !spool.is_empty() {
            let directory = spool.directory().display().to_string();
            tracing::info!(requests = spool.len(), samples = found.samples, directory, "found in the spool");
        }
        totals.change(|totals| (totals.found, totals.spooled) = (found, found));
        let (sender, receiver) = sync_channel(WAITING);
        let (of_worker, retry) = (totals.clone(), Instant::now());
        let mut worker =
            Worker { client, spool, totals: of_worker, receiver, pause: PAUSE.0, retry, is_away: false };
        let thread = std::thread::Builder::new()
            .name("deliver".to_owned())
            .spawn(move || worker.work())
            .map_err(|error| AgentError::System("cannot start the thread that sends", error))?;
        Ok(Delivery { sender: Some(sender), thread: Some(thread), totals })
    }
}

impl Delivery {
    /// Queues a request. Returns at once.
    pub fn hand_over(&self, request: Request) {
        let Some(sender) = &self.sender else { return };
        if let Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) =
            sender.try_send(request)
        {
            tracing::error!(samples = request.count.samples, "dropped: the disk or the server hangs");
            self.totals.change(|totals| totals.dropped += request.count);
        }
    }

    /// Sends the waiting requests, or leaves them in the spool.
    pub fn end(mut self) {
        drop(self.sender.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that sends failed");
        }
    }
}

/// State of the thread.
struct Worker {
    client: Client,
    spool: Spool,
    totals: Arc<SharedTotals>,
    receiver: Receiver<Request>,
    /// Pause after the next failure.
    pause: Duration,
    /// Time of the next attempt.
    retry: Instant,
    /// The last attempt got no answer.
    is_away: bool,
}

impl Worker {
    fn work(&mut self) {
        loop {
            let wait = if self.spool.is_empty() { PAUSE.1 } else { self.left() };
            match self.receiver.recv_timeout(wait) {
                Ok(request) => self.accept(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.empty_spool(None);
        }
        self.retry = Instant::now();
        self.empty_spool(Some(self.retry + FAREWELL));
    }

    fn left(&self) -> Duration {
        self.retry.saturating_duration_since(Instant::now())
    }

    /// Sends a request, or spools it if others wait before it.
    fn accept(&mut self, request: Request) {
        let must_wait = !self.spool.is_empty() || (self.is_away && !self.left().is_zero());
        match if must_wait { Fate::Later } else { self.send(&request) } {
            Fate::Sent => self.totals.change(|totals| totals.sent += request.count),
            Fate::Refused => self.totals.change(|totals| totals.dropped += request.count),
            Fate::Later => self.put_aside(&request),
        }
    }

    fn send(&mut self, request: &Request) -> Fate {
        match self.client.send(&request.body) {
            Outcome::Taken(note) => {
                if let Some(note) = note {
                    tracing::warn!(note, "the server did not take all of a request");
                }
                if std::mem::take(&mut self.is_away) {
                    tracing::info!(waiting = self.spool.len(), "the server is back");
                }
                self.pause = PAUSE.0;
                Fate::Sent
            }
            Outcome::Refused(why) => {
                tracing::error!(
                    why,
                    samples = request.count.samples,
                    "the server refused a request: dropped"
                );
                Fate::Refused
            }
            Outcome::Later(why, after) => {
                let pause = after.unwrap_or(self.pause).min(PAUSE.1);
                if !std::mem::replace(&mut self.is_away, true) {
                    let seconds = pause.as_secs_f64();
                    tracing::warn!(
                        why,
                        retry_seconds = seconds,
                        "the server is away: requests go to the spool"
                    );
                }
                // Jitter: not all agents of a fleet retry at the same moment.
                self.retry = Instant::now() + pause.mul_f64(0.8 + 0.4 * (unix_ns() % 1000) as f64 / 1000.0);
                self.pause = (self.pause * 2).min(PAUSE.1);
                Fate::Later
            }
        }
    }

    fn put_aside(&mut self, request: &Request) {
        let before = self.spool.len();
        let (dropped, error) = self.spool.push(request);
        let gone = before + usize::from(error.is_none()) - self.spool.len();
        if gone > 0 {
            tracing::warn!(
                requests = gone,
                samples = dropped.samples,
                "the spool is full: the oldest dropped"
            );
        }
        if let Some(error) = error {
            let directory = self.spool.directory().display().to_string();
            tracing::error!(%error, directory, samples = request.count.samples, "cannot spool a request: dropped");
        }
        let spooled = self.spool.count();
        self.totals.change(|totals| {
            totals.dropped += dropped;
            totals.spooled = spooled;
        });
    }

    /// Sends spooled requests, oldest first, until one fails or `until` has passed. Requests that arrive during that are spooled behind them.
    fn empty_spool(&mut self, until: Option<Instant>) {
        while self.left().is_zero() && until.is_none_or(|until| Instant::now() < until) {
            let Some(oldest) = self.spool.oldest() else { return };
            let fate = match oldest {
                Ok(request) => self.send(&request),
                Err(error) => {
                    tracing::error!(%error, "cannot read a spooled request: dropped");
                    Fate::Refused
                }
            };
            if fate == Fate::Later {
                return;
            }
            let count = self.spool.remove_oldest();
            let spooled = self.spool.count();
            self.totals.change(|totals| {
                totals.spooled = spooled;
                *(if fate == Fate::Sent { &mut totals.sent } else { &mut totals.dropped }) += count;
            });
            while let Ok(request) = self.receiver.try_recv() {
                self.put_aside(&request);
            }
        }
    }
}

/// Disposition of a request after an attempt to send it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    Refused,
    Later,
}
