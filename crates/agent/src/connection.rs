//! The connection to the server: URL, token and client settings. Elsewhere: the requests themselves.

use std::sync::Arc;
use std::time::Duration;

use ureq::RequestBuilder;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::AgentError;
use crate::options::AgentOptions;

/// A server's URL with the credentials for it.
pub(crate) struct Connection {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

impl Connection {
    /// A connection to the server of `options`. A request fails after `timeout`.
    pub fn new(options: &AgentOptions, timeout: Duration) -> Result<Self, AgentError> {
        let url = &options.url;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(AgentError::Url(url.to_owned()));
        }
        let roots = options.ca_pem.as_deref().map(certificates).transpose()?;
        let tls =
            roots.map(|roots| TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(roots))).build());
        let config = ureq::Agent::config_builder()
            .tls_config(tls.unwrap_or_default())
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .user_agent(concat!("plumb-agent/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
            authorization: options.token.as_ref().map(|token| format!("Bearer {token}")),
        })
    }

    /// An authorized request for `path`, built by `method`.
    pub fn request<B>(
        &self,
        method: impl FnOnce(&ureq::Agent, String) -> RequestBuilder<B>,
        path: &str,
    ) -> RequestBuilder<B> {
        let request = method(&self.agent, format!("{}{path}", self.url));
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        }
    }
}

/// Parses the certificates of a PEM file.
fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, AgentError> {
    let items: Result<Vec<_>, _> = parse_pem(pem).collect();
    let items = items.map_err(|error| AgentError::Certificates(error.to_string()))?;
    let certificates: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(AgentError::Certificates("it holds no certificate".to_owned()));
    }
    Ok(certificates)
}
