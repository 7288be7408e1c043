//! Tells another program of findings that begin and end: a webhook.
//!
//! Invariant: neither the server nor the evaluation waits for the receiver. Messages wait in a queue of bounded length; each is sent again until it is
//! taken or too old.
//!
//! Elsewhere: evaluating findings (`watch`).

mod delivery;
mod message;
mod states;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use plumb_documents::findings::Findings;
use plumb_store::Tenant;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::delivery::{Delivery, Outcome};
use self::message::messages;
use self::states::FindingStates;
use crate::authorities::PeerAuthorities;
use crate::metrics::Metrics;

/// Most messages that wait.
const QUEUE: usize = 64;

/// A receiver of findings that begin and end.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    url: String,
    /// URL of the server's page for those who read the messages.
    page_url: Option<String>,
    authorities: Option<PeerAuthorities>,
}

/// A URL that a webhook cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrlError(String);

impl fmt::Display for WebhookUrlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is not a URL of a webhook: write https://HOST/PATH", self.0)
    }
}

impl std::error::Error for WebhookUrlError {}

impl WebhookOptions {
    /// A webhook at `url`, whose messages link to the page at `page_url`; without one, at the address that the server listens on. `authorities` verify
    /// the receiver; without them, public ones do.
    ///
    /// # Errors
    /// One of the URLs is not one of HTTP or HTTPS with a host.
    pub fn new(
        url: &str,
        page_url: Option<&str>,
        authorities: Option<PeerAuthorities>,
    ) -> Result<Self, WebhookUrlError> {
        for one in [Some(url), page_url].into_iter().flatten() {
            let parsed = one.parse::<ureq::http::Uri>().ok();
            let is_http = |uri: &ureq::http::Uri| matches!(uri.scheme_str(), Some("http" | "https"));
            if parsed.filter(is_http).and_then(|uri| uri.host().map(str::is_empty)) != Some(false) {
                return Err(WebhookUrlError(one.to_owned()));
            }
        }
        Ok(Self { url: url.to_owned(), page_url: page_url.map(str::to_owned), authorities })
    }
}

/// A running webhook. Dropping it stops the delivery.
pub(crate) struct Webhook {
    page_url: String,
    tenants: HashMap<Tenant, FindingStates>,
    queue: mpsc::Sender<Vec<u8>>,
    metrics: Arc<Metrics>,
    _delivery: JoinSet<()>,
}

impl Webhook {
    /// Starts the delivery of messages. `own_url`: the address that the server listens on.
    pub fn start(options: &WebhookOptions, own_url: &str, metrics: Arc<Metrics>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let delivery = Delivery::new(options.url.clone(), options.authorities.as_ref(), metrics.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(delivery.run(waiting));
        let page_url = options.page_url.as_deref().unwrap_or(own_url).trim_end_matches('/').to_owned();
        Self { page_url, tenants: HashMap::new(), queue, metrics, _delivery: tasks }
    }

    /// Takes the findings of an evaluation, and sends those that begin and end with it.
    pub fn evaluated(&mut self, tenant: &Tenant, findings: &Findings) {
        let changes = self.tenants.entry(tenant.clone()).or_default().evaluate(findings);
        let range = (findings.from_ms, findings.until_ms);
        for message in messages(tenant, &changes, &self.page_url, range) {
            // Serializing texts and numbers does not fail.
            let body = serde_json::to_vec(&message).unwrap_or_default();
            if self.queue.try_send(body).is_err() {
                self.metrics.background.message(Outcome::Dropped.word());
                tracing::warn!(%tenant, "the webhook's queue is full: a message was dropped");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        let of = |url: &str| WebhookOptions::new(url, Some("http://127.0.0.1:4041/"), None);
        assert_eq!(
            of("https://chat.example/hook?x=1").map(|one| one.page_url),
            Ok(Some("http://127.0.0.1:4041/".to_owned()))
        );
        for wrong in ["", "chat.example/hook", "ftp://chat.example", "/hook", "http://"] {
            assert!(of(wrong).is_err_and(|error| error.to_string().contains("https://HOST/PATH")), "{wrong}");
        }
        assert!(WebhookOptions::new("http://chat.example", Some("page"), None).is_err());
    }
}
