//! Interns the strings of a message's table in a batch: each is looked up once, however many rows refer to it.

use plumb_store::{Batch, TextId};

/// IDs in the batch by index in the message's string table, once looked up.
pub(super) struct InternedTexts(Vec<Option<TextId>>);

impl InternedTexts {
    /// For a table with this number of strings.
    pub fn new(strings: usize) -> Self {
        Self(vec![None; strings])
    }

    /// The ID of the string at an index.
    pub fn id(&mut self, batch: &mut Batch, place: usize, text: &str) -> TextId {
        let slot = self.0.get_mut(place);
        if let Some(Some(known)) = slot {
            return *known;
        }
        let id = batch.dictionary.text(text);
        if let Some(slot) = slot {
            *slot = Some(id);
        }
        id
    }
}
