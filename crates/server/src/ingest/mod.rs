//! What comes in becomes a batch of the store: samples by series, time and stack. A file for each format.
//!
//! Bytes are hostile here: what points nowhere, what is too much and what can't be added up is refused with a sentence.

mod application;
mod jfr;
mod labels;
mod location;
mod otlp;
mod pprof;
mod stacks;
mod texts;
mod time;

pub(crate) use application::Application;
pub(crate) use jfr::{JfrUpload, add as add_jfr};
pub(crate) use labels::series_labels;
pub(crate) use otlp::add as add_otlp;
pub(crate) use pprof::PprofReader;
pub(crate) use stacks::{StackFormat, Target, add as add_stacks};
pub(crate) use time::begin_time;
