//! Certificates of the authorities that sign those of the other servers of a bucket.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Certificates of authorities.
#[derive(Clone, Debug)]
pub struct PeerAuthorities(Arc<Vec<Certificate<'static>>>);

/// A file of certificates that cannot be used.
#[derive(Debug)]
pub enum AuthoritiesError {
    /// The file can't be read.
    Read(PathBuf, io::Error),
    /// The file isn't in PEM format.
    Pem(PathBuf, ureq::Error),
    /// The file has no certificate.
    Empty(PathBuf),
}

impl fmt::Display for AuthoritiesError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(out, "cannot read {}: {error}", path.display()),
            Self::Pem(path, error) => write!(out, "cannot use {}: {error}", path.display()),
            Self::Empty(path) => write!(out, "cannot use {}: it holds no certificate", path.display()),
        }
    }
}

impl std::error::Error for AuthoritiesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(_, error) => Some(error),
            Self::Pem(_, error) => Some(error),
            Self::Empty(_) => None,
        }
    }
}

impl PeerAuthorities {
    /// Reads a PEM file.
    ///
    /// # Errors
    /// The file can't be read, or holds no certificate.
    pub fn read(path: &Path) -> Result<Self, AuthoritiesError> {
        let pem = std::fs::read(path).map_err(|error| AuthoritiesError::Read(path.to_owned(), error))?;
        let mut certificates = Vec::new();
        for item in parse_pem(&pem) {
            let item = item.map_err(|error| AuthoritiesError::Pem(path.to_owned(), error))?;
            if let PemItem::Certificate(certificate) = item {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() {
            return Err(AuthoritiesError::Empty(path.to_owned()));
        }
        Ok(Self(Arc::new(certificates)))
    }

    /// TLS that trusts servers whose certificates these authorities have signed.
    pub(crate) fn tls(&self) -> TlsConfig {
        TlsConfig::builder().root_certs(RootCerts::Specific(self.0.clone())).build()
    }
}
