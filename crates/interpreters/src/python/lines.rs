//! The table that says which line an instruction is of: Objects/locations.md in CPython's sources.
//!
//! A list of entries: a byte with its kind and how many code units of two bytes it is for, then what the kind asks for.

/// The line of the instruction at a byte offset, given the line that the table counts from. `None` if it has none or the
/// table is damaged.
pub(crate) fn at(table: &[u8], first_line: u32, offset: u64) -> Option<u32> {
    let mut rest = table.iter().copied();
    let mut line = i64::from(first_line);
    let mut end = 0;
    while let Some(head) = rest.next() {
        end += 2 * (u64::from(head & 7) + 1);
        let (delta, further) = match head >> 3 & 15 {
            // Columns of one byte each; the line is the same.
            0..=9 => (Some(0), 1),
            // So many lines further, and two columns.
            kind @ 10..=12 => (Some(i64::from(kind) - 10), 2),
            // No columns.
            13 => (Some(signed(number(&mut rest)?)), 0),
            // In full: lines, and two columns, which are numbers as well.
            14 => {
                let delta = signed(number(&mut rest)?);
                for _ in 0..3 {
                    number(&mut rest)?;
                }
                (Some(delta), 0)
            }
            // No line.
            _ => (None, 0),
        };
        for _ in 0..further {
            rest.next()?;
        }
        line = line.checked_add(delta.unwrap_or(0))?;
        if offset < end {
            return delta.and_then(|_| u32::try_from(line).ok());
        }
    }
    None
}

/// Six bits in each byte, the lowest first; the seventh says that more follow.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next()?;
        number |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(number);
        }
    }
    None
}

/// The lowest bit is the sign.
fn signed(number: u64) -> i64 {
    let size = (number >> 1) as i64;
    if number & 1 != 0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let entry = |kind: u8, units: u8| 0x80 | kind << 3 | (units - 1);
        // Line 10 for two units; 12 for one; none for one; 5 below that; 100 above, with columns.
        let table = [entry(0, 2), 0x11, entry(12, 1), 1, 2, entry(15, 1), entry(13, 1), 5 << 1 | 1]
            .into_iter()
            .chain([entry(14, 8), 100 << 1 & 63 | 64, 100 >> 5, 0, 1, 1]);
        let table: Vec<u8> = table.collect();
        let lines: Vec<Option<u32>> = (0..14).map(|unit| at(&table, 10, 2 * unit)).collect();
        let expected = [Some(10), Some(10), Some(12), None, Some(7)];
        assert_eq!(lines[..5], expected);
        assert_eq!(lines[5..13], [Some(107); 8]);
        assert_eq!(lines[13], None, "beyond the end");
        (0..table.len()).for_each(|end| assert!(at(&table[..end], 10, 24).is_none(), "cut off"));
    }
}
