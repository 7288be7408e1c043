//! The tests of `plumb-server` as one program, of which a module is a suite. A suite that measures what others would disturb is a program of its own.

mod api;
mod compressed;
mod golden;
mod hostile;
mod ingest;
mod metrics;
mod otlp;
mod pgo;
mod rhythms;
mod routes;
mod serve;
mod support;
mod symbols;
mod tenants;
mod tls;
mod watch;
mod webhook;
