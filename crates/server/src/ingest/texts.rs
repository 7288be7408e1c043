//! Strings of a message's table in a batch: each is looked up once, however many rows name it.

use plumb_store::{Batch, TextId};

/// By place in a message's table of strings the id in the batch, once it was asked for.
pub(super) struct InternedTexts(Vec<Option<TextId>>);

impl InternedTexts {
    /// For a table of so many strings.
    pub fn new(strings: usize) -> Self {
        Self(vec![None; strings])
    }

    /// The id of the string at a place.
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
