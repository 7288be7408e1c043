//! System calls: what they and their errors are called, what their arguments mean, what descriptors are.
//!
//! Numbers are the running kernel's and may be newer than the tables here, which are those of the crate `syscalls`: a number
//! without a name is data, not an error.
//!
//! Everything that points into memory was copied by somebody else and may be anything: decoding checks each step and says an address
//! where it can't say more.
//!
//! Not here: where calls are seen and memory is copied (capture-bpf), what is printed.

mod account;
mod bursts;
mod call;
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
mod sets;
mod signature;

pub use account::{Account, Longest, Times, gives_bytes, path_argument, takes_file};
pub use bursts::{Bursts, Moment, bursts, middle};
pub use call::{At, CallEnd, Count, Piece, SystemCall, Take, What};
pub use decode::{NameOf, quote, socket_address};
pub use descriptors::{Ask, Descriptors, tracked};
pub use errors::{MAX_ERRNO, Outcome, errno_name};
pub use groups::in_group;
pub use heat::Heat;
pub use latencies::Latencies;
pub use names::{Abi, name, named, number};
pub use signature::Signature;
