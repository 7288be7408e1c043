//! Where a store is and what it may take.

use std::path::PathBuf;
use std::time::Duration;

/// Where a store is and what it may take.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The directory of the write-ahead log, and of blocks if they are nowhere else.
    pub directory: PathBuf,
    /// The bucket of blocks, such as `s3://profiles/production`; any number of servers may have the same. Region, keys and endpoint are read
    /// from the environment: `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`.
    pub bucket: Option<String>,
    /// Where the other servers of the bucket reach this one, such as `http://10.0.0.7:4041`, so that they can ask for what is in no block yet.
    pub address: Option<String>,
    /// How often a block is written of what came.
    pub block_interval: Duration,
    /// Memory, in bytes, after which one is written earlier.
    pub head_bytes: usize,
    /// How long profiles are kept.
    pub retention: Duration,
    /// How many bytes all blocks may take; the oldest go first.
    pub max_bytes: u64,
    /// Memory for what was read of blocks, in bytes.
    pub cache_bytes: u64,
    /// Memory that one query may take, in bytes.
    pub query_bytes: usize,
    /// How many bytes a tenant's files with symbols may take.
    pub symbol_bytes: u64,
    /// How often compaction and retention are looked at.
    pub maintenance_interval: Duration,
    /// How often blocks of other servers are looked for in a bucket.
    pub refresh_interval: Duration,
}

impl StoreOptions {
    /// A store in a directory: blocks every 5 minutes, 30 days, at most 10 GiB.
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
            query_bytes: 512 << 20,
            symbol_bytes: 2 << 30,
            maintenance_interval: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(10),
        }
    }
}
