//! System calls: names of calls and errors, meaning of arguments, tracking of descriptors.
//!
//! Numbers come from the running kernel, which may be newer than the tables here, those of the crate `syscalls`: a number
//! without a name is data, not an error.
//!
//! Memory was copied from other processes and is untrusted: decoding checks each step, and writes an address
//! if it cannot decode more.
//!
//! Elsewhere: tracing calls and copying memory (capture-bpf), printing.

mod account;
mod arch;
mod bursts;
mod call;
mod call_summary;
mod counted;
mod decode;
#[cfg(test)]
mod decode_tests;
mod descriptors;
#[cfg(test)]
mod descriptors_tests;
mod errors;
mod groups;
mod heat;
mod kinds;
mod latencies;
mod layouts;
mod names;
mod repeated_calls;
mod sets;
mod signature;

pub use account::{Account, Longest, Times, gives_bytes, path_argument, takes_file};
pub use arch::Abi;
pub use bursts::{Bursts, Moment, bursts, middle};
pub use call::{At, CallEnd, Count, Piece, SystemCall, Take, What};
pub use call_summary::{CallSummaries, CallSummary};
pub use counted::{CallOverhead, CallsApart, CountedCall, CountedCalls, TaskEvents, counted_calls};
pub use decode::{NameOf, quote, socket_address};
pub use descriptors::{Ask, Descriptors, tracked};
pub use errors::{MAX_ERRNO, Outcome, errno_name};
pub use groups::in_group;
pub use heat::Heat;
pub use latencies::Latencies;
pub use names::{name, named, number};
pub use repeated_calls::{CallGroup, CallGroups};
pub use signature::Signature;
