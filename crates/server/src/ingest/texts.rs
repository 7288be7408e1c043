//! Interns the strings of a message's table in a batch: each is looked up once, however many rows refer to it.

use plumb_store::{Batch, TextId};

use super::builder::check_text;
use crate::error::ApiError;
use crate::options::IngestLimits;

/// IDs in the batch by index in the message's string table, once looked up.
pub(super) struct InternedTexts<'l> {
    known: Vec<Option<TextId>>,
    limits: &'l IngestLimits,
}

impl<'l> InternedTexts<'l> {
    /// For a table with this number of strings.
    pub fn new(strings: usize, limits: &'l IngestLimits) -> Self {
        Self { known: vec![None; strings], limits }
    }

    /// The ID of the string at an index. Fails if it is too long for a name.
    pub fn id(&mut self, batch: &mut Batch, place: usize, text: &str) -> Result<TextId, ApiError> {
        let slot = self.known.get_mut(place);
        if let Some(Some(known)) = slot {
            return Ok(*known);
        }
        check_text(text, self.limits)?;
        let id = batch.dictionary.text(text);
        if let Some(slot) = slot {
            *slot = Some(id);
        }
        Ok(id)
    }
}
