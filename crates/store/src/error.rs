//! What can go wrong in the store.

use std::fmt;
use std::path::PathBuf;

/// Why something could not be stored or found.
#[derive(Debug)]
pub enum StoreError {
    /// A file or folder on this machine failed.
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried, as a verb.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The directory or bucket of blocks failed.
    Bucket {
        /// The object's path in it.
        path: String,
        /// Why it failed.
        source: object_store::Error,
    },
    /// A URL names no bucket that this build can use.
    Url(String),
    /// A file of a block is not what was written.
    Damaged {
        /// The object's path.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// Another server uses the directory.
    Locked(PathBuf),
    /// A tenant's name has other characters than letters, digits, `-`, `_` and `.`, or too many.
    Tenant(String),
    /// A build id is no number in hexadecimal digits.
    BuildId(String),
    /// Nothing is taken at the moment, because what was taken can't be written.
    Full(String),
    /// An answer would take more memory than a query may.
    TooLarge {
        /// What it would take, in bytes.
        needed: usize,
        /// What it may.
        limit: usize,
    },
    /// Nobody waits for the answer any more.
    Cancelled,
    /// The store was closed.
    Closed,
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
            Self::BuildId(text) => {
                write!(
                    out,
                    "invalid build ID {text:?}: use its hexadecimal digits, as `readelf -n FILE` prints them"
                )
            }
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
