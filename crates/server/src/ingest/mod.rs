//! Turns requests into batches of the store: samples by series, time and stack. One file per format.
//!
//! Input is untrusted: invalid references, exceeded limits and overflowing sums are rejected with a message.

mod application;
mod builder;
mod decoded;
mod jfr;
mod labels;
mod location;
mod otlp;
mod pprof;
mod stacks;
mod texts;
mod time;

pub(crate) use application::Application;
pub(crate) use builder::StackBuilder;
pub(crate) use decoded::{OTLP, PUSH, check_json, check_message};
pub(crate) use jfr::{JfrUpload, add as add_jfr};
pub(crate) use labels::series_labels;
pub(crate) use otlp::add as add_otlp;
pub(crate) use pprof::PprofReader;
pub(crate) use stacks::{StackFormat, Target, add as add_stacks};
pub(crate) use time::begin_time;
