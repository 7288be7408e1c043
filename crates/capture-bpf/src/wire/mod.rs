//! What the programs in the kernel and the recorder share: maps' keys and values, and the messages of the ring.
//!
//! `cargo run -p xtask -- codegen` turns these files into `bpf/wire.h` and the reader of messages; CI checks that it did. So there are
//! only constants and `#[repr(C)]` structures of integers, arrays of them and each other in them, without hidden padding.

mod events;
mod messages;
mod received;
mod sums;
mod tables;

pub use events::*;
pub use messages::*;
pub use received::Received;
pub use sums::*;
pub use tables::*;
