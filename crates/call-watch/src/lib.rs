//! System calls and page faults, traced one by one while a target is recorded, as input for the rules that say what to do about them.
//! Also the counts of calls that stand beside samples of kernel time.
//!
//! Elsewhere: the rules (`analyze`), the tracing programs (`capture-bpf`), the meaning of arguments (`syscalls`).

#![forbid(unsafe_code)]

mod call_formats;
mod costs;
mod counted;
mod descriptor_links;
mod error;
mod events;
mod paths;
mod turns;
mod watch;

pub use call_formats::described;
pub use costs::call_ns;
pub use counted::CountedRows;
pub use descriptor_links::{DescriptorLinks, learn};
pub use error::CallWatchError;
pub use watch::{CallFindings, CallWatch};
