//! Lines of source text. V8 counts characters, and keeps the text on its heap.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Unreadable;

use super::heap::{Heap, Tagged, Text};

/// Most lines of all texts that are kept.
const MAX_LINES: usize = 4 << 20;

/// Line ends of the texts that were read, by the text's address and first characters.
#[derive(Debug, Default)]
pub(super) struct Sources(Mutex<HashMap<TextId, Arc<[u32]>>>);

/// A text: the addresses of its script and of itself, its name, and the first words of it. Several processes may run the same program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TextId {
    script: u64,
    text: u64,
    head: [u8; 64],
}

impl Sources {
    /// Offsets of the ends of lines in the text of a script, in characters.
    pub(super) fn line_ends(&self, heap: Heap<'_>, script: Tagged) -> Result<Arc<[u32]>, Unreadable> {
        let source = heap.field(script, heap.layout.script.source)?;
        let mut id = TextId { script: script.0, text: source.0, head: [0; 64] };
        let at = source.address().ok_or(Unreadable(source.0))?;
        if !heap.memory.read(at, &mut id.head) {
            return Err(Unreadable(at));
        }
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ends) = known().get(&id) {
            return Ok(Arc::clone(ends));
        }
        let ends: Arc<[u32]> = ends(&heap.text(source)?).into();
        let mut known = known();
        if known.values().map(|ends| ends.len()).sum::<usize>() + ends.len() > MAX_LINES {
            known.clear();
        }
        known.insert(id, Arc::clone(&ends));
        Ok(ends)
    }
}

/// Offsets of the ends of lines: line feeds, carriage returns without one, and the separators of Unicode.
fn ends(text: &Text) -> Vec<u32> {
    match text {
        Text::OneByte(bytes) => ends_of(bytes.iter().map(|&byte| byte.into())),
        Text::TwoByte(units) => ends_of(units.iter().copied()),
    }
}

fn ends_of(units: impl Iterator<Item = u16>) -> Vec<u32> {
    const FEED: u16 = 0x0a;
    const RETURN: u16 = 0x0d;
    let mut units = units.enumerate().peekable();
    let mut ends = Vec::new();
    while let Some((at, unit)) = units.next() {
        let is_end = match unit {
            FEED | 0x2028 | 0x2029 => true,
            RETURN => units.peek().is_none_or(|&(_, next)| next != FEED),
            _ => false,
        };
        if is_end {
            ends.extend(u32::try_from(at));
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_the_language_says() {
        assert_eq!(ends(&Text::OneByte(b"a\nb\r\nc\rd".to_vec())), [1, 4, 6]);
        assert_eq!(ends(&Text::TwoByte("a\u{2028}b\n".encode_utf16().collect())), [1, 3]);
        assert_eq!(ends(&Text::OneByte(Vec::new())), []);
    }
}
