//! How the agent reaches its server: the URL, the token, the client's settings. Not here: which requests there are.

use std::sync::Arc;
use std::time::Duration;

use ureq::RequestBuilder;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::AgentError;
use crate::options::AgentOptions;

/// A server, and how to get in.
pub(crate) struct Connection {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

impl Connection {
    /// To the server of the options. No request takes longer than `timeout`.
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

    /// A request by `method` for a path, with the token.
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

/// The certificates of a file.
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
