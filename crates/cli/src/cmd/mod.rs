//! One file per subcommand: its arguments and its `run`.

mod advice;
pub mod annotate;
pub mod bench;
mod browse;
pub mod compare;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod flame;
pub mod fold;
pub mod generate;
pub mod kernel;
pub mod procs;
pub mod record;
pub mod report;
pub mod script;
pub mod stack;
pub mod stat;
pub mod top;
pub mod trace;
pub mod unwind_stats;
pub mod view;
