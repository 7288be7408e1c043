//! Memory that a message takes once decoded, counted before it is: an empty row of two bytes becomes up to a hundred, so that a small request could
//! take gigabytes.

use crate::error::{ApiError, ErrorCode};

/// A type of message, as far as its repeated fields matter.
pub(crate) struct Shape {
    /// Bytes of a decoded row and of what a reader keeps for it.
    row: usize,
    /// Fields by number; others cost nothing.
    fields: &'static [(u64, Kind)],
}

#[derive(Clone, Copy)]
enum Kind {
    /// Messages.
    Rows(&'static Shape),
    /// Numbers, each a varint or eight bytes; packed or not.
    Numbers,
    /// Strings or bytes.
    Text,
}

use Kind::{Numbers, Rows, Text};

/// Bytes of a string beside its content.
const STRING: usize = 48;
/// Bytes of a number in a list that doubles when it is full.
const NUMBER: usize = 16;

const fn leaf(row: usize) -> Shape {
    Shape { row, fields: &[] }
}

/// pprof without its samples, which are decoded one by one.
pub(crate) const PPROF_TABLES: Shape = Shape {
    row: 0,
    fields: &[
        (1, Rows(&leaf(64))),
        (3, Rows(&leaf(160))),
        (4, Rows(&LOCATION)),
        (5, Rows(&leaf(120))),
        (6, Text),
    ],
};
const LOCATION: Shape = Shape { row: 200, fields: &[(4, Rows(&leaf(48)))] };

/// A request of `push.v1`.
pub(crate) const PUSH: Shape = Shape { row: 0, fields: &[(1, Rows(&PUSHED_SERIES))] };
const PUSHED_SERIES: Shape = Shape { row: 96, fields: &[(1, Rows(&PAIR)), (2, Rows(&PUSHED_SAMPLE))] };
const PAIR: Shape = Shape { row: 96, fields: &[(1, Text), (2, Text)] };
const PUSHED_SAMPLE: Shape = Shape { row: 96, fields: &[(1, Text), (2, Text)] };

/// OpenTelemetry's profiles.
pub(crate) const OTLP: Shape = Shape { row: 0, fields: &[(1, Rows(&OF_RESOURCE)), (2, Rows(&DICTIONARY))] };
const OF_RESOURCE: Shape = Shape { row: 128, fields: &[(1, Rows(&RESOURCE)), (2, Rows(&SCOPE))] };
const RESOURCE: Shape = Shape { row: 0, fields: &[(1, Rows(&ATTRIBUTE))] };
const ATTRIBUTE: Shape = Shape { row: 160, fields: &[(1, Text), (2, Rows(&VALUE))] };
const VALUE: Shape = Shape { row: 0, fields: &[(1, Text)] };
const SCOPE: Shape = Shape { row: 144, fields: &[(2, Rows(&PROFILE))] };
const PROFILE: Shape = Shape { row: 192, fields: &[(2, Rows(&SAMPLE))] };
const SAMPLE: Shape = Shape { row: 160, fields: &[(2, Numbers), (4, Numbers), (5, Numbers)] };
const DICTIONARY: Shape = Shape {
    row: 0,
    fields: &[
        (1, Rows(&MAPPING)),
        (2, Rows(&PLACE)),
        (3, Rows(&leaf(48))),
        (5, Text),
        (6, Rows(&ATTRIBUTE_ROW)),
        (7, Rows(&STACK)),
    ],
};
const MAPPING: Shape = Shape { row: 112, fields: &[(5, Numbers)] };
const PLACE: Shape = Shape { row: 160, fields: &[(3, Rows(&leaf(32))), (4, Numbers)] };
const ATTRIBUTE_ROW: Shape = Shape { row: 96, fields: &[(2, Rows(&VALUE))] };
const STACK: Shape = Shape { row: 72, fields: &[(1, Numbers)] };

/// Refuses a message that takes more than `most` bytes once decoded.
pub(crate) fn check_message(bytes: &[u8], shape: &Shape, most: usize) -> Result<(), ApiError> {
    let mut left = most;
    count(bytes, shape, &mut left).map_or_else(|| Err(too_large(most)), |()| Ok(()))
}

/// Refuses a JSON text whose values take more than `most` bytes once decoded: at most the largest row for each that begins.
pub(crate) fn check_json(bytes: &[u8], most: usize) -> Result<(), ApiError> {
    let begins = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    let commas = bytes.iter().filter(|&&byte| byte == b',').count();
    let size =
        begins.saturating_mul(160).saturating_add(commas.saturating_mul(NUMBER)).saturating_add(bytes.len());
    if size > most { Err(too_large(most)) } else { Ok(()) }
}

/// The answer to what takes more than `most` bytes once decoded.
pub(crate) fn too_large(most: usize) -> ApiError {
    let message = format!(
        "the profiles take more than {} MiB of memory once decoded, the limit: send them in several requests, or with fewer stacks and labels",
        most >> 20
    );
    ApiError::new(ErrorCode::TooLarge, message)
}

/// Takes what the message costs off `left`; `None` if that is more. A damaged message costs what comes before the damage: its decoder stops there, too.
fn count(mut bytes: &[u8], shape: &Shape, left: &mut usize) -> Option<()> {
    while let Some(key) = varint(&mut bytes) {
        let kind = shape.fields.iter().find(|(number, _)| *number == key >> 3).map(|(_, kind)| *kind);
        let content = match key & 7 {
            0 => varint(&mut bytes).map(|_| None),
            1 => split(&mut bytes, 8).map(|_| None),
            2 => varint(&mut bytes)
                .and_then(|length| split(&mut bytes, usize::try_from(length).ok()?))
                .map(Some),
            5 => split(&mut bytes, 4).map(|_| None),
            // A group, which no message here has: its fields cost nothing.
            3 | 4 => Some(None),
            _ => None,
        };
        let Some(content) = content else { break };
        let cost = match (kind, content) {
            (None, _) => 0,
            (Some(Rows(shape)), _) => shape.row,
            (Some(Numbers), None) => NUMBER,
            (Some(Numbers), Some(packed)) => packed.len().saturating_mul(NUMBER),
            (Some(Text), content) => STRING + content.map_or(0, <[u8]>::len),
        };
        *left = left.checked_sub(cost)?;
        if let (Some(Rows(shape)), Some(content)) = (kind, content) {
            count(content, shape, left)?;
        }
    }
    Some(())
}

fn split<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (content, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(content)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1 << 20;

    fn refused(bytes: &[u8], shape: &Shape) -> bool {
        check_message(bytes, shape, MOST).is_err()
    }

    #[test]
    fn rows_that_are_small_on_the_wire_count_as_what_they_become() {
        for (row, shape) in [
            (&b"\x22\x00"[..], &PPROF_TABLES),
            (b"\x2a\x00", &PPROF_TABLES),
            (b"\x32\x00", &PPROF_TABLES),
            (b"\x0a\x00", &PUSH),
            (b"\x0a\x00", &OTLP),
            (b"\x12\x02\x0a\x00", &OTLP),
            (b"\x12\x02\x32\x00", &OTLP),
        ] {
            assert!(refused(&row.repeat(MOST / 40), shape), "{row:?}");
            assert!(!refused(&row.repeat(100), shape), "{row:?}");
        }
        // Lines in one location, numbers in one stack of a dictionary.
        let within = |key: &[u8], content: Vec<u8>| {
            let length =
                [content.len() as u8 | 0x80, (content.len() >> 7) as u8 | 0x80, (content.len() >> 14) as u8];
            [key, &length, &content].concat()
        };
        assert!(refused(&within(b"\x22", b"\x22\x00".repeat(40_000)), &PPROF_TABLES));
        let stack = within(b"\x3a", within(b"\x0a", vec![1; 100_000]));
        assert!(refused(&within(b"\x12", stack), &OTLP));
    }

    #[test]
    fn samples_of_pprof_and_unknown_fields_cost_nothing() {
        assert!(!refused(&b"\x12\x00".repeat(MOST), &PPROF_TABLES));
        assert!(!refused(&b"\x7a\x00".repeat(MOST), &PPROF_TABLES));
    }

    #[test]
    fn json_counts_by_its_values() {
        assert!(check_json(&b"{},".repeat(20_000), MOST).is_err());
        assert!(check_json(&b"{},".repeat(1_000), MOST).is_ok());
    }
}
