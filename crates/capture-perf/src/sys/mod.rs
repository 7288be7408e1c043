//! The doors to the kernel that neither std nor a crate in use offers, each behind a safe function.
//!
//! All `unsafe` of this crate is in this folder and in `ring.rs`. Nothing here decides anything: a call goes in, the
//! kernel's answer comes out as an [`std::io::Error`].

pub(crate) mod memory;
pub(crate) mod perf;
pub(crate) mod tracefs;
