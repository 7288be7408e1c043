//! Options of a store: location and limits.

use std::path::PathBuf;
use std::time::Duration;

/// Options of a store: location and limits.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Directory of the write-ahead log, and of the blocks unless they are in a bucket.
    pub directory: PathBuf,
    /// Bucket of the blocks, such as `s3://profiles/production`. Any number of servers may share it. Region, keys and endpoint are read from the
    /// environment: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`.
    pub bucket: Option<String>,
    /// Address of this server for the bucket's other servers, such as `http://10.0.0.7:4041`, at which they can request data that is in no block yet.
    pub address: Option<String>,
    /// Interval at which new samples are written as a block.
    pub block_interval: Duration,
    /// Memory use of heads, in bytes, from which a block is written earlier.
    pub head_bytes: usize,
    /// Age up to which profiles are kept.
    pub retention: Duration,
    /// Size limit of all blocks, in bytes; the oldest ones are removed first.
    pub max_bytes: u64,
    /// Memory for cached parts of blocks, in bytes.
    pub cache_bytes: u64,
    /// Memory limit of a query, in bytes.
    pub query_bytes: usize,
    /// Size limit of a tenant's files with symbols, in bytes.
    pub symbol_bytes: u64,
    /// Interval of compaction and retention runs.
    pub maintenance_interval: Duration,
    /// Interval at which a bucket is searched for blocks of other servers.
    pub refresh_interval: Duration,
}

impl StoreOptions {
    /// Default options for a store in a directory: blocks every 5 minutes, 30 days, at most 10 GiB.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        const DAY: u64 = 24 * 3600;
        Self {
            directory: directory.into(),
            bucket: None,
            address: None,
            block_interval: Duration::from_secs(300),
            head_bytes: 48 << 20,
            retention: Duration::from_secs(30 * DAY),
            max_bytes: 10 << 30,
            cache_bytes: 48 << 20,
            query_bytes: 256 << 20,
            symbol_bytes: 2 << 30,
            maintenance_interval: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(10),
        }
    }

    /// Memory limit of a tenant's calls that are kept between queries, in bytes.
    pub(crate) fn shared_call_bytes(&self) -> usize {
        self.query_bytes / 4
    }
}
