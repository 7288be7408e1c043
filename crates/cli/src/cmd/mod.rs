//! One file per subcommand: its arguments and its `run`.

pub mod bench;
pub mod doctor;
pub mod flame;
pub mod fold;
pub mod procs;
pub mod record;
pub mod report;
pub mod script;
pub mod stack;
pub mod top;
pub mod unwind_stats;
