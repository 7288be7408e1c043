//! Stores profiles of many services over time, and answers queries on them.
//!
//! An appended batch is in the write-ahead log before [`Store::append`] returns, and in a *head* in memory. Every few minutes the head becomes a
//! *block*: Parquet tables in a directory or in a bucket, which any engine can read. Blocks are compacted, and removed when they are too old or take
//! too much space. A query reads heads and blocks alike.
//!
//! Only this crate knows the on-disk format. Elsewhere: HTTP, other formats (`formats`, `server`), symbolization (`symbolize`).

#![forbid(unsafe_code)]

mod appender;
mod batch;
mod block;
mod bucket;
mod calls;
mod cancellation;
mod clock;
mod compaction;
mod deletion;
mod dictionary;
mod error;
mod frame_calls;
mod head;
mod labels;
mod lease;
mod live;
mod maintenance;
mod options;
mod peers;
mod query;
mod quotas;
mod recovery;
mod resolved;
mod selector;
mod shared;
mod status;
mod store;
mod symbols;
mod taken;
mod tenant;
mod tenants;
mod texts;
mod tombstones;
mod unwritten;
mod wal;
mod wanted;

pub use batch::{Batch, Millis, SeriesKey, StoredSample};
pub use block::{BlockCounts, BlockMeta, FileMeta};
pub use calls::{CallNode, CallTree};
pub use cancellation::Cancellation;
pub use dictionary::{Dictionary, FrameKey, StackFrames, StackNodeId, StoredFrame, TextId};
pub use error::StoreError;
pub use labels::{Labels, NAME, PROFILE_TYPE, ProfileType, SERVICE};
pub use options::StoreOptions;
pub use peers::Peer;
pub use query::{HeaviestStacks, ProfileTotal, RowsTaken, Selected, Selection, diff};
pub use quotas::{TenantQuota, TenantQuotas};
pub use resolved::{FileAddress, ResolvedCall};
pub use selector::{Selector, SelectorError};
pub use status::{StoreStatus, TenantStatus};
pub use store::Store;
pub use symbols::SymbolSource;
pub use taken::RequestKey;
pub use tenant::Tenant;
