//! Tables of source positions: which instruction was made from which place in the source text (V8's source-position-table.cc, source-position.h).

use crate::function::{IN_TEXT, UNKNOWN};

/// The position in a function of a place in its text, or of an unknown one.
pub(super) fn in_text(at: Option<u32>) -> u32 {
    at.map_or(UNKNOWN, |at| at | IN_TEXT)
}

/// An entry of a table: code from `offset` on was made from this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Offset in the code.
    pub(super) offset: u32,
    pub(super) place: Place,
}

/// A place in source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Offset in the text, in characters. `None` if it is not known.
    pub(super) at: Option<u32>,
    /// Index of the inlined call that it is in. `None`: it is in the function itself.
    pub(super) call: Option<u32>,
}

impl Place {
    /// Decodes the number of a place: a bit for places outside of scripts, the offset plus 1 in 30 bits, the inlined call plus 1 in 16.
    pub(super) fn of(number: i64) -> Place {
        let field = |shift: u32, bits: u32| {
            let value = (number >> shift) as u32 & ((1 << bits) - 1);
            value.checked_sub(1)
        };
        Place { at: field(1, 30).filter(|_| number & 1 == 0), call: field(31, 16) }
    }
}

/// The form of differences of offsets. They are negative, and one less, where no statement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Up to V8 13.
    Plain,
    /// Since V8 14: the lowest bit is another property.
    WithProperty,
}

impl Form {
    fn difference(self, number: i64) -> i64 {
        let number = if number < 0 { -(number + 1) } else { number };
        match self {
            Form::Plain => number,
            Form::WithProperty => number >> 1,
        }
    }
}

/// Decodes a table: pairs of numbers, each the difference to the one before. Bits of a number are in groups of seven, lowest first; its sign is its lowest
/// bit.
pub(super) fn decode(bytes: &[u8], form: Form) -> Vec<Entry> {
    let mut numbers = Numbers(bytes);
    // The first difference is to the place of a function's entry.
    let (mut offset, mut place) = (-1_i64, 0_i64);
    let mut entries = Vec::new();
    while let (Some(step), Some(change)) = (numbers.next(), numbers.next()) {
        offset = offset.wrapping_add(form.difference(step));
        place = place.wrapping_add(change);
        // The entry of a function is before its first instruction.
        let Ok(first) = u32::try_from(offset.max(0)) else { break };
        entries.push(Entry { offset: first, place: Place::of(place) });
    }
    entries
}

struct Numbers<'b>(&'b [u8]);

impl Iterator for Numbers<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let mut bits = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            bits |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some((bits >> 1) as i64 ^ -((bits & 1) as i64));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_differences() {
        // The offsets 1 and, without a statement, 301; the places 5, and 2 in the first inlined call.
        let places = [(5 + 1) << 1, (2 + 1) << 1 | 1 << 31_i64];
        let put = |bytes: &mut Vec<u8>, number: i64| {
            let mut bits = ((number << 1) ^ (number >> 63)) as u64;
            while bits > 0x7f {
                bytes.push(bits as u8 | 0x80);
                bits >>= 7;
            }
            bytes.push(bits as u8);
        };
        let mut bytes = Vec::new();
        [2, places[0], -301, places[1] - places[0]].into_iter().for_each(|number| put(&mut bytes, number));
        let (first, second) = (Place { at: Some(5), call: None }, Place { at: Some(2), call: Some(0) });
        assert_eq!(
            decode(&bytes, Form::Plain),
            [Entry { offset: 1, place: first }, Entry { offset: 301, place: second }]
        );
        let mut packed = Vec::new();
        [2 << 1 | 1, places[0], -(300 << 1) - 1, places[1] - places[0]]
            .into_iter()
            .for_each(|number| put(&mut packed, number));
        assert_eq!(decode(&packed, Form::WithProperty), decode(&bytes, Form::Plain));
        bytes.truncate(bytes.len() - 1);
        assert_eq!(decode(&bytes, Form::Plain).len(), 1, "a table that was cut");
        assert_eq!(decode(&[0xff; 40], Form::Plain), []);
        assert_eq!(Place::of(3), Place { at: None, call: None }, "outside of scripts");
    }
}
