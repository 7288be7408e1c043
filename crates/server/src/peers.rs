//! Asks the other servers of a bucket for what is in no block yet.

use std::time::Duration;

use bytes::Bytes;
use plumb_store::{Selected, Selection};

use crate::app::Context;
use crate::error::ApiError;
use crate::wire::unwritten::UnwrittenRequest;

/// How long another server may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What this server and the others have of a selection. One that doesn't answer is left out, which is logged: what it accepted is seen when it
/// has become a block.
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

/// The client that asks them.
pub(crate) fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    // They are near: sending takes less than compressing.
    config.accept_encoding("identity").build().into()
}
