//! Requests between servers of one bucket.

use plumb_store::{Millis, Selection, Selector};
use serde::{Deserialize, Serialize};

use crate::error::ApiError;

/// Asks for profiles that are in no block yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UnwrittenRequest {
    pub selector: String,
    pub from_ms: i64,
    pub until_ms: i64,
}

impl UnwrittenRequest {
    pub const PATH: &'static str = "/internal/v1/unwritten";

    pub fn new(selection: &Selection) -> Self {
        let selector = selection.selector.to_string();
        Self { selector, from_ms: selection.from.0, until_ms: selection.until.0 }
    }

    pub fn selection(&self) -> Result<Selection, ApiError> {
        let selector = Selector::parse(&self.selector)?;
        Ok(Selection { selector, from: Millis(self.from_ms), until: Millis(self.until_ms) })
    }
}
