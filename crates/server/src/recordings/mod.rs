//! Recordings as a server shows them: loaded once, read only.
//!
//! Invariant: an answer depends on the recording and the parameters alone; nothing here changes what was loaded. Not here: the answers
//! (`plumb_documents`), how files are read (`cli`), HTTP (`routes`).

mod export;

use plumb_documents::answers::{AnswerError, AnswerFn};

use crate::error::{ApiError, ErrorCode};

/// All paths below a recording's own with what answers them.
pub(crate) fn paths() -> impl Iterator<Item = (&'static str, AnswerFn)> {
    plumb_documents::answers::PATHS.into_iter().chain([("/export", export::export as AnswerFn)])
}

impl From<AnswerError> for ApiError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Invalid(message) => Self::invalid(message),
            AnswerError::NotFound(message) => Self::new(ErrorCode::NotFound, message),
            AnswerError::Internal(message) => Self::new(ErrorCode::Internal, message),
        }
    }
}
