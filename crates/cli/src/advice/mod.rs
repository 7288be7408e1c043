//! Advice on system calls and on started processes, as text and as JSON.
//!
//! Elsewhere: the rules (analyze), the tracing of calls (`plumb_call_watch`).

pub mod processes;
mod show;

pub use show::text;
