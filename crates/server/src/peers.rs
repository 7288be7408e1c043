//! Queries the other servers of a bucket for profiles that are in no block yet.

use std::time::Duration;

use bytes::Bytes;
use plumb_store::{Selected, Selection};

use crate::app::Context;
use crate::error::ApiError;
use crate::wire::unwritten::UnwrittenRequest;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The profiles of a selection from this server and the others. A server that does not answer is left out, with a log message: its
/// profiles become visible when they are in a block.
pub(crate) fn select(context: &Context, selection: Selection) -> Result<Selected, ApiError> {
    let peers = context.store.peers();
    if peers.is_empty() {
        let selected = context.store.select(&context.tenant, selection)?;
        return Ok(selected.with_cancellation(context.cancellation.clone()));
    }
    let request = UnwrittenRequest::new(&selection);
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let mut answers: Vec<Bytes> = Vec::new();
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            peers.iter().map(|peer| (peer, scope.spawn(|| ask(context, &peer.address, &body)))).collect();
        for (peer, answer) in asked {
            match answer.join() {
                Ok(Ok(bytes)) => answers.push(bytes),
                Ok(Err(error)) => {
                    tracing::warn!(server = peer.address, %error, "another server of the bucket doesn't answer");
                }
                Err(_) => tracing::error!(server = peer.address, "asking another server failed"),
            }
        }
    });
    context.check()?;
    let selected = context.store.select_among(&context.tenant, selection, &answers)?;
    Ok(selected.with_cancellation(context.cancellation.clone()))
}

fn ask(context: &Context, address: &str, body: &[u8]) -> Result<Bytes, ureq::Error> {
    let url = format!("{}{}", address.trim_end_matches('/'), UnwrittenRequest::PATH);
    let mut request = context
        .peer_agent
        .post(url)
        .header("content-type", "application/json")
        .header("x-scope-orgid", context.tenant.as_str());
    if let Some(token) = context.options.tokens.as_ref().and_then(|tokens| tokens.admin()) {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let most = context.options.query.peer_answer;
    let bytes = request.send(body)?.body_mut().with_config().limit(most).read_to_vec()?;
    Ok(bytes.into())
}

/// The HTTP client for other servers.
pub(crate) fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    // The servers are close: sending takes less time than compressing.
    config.accept_encoding("identity").build().into()
}
