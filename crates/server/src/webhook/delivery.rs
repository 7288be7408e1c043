//! Delivery of messages: one after the other, each sent again until the receiver takes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use crate::authorities::PeerAuthorities;
use crate::metrics::Metrics;

/// Time limit of a request.
const REQUEST: Duration = Duration::from_secs(10);
/// Pause after the first failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Time after which a message is given up.
const PATIENCE: Duration = Duration::from_secs(600);

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The receiver took it.
    Sent,
    /// The receiver refused it, or could not be reached for too long.
    Failed,
    /// The queue was full.
    Dropped,
}

impl Outcome {
    /// Value of the metric's label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

/// An attempt that failed.
#[derive(Debug)]
enum Failure {
    /// Another attempt may succeed.
    Passing(String),
    /// The receiver will never take the message.
    Final(String),
}

/// The sending end of a webhook.
pub(super) struct Delivery {
    url: String,
    client: ureq::Agent,
    metrics: Arc<Metrics>,
}

impl Delivery {
    pub fn new(url: String, authorities: Option<&PeerAuthorities>, metrics: Arc<Metrics>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(REQUEST))
            .tls_config(authorities.map(PeerAuthorities::tls).unwrap_or_default())
            // A redirected POST would become a GET.
            .max_redirects(0)
            .http_status_as_error(false);
        Self { url, client: config.build().into(), metrics }
    }

    /// Sends messages as they come.
    pub async fn run(self, mut waiting: mpsc::Receiver<Vec<u8>>) {
        while let Some(message) = waiting.recv().await {
            let outcome = self.deliver(message.into()).await;
            self.metrics.background.message(outcome.word());
        }
    }

    /// Sends a message, again and again if the receiver cannot be reached.
    async fn deliver(&self, message: Arc<[u8]>) -> Outcome {
        let (begin, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let (client, url, body) = (self.client.clone(), self.url.clone(), message.clone());
            let attempt = on_own_thread(move || post(&client, &url, &body)).await;
            match attempt {
                Some(Ok(())) => return Outcome::Sent,
                Some(Err(Failure::Passing(why))) if begin.elapsed() < PATIENCE => {
                    tracing::warn!(why, "the webhook is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Some(Err(Failure::Passing(why) | Failure::Final(why))) => {
                    tracing::error!(why, "a message of the webhook was not delivered");
                    return Outcome::Failed;
                }
                None => return Outcome::Failed,
            }
        }
    }
}

/// Runs work on a thread that nobody waits for: the end of the server waits for all that the runtime has. `None`: no thread could be started.
async fn on_own_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("webhook".to_owned()).spawn(move || {
        let _ = sender.send(work());
    });
    thread.ok()?;
    done.await.ok()
}

fn post(client: &ureq::Agent, url: &str, body: &[u8]) -> Result<(), Failure> {
    let request = client.post(url).header("Content-Type", "application/json");
    let response = request.send(body).map_err(|error| Failure::Passing(error.to_string()))?;
    match response.status().as_u16() {
        200..300 => Ok(()),
        status @ (408 | 429 | 500..600) => Err(Failure::Passing(format!("status {status}"))),
        status => Err(Failure::Final(format!("status {status}"))),
    }
}
