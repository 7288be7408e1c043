//! Requests to a server of profiles. Errors say what the server said.
//!
//! ureq: a client without threads of its own, with rustls, which the server has too.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ureq::RequestBuilder;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::args::AccessArgs;
use crate::terminal::say;

/// Longest answer that is read, in bytes.
const MOST: u64 = 1 << 30;

/// Header of answers in which profiles are missing.
const MISSING: &str = "plumb-missing";

/// A server and how to get in.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
    /// Whether it has been told that profiles are missing.
    has_told: Cell<bool>,
}

impl Client {
    /// For the server at a URL.
    pub fn new(url: &str, access: &AccessArgs) -> Result<Self> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("{url} is no URL of a server: write http://127.0.0.1:4041");
        }
        let authorization = access.token().map(|path| {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read the token in {}", path.display()))?;
            anyhow::Ok(format!("Bearer {}", text.trim()))
        });
        let authorization = authorization.transpose()?;
        let ca_cert = access.ca_cert().filter(|_| url.starts_with("https://"));
        let tls = ca_cert.map(|path| {
            let roots = certificates(&path);
            roots.with_context(|| format!("cannot use the certificates in {}", path.display()))
        });
        let config = ureq::Agent::config_builder()
            .tls_config(tls.transpose()?.unwrap_or_default())
            .timeout_global(Some(Duration::from_secs(120)))
            .http_status_as_error(false)
            .build();
        Ok(Self {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
            authorization,
            has_told: Cell::new(false),
        })
    }

    /// Posts a body; returns the answer's.
    pub fn post(&self, path: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>> {
        let request = self.authorized(self.agent.post(format!("{}{path}", self.url)));
        let response = request.header("Content-Type", kind).send(body).map_err(|error| self.failed(error))?;
        self.body(response)
    }

    /// Puts a body; returns the answer's.
    pub fn put(&self, path: &str, body: &[u8]) -> Result<Vec<u8>> {
        let request = self.authorized(self.agent.put(format!("{}{path}", self.url)));
        let response = request.send(body).map_err(|error| self.failed(error))?;
        self.body(response)
    }

    /// Asks with parameters; returns the answer's body.
    pub fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<u8>> {
        let mut request = self.authorized(self.agent.get(format!("{}{path}", self.url)));
        for (name, value) in parameters {
            request = request.query(name, value);
        }
        let response = request.call().map_err(|error| self.failed(error))?;
        self.body(response)
    }

    fn failed(&self, error: ureq::Error) -> anyhow::Error {
        // ureq says no more of what rustls found than its text.
        let text = error.to_string();
        let why = match () {
            () if text.contains("UnknownIssuer") => {
                let how = "name that of its authority with --ca-cert FILE or PLUMB_CA_CERT";
                format!("cannot verify the certificate of {}: {how}", self.url)
            }
            () if text.contains("CaUsedAsEndEntity") => {
                let how = "it is an authority's own, as openssl req -x509 makes it; sign one for the server with it (docs/install.md)";
                format!("cannot verify the certificate of {}: {how}", self.url)
            }
            () if text.contains("certificate") => format!("cannot verify the certificate of {}", self.url),
            () => format!("cannot reach {} (is plumb serve running there?)", self.url),
        };
        anyhow::Error::new(error).context(why)
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
            if response.headers().contains_key(MISSING) && !self.has_told.replace(true) {
                say!(
                    "profiles are missing here: a block of the store is damaged; the server's log says which"
                );
            }
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

/// The certificates of a file, in the place of those of public authorities.
fn certificates(path: &Path) -> Result<TlsConfig> {
    let pem = std::fs::read(path)?;
    let items = parse_pem(&pem).collect::<Result<Vec<_>, _>>()?;
    let certificates: Vec<Certificate<'static>> = items
        .into_iter()
        .filter_map(
            |item| if let PemItem::Certificate(certificate) = item { Some(certificate) } else { None },
        )
        .collect();
    anyhow::ensure!(!certificates.is_empty(), "it holds no certificate");
    Ok(TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(certificates))).build())
}
