//! Recording: from a request to a profile in memory, for every command that records, and for other programs.
//!
//! A recording samples its target ([`sample`]), looks up names while it does ([`Sampled::named`]), and is a profile at the end; [`record`] does
//! all of that. [`WindowedRecording`] has no end and gives its samples away in windows; [`LiveSession`] is one that is looked at while it goes on. Nothing is printed: [`Notices`] receives what a user may want to
//! know meanwhile.
//!
//! Invariant: a recording depends only on its [`RecordRequest`]. The profile is passed on in memory. Only a recording that outgrows its memory goes
//! through a file, its journal, because its samples don't fit otherwise.
//!
//! Elsewhere: sampling (`capture-perf`), names (`symbolize`), the file's format (`formats`).

#![forbid(unsafe_code)]

mod capture;
mod error;
pub mod events;
mod journal;
mod live;
mod measure;
mod memory;
mod notices;
mod own_probes;
mod recording;
mod request;
mod second_look;
mod session;
mod standstill;
mod summary;
mod symbols;
mod windowed;

pub use capture::{Capture, kernel_unwinder};
pub use error::RecordError;
pub use journal::{nameless_file, temporary_folders, write_profile};
pub use live::{LiveSession, WindowSum};
pub use measure::{MeasureRequest, MeasureWords};
pub use notices::{Notices, Progress};
pub use recording::{Ending, Recording, Sampled, record, sample};
pub use request::{MAX_MEMORY, RecordRequest, TABLES_MIB};
pub use second_look::SecondLook;
pub use session::Step;
pub use windowed::{EndedWindows, LeftNames, TakenWindow, WindowedRecording};
