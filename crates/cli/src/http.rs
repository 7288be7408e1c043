//! Requests to a server of profiles. Errors say what the server said.
//!
//! ureq: a client without threads of its own, with rustls, which the server has too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ureq::RequestBuilder;

/// Longest answer that is read, in bytes.
const MOST: u64 = 1 << 30;

/// The variable that names a file with the token.
const TOKEN: &str = "PLUMB_TOKEN_FILE";

/// A server and how to get in.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

impl Client {
    /// For the server at a URL, with the token that a file holds: this one, or the one that [`TOKEN`] names.
    pub fn new(url: &str, token: Option<&Path>) -> Result<Self> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("{url} is no URL of a server: write http://127.0.0.1:4041");
        }
        let named = std::env::var_os(TOKEN).map(PathBuf::from);
        let authorization = match token.or(named.as_deref()) {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read the token in {}", path.display()))?;
                Some(format!("Bearer {}", text.trim()))
            }
        };
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(120)))
            .http_status_as_error(false)
            .build();
        Ok(Self { agent: config.into(), url: url.trim_end_matches('/').to_owned(), authorization })
    }

    /// Posts a body; returns the answer's.
    pub fn post(&self, path: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>> {
        let request = self.authorized(self.agent.post(format!("{}{path}", self.url)));
        let response = request
            .header("Content-Type", kind)
            .send(body)
            .with_context(|| format!("cannot send to {}", self.url))?;
        self.body(response)
    }

    /// Puts a body; returns the answer's.
    pub fn put(&self, path: &str, body: &[u8]) -> Result<Vec<u8>> {
        let request = self.authorized(self.agent.put(format!("{}{path}", self.url)));
        let response = request.send(body).with_context(|| format!("cannot send to {}", self.url))?;
        self.body(response)
    }

    /// Asks with parameters; returns the answer's body.
    pub fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<u8>> {
        let mut request = self.authorized(self.agent.get(format!("{}{path}", self.url)));
        for (name, value) in parameters {
            request = request.query(name, value);
        }
        let response = request
            .call()
            .with_context(|| format!("cannot reach {} (is plumb serve running there?)", self.url))?;
        self.body(response)
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        }
    }

    fn body(&self, mut response: ureq::http::Response<ureq::Body>) -> Result<Vec<u8>> {
        let status = response.status();
        let body = response.body_mut().with_config().limit(MOST).read_to_vec();
        let body = body.with_context(|| format!("cannot read the answer of {}", self.url))?;
        if status.is_success() {
            return Ok(body);
        }
        #[derive(serde::Deserialize)]
        struct Refusal {
            message: String,
        }
        let message = match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) => refusal.message,
            Err(_) => String::from_utf8_lossy(&body).chars().take(500).collect(),
        };
        bail!("{} refused the request: {message} (status {})", self.url, status.as_u16());
    }
}
