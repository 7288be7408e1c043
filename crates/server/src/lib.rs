//! The HTTP server before the profile store: takes profiles in and answers queries, in the protocols that profilers and Grafana already speak.
//!
//! `routes` has a file for each resource, `pyroscope` its messages, `ingest` turns what comes into batches of the store, `query` asks the store, and `flame`
//! lays out flame graphs; `recordings` answers questions on recordings that were loaded, without a store, `opened` keeps files that were dropped on the page, `limits` has the limits of tenants, `watch` computes findings before somebody asks, and `webhook` sends those that begin and end. Every answer is made of data by a serializer, so nothing that is shown needs escaping here.
//!
//! Only this crate knows HTTP. Not here: bytes on disk (`store`), how names are found for addresses (`symbolize`), options of the command (`cli`). It prints nothing; it
//! emits `tracing` events.

#![forbid(unsafe_code)]

mod access;
mod app;
mod authorities;
mod client;
mod connect;
mod error;
mod flame;
mod gauges;
mod ingest;
mod limits;
mod metrics;
pub mod moment;
mod opened;
mod options;
mod parameters;
mod peers;
mod pyroscope;
mod query;
mod recordings;
mod routes;
mod selections;
mod serve;
mod symbols;
mod tenant_gauges;
mod watch;
mod webhook;

pub use access::{Scope, TokenError, Tokens};
pub use authorities::{AuthoritiesError, PeerAuthorities};
pub use client::{PUSH_PATH, SYMBOLS_PATH, default_type, push_request};
pub use error::{ApiError, ErrorCode};
pub use limits::{TenantLimits, TenantLimitsError};
pub use opened::FileReader;
pub use options::{
    BodyLimits, FrameLimits, IngestLimits, MemoryLimits, QueryLimits, ServerOptions, WatchOptions,
};
pub use pyroscope::series::{Point, Series};
pub use pyroscope::types::LabelPair;
pub use routes::{ShownRecordings, recordings_router, router};
pub use serve::{ListenOptions, Reloader, ServeError, Server};
pub use webhook::{WebhookOptions, WebhookUrlError};
