//! Reasons why a recording can't start, go on or be kept, with advice in their messages.

use std::fmt;
use std::io;

use plumb_capture_bpf::LoadError;
use plumb_formats::native::{ReadError, WriteError};

use crate::measure::{MeasureRequest, MeasureWords};

/// The reason why nothing is recorded, or why a recording is lost.
#[derive(Debug)]
pub enum RecordError {
    /// Sampling can't start or go on.
    Sampling(plumb_capture_perf::Error),
    /// A quantity can't be measured.
    Measure(MeasureRequest, LoadError),
    /// The observer of the target failed.
    Observer(io::Error),
    /// The recording can't be written.
    Write(WriteError),
    /// The output rejects the recording.
    Output(io::Error),
    /// A temporary file can't be created, written or read.
    Temporary(io::Error),
    /// Parts of a long recording, which had to leave memory, can't be read back.
    Parts(ReadError),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Sampling(error) => error.fmt(f),
            RecordError::Measure(quantity, error) => {
                let MeasureWords { name, less, .. } = quantity.words();
                write!(f, "cannot measure {name}: {error}{}\n  without:  {less}", error.remedy())
            }
            RecordError::Observer(error) => write!(f, "the observer of the target failed: {error}"),
            RecordError::Write(error) => error.fmt(f),
            RecordError::Output(error) => error.fmt(f),
            RecordError::Temporary(error) => write!(f, "a temporary file: {error}"),
            RecordError::Parts(error) => write!(f, "the earlier parts of the recording: {error}"),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Sampling(error) => Some(error),
            RecordError::Write(error) => error.source(),
            // The message has all of it.
            RecordError::Measure(..)
            | RecordError::Observer(_)
            | RecordError::Output(_)
            | RecordError::Temporary(_)
            | RecordError::Parts(_) => None,
        }
    }
}

impl From<plumb_capture_perf::Error> for RecordError {
    fn from(error: plumb_capture_perf::Error) -> Self {
        RecordError::Sampling(error)
    }
}

impl From<WriteError> for RecordError {
    fn from(error: WriteError) -> Self {
        RecordError::Write(error)
    }
}

#[cfg(test)]
mod tests {
    use plumb_capture_bpf::Unsupported;

    use super::*;

    #[test]
    fn only_privileges_that_would_help_are_advised() {
        let lacks = LoadError::Unsupported(Unsupported::Capabilities(vec!["CAP_BPF"]));
        assert!(lacks.remedy().starts_with("\n  do:       run as root\n"));
        assert_eq!(LoadError::Unsupported(Unsupported::NoBtf).remedy(), "");
        let text = RecordError::Measure(MeasureRequest::OffCpu { min_ns: 0 }, lacks).to_string();
        assert!(text.contains("run as root") && text.ends_with("which counts them"), "{text}");
    }
}
