//! Errors of the store.

use std::fmt;
use std::path::PathBuf;

use crate::tenant::Tenant;

/// The reason why data could not be stored or read.
#[derive(Debug)]
pub enum StoreError {
    /// An operation on a local file or directory failed.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// An operation on the directory or bucket of blocks failed.
    Bucket {
        /// Path of the object in it.
        path: String,
        /// The store's error.
        source: object_store::Error,
    },
    /// The URL is not of a bucket that this build can use.
    Url(String),
    /// A file of a block differs from what was written.
    Damaged {
        /// Path of the object.
        path: String,
        /// The difference.
        message: String,
    },
    /// Another server uses the directory.
    Locked(PathBuf),
    /// The name of a tenant is too long, or has characters other than letters, digits, `-`, `_` and `.`.
    Tenant(String),
    /// A tenant cannot be deleted, as other servers of its bucket may hold profiles of it.
    SharedTenant(Tenant),
    /// A build id is not a hexadecimal number.
    BuildId(String),
    /// The symbols of a file cannot be read.
    Symbols(String),
    /// Data is refused at the moment, because earlier data cannot be written.
    Full(String),
    /// A query needs more memory than its limit.
    TooLarge {
        /// Memory needed, in bytes.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The query was cancelled.
    Cancelled,
    /// The store was closed.
    Closed,
}

impl StoreError {
    /// Fails if more memory is needed than the limit, both in bytes.
    pub(crate) fn check_memory(needed: usize, limit: usize) -> Result<(), Self> {
        if needed <= limit { Ok(()) } else { Err(Self::TooLarge { needed, limit }) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, action, source } => write!(out, "cannot {action} {}: {source}", path.display()),
            Self::Bucket { path, source } if path.is_empty() => write!(out, "the bucket: {source}"),
            Self::Bucket { path, source } => write!(out, "{path}: {source}"),
            Self::Url(url) => write!(
                out,
                "cannot use {url} for blocks: give a directory, or s3://BUCKET/PREFIX in a build with the feature `s3`"
            ),
            Self::Damaged { path, message } => write!(out, "{path} is damaged: {message}"),
            Self::Locked(path) => {
                write!(
                    out,
                    "{} is in use by another server; stop it, or choose another directory",
                    path.display()
                )
            }
            Self::Tenant(name) => {
                write!(out, "invalid tenant {name:?}: use up to 64 letters, digits, '-', '_' and '.'")
            }
            Self::SharedTenant(tenant) => write!(
                out,
                "cannot delete the tenant {tenant}: the bucket's other servers may have its profiles in their logs; stop all servers, remove {tenant}/ \
                 from the bucket, and start them again"
            ),
            Self::BuildId(text) => {
                write!(
                    out,
                    "invalid build ID {text:?}: use its hexadecimal digits, as `readelf -n FILE` prints them"
                )
            }
            Self::Symbols(reason) => write!(out, "the symbols cannot be read: {reason}"),
            Self::Full(reason) => write!(out, "cannot be stored: {reason}"),
            Self::TooLarge { needed, limit } => write!(
                out,
                "the query needs {} MiB of memory, and {} MiB are allowed; select fewer services or a shorter time",
                needed >> 20,
                limit >> 20
            ),
            Self::Cancelled => out.write_str("the query was cancelled"),
            Self::Closed => out.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Bucket { source, .. } => Some(source),
            _ => None,
        }
    }
}
