//! Definitions shared by the BPF programs and the recorder: keys and values of maps, and the messages of the ring.
//!
//! `cargo run -p xtask -- codegen` generates `bpf/wire.h` and the reader of messages from these files, and CI checks that they are
//! current. The files therefore contain only constants and `#[repr(C)]` structures of integers, of arrays of integers and of each other,
//! without hidden padding.

mod events;
mod messages;
mod received;
mod sums;
mod walk;

pub use events::*;
pub use messages::*;
pub use received::Received;
pub use sums::*;
pub use walk::*;
