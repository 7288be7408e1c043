//! How good the stacks of a recording are: how many are complete, why others are not, where names are missing, and what helps.
//!
//! Not here: how that is said at the end of a recording (`plumb record`) and later (`plumb doctor`).

mod causes;
mod compilers;
mod interpreted;
mod nameless;
mod packages;
mod runtimes;
mod told;

pub use causes::{Cause, StackCounts, Stacks};
pub use interpreted::{Way, interpreted};
pub use nameless::{nameless, of_file};
pub use runtimes::Runtime;
pub use told::Told;
