//! TLS by rustls with ring: no C library, and nothing to choose. The certificate can be exchanged while the server runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::ServeError;

/// A chain of certificates with its key, from two PEM files. New connections get the current one.
#[derive(Debug)]
pub(super) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads the files.
    pub fn read(chain: &Path, key: &Path) -> Result<Self, ServeError> {
        let current = RwLock::new(Arc::new(read(chain, key)?));
        Ok(Self { chain: chain.to_owned(), key: key.to_owned(), current })
    }

    /// Reads the files again. Returns whether the chain has changed. An error: all stays as it is.
    pub fn reload(&self) -> Result<bool, ServeError> {
        let read = Arc::new(read(&self.chain, &self.key)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.cert != read.cert;
        *current = read;
        Ok(is_new)
    }

    /// Accepts connections with it.
    pub fn acceptor(self: Arc<Self>) -> Result<TlsAcceptor, ServeError> {
        let chain = self.chain.clone();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ServeError::Certificate(chain, error.to_string()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn read(chain: &Path, key: &Path) -> Result<CertifiedKey, ServeError> {
    let refused = |path: &Path| {
        let path = path.to_owned();
        move |why: &dyn std::fmt::Display| ServeError::Certificate(path, why.to_string())
    };
    let certificates = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| refused(chain)(&error))?;
    if certificates.is_empty() {
        return Err(refused(chain)(&"it holds no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| refused(key)(&error))?;
    CertifiedKey::from_der(certificates, secret, &ring::default_provider())
        .map_err(|error| refused(chain)(&error))
}
