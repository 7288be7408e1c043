//! One file per subcommand: its arguments and its `run`.

#[cfg(feature = "agent")]
pub mod agent;
pub mod annotate;
pub mod bench;
pub mod compare;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod flame;
pub mod fold;
pub mod generate;
pub mod kernel;
#[cfg(feature = "server")]
pub mod open;
pub mod procs;
#[cfg(feature = "server")]
pub mod push;
#[cfg(feature = "server")]
pub mod query;
pub mod record;
pub mod report;
pub mod script;
#[cfg(feature = "server")]
pub mod serve;
pub mod stack;
pub mod stat;
pub mod top;
pub mod trace;
pub mod view;

/// Functions of other commands that `plumb view` shows.
pub const LISTINGS: view::Listings = view::Listings { annotate: annotate::listing, diff: diff::written };
