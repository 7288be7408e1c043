//! Queries the other servers of a bucket for profiles that are in no block yet.

use std::time::Duration;

use bytes::Bytes;
use plumb_store::{Selected, Selection};

use crate::app::Context;
use crate::authorities::PeerAuthorities;
use crate::error::ApiError;
use crate::pyroscope::unwritten::UnwrittenRequest;

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

/// The HTTP client for other servers. Without `authorities`, public ones are trusted.
pub(crate) fn agent(authorities: Option<&PeerAuthorities>) -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    let tls = authorities.map(PeerAuthorities::tls);
    // The servers are close: sending takes less time than compressing.
    config.tls_config(tls.unwrap_or_default()).accept_encoding("identity").build().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::path::Path;
    use std::process::Command;
    use std::sync::Arc;

    use plumb_fixtures::{Requirement, needs_command};
    use plumb_store::{Store, StoreOptions};

    use super::*;
    use crate::{ListenOptions, Server, ServerOptions};

    /// A self-signed certificate for 127.0.0.1 and its key.
    fn make_certificate(folder: &Path) {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "30", "-subj", "/CN=plumb", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(folder)
            .output();
        assert!(made.unwrap().status.success());
    }

    #[test]
    fn a_server_whose_authority_is_named_is_asked() {
        if !needs_command(Requirement::Tools, "openssl") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        make_certificate(folder.path());
        let store = Arc::new(Store::open(StoreOptions::new(folder.path().join("store"))).unwrap());
        let certificate = folder.path().join("cert.pem");
        let tls = Some((certificate.clone(), folder.path().join("key.pem")));
        let listen = ListenOptions { tls, ..ListenOptions::new("127.0.0.1:0".parse().unwrap()) };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(Server::bind(store, ServerOptions::default(), listen)).unwrap();
        let url = format!("https://{}/ready", server.address());
        let serving = runtime.spawn(server.run(std::future::pending()));
        let authorities = PeerAuthorities::read(&certificate).unwrap();
        assert_eq!(agent(Some(&authorities)).get(&url).call().unwrap().status(), 200);
        let refused = agent(None).get(&url).call().unwrap_err().to_string();
        assert!(refused.contains("UnknownIssuer"), "{refused}");
        serving.abort();
    }

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        for (text, why) in [("", "holds no certificate"), ("-----BEGIN CERTIFICATE-----\nx", "cannot use")] {
            std::fs::write(&file, text).unwrap();
            let error = PeerAuthorities::read(&file).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(PeerAuthorities::read(&folder.path().join("none")).is_err());
    }
}
