//! Quality of a recording's stacks: the share of complete ones, causes of truncation, missing names, and remedies.
//!
//! Elsewhere: how this is reported, at the end of a recording (`plumb record`) and later (`plumb doctor`).

#![forbid(unsafe_code)]

mod causes;
mod compilers;
mod interpreted;
mod nameless;
mod packages;
mod runtimes;
mod told;

pub use causes::{Cause, Completeness, StackCounts};
pub use interpreted::{Way, interpreted};
pub use nameless::{nameless, of_file};
pub use runtimes::Runtime;
pub use told::Told;
