//! Line tables, which map instructions to lines. CPython has had three formats: Objects/lnotab_notes.txt of 3.9 and of
//! 3.10, Objects/locations.md since.

/// Format of a line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTable {
    /// `co_lnotab` up to 3.9: pairs of bytes, the increment of the code offset and then the increment of the line.
    Lnotab,
    /// `co_linetable` of 3.10: pairs of bytes, the length of a code range and its increment of the line.
    Ranges,
    /// `co_linetable` since 3.11: entries that start with a byte for their kind and their number of two-byte code units, followed by
    /// data that depends on the kind.
    Locations,
    /// No table: the instruction passed in is itself the line (PHP).
    Direct,
}

/// Line of the instruction at a byte offset; the table counts from `first_line`. `None` if the instruction has no line or the
/// table is malformed.
pub(crate) fn at(kind: LineTable, table: &[u8], first_line: u32, offset: u64) -> Option<u32> {
    match kind {
        LineTable::Direct => u32::try_from(offset).ok(),
        LineTable::Lnotab => in_lnotab(table, first_line, offset),
        LineTable::Ranges => in_ranges(table, first_line, offset),
        LineTable::Locations => in_locations(table, first_line, offset),
    }
}

/// As PyCode_Addr2Line of 3.9.
fn in_lnotab(table: &[u8], first_line: u32, offset: u64) -> Option<u32> {
    let (mut line, mut begin) = (i64::from(first_line), 0);
    for [bytes, lines] in table.as_chunks().0 {
        begin += u64::from(*bytes);
        if begin > offset {
            break;
        }
        line += i64::from(*lines as i8);
    }
    u32::try_from(line).ok()
}

/// As PyCode_Addr2Line of 3.10.
fn in_ranges(table: &[u8], first_line: u32, offset: u64) -> Option<u32> {
    /// Marker for a range without a line.
    const NONE: i8 = -128;
    let (mut line, mut end) = (i64::from(first_line), 0);
    for [bytes, lines] in table.as_chunks().0 {
        end += u64::from(*bytes);
        let lines = *lines as i8;
        if lines != NONE {
            line += i64::from(lines);
        }
        if offset < end {
            return u32::try_from(line).ok().filter(|_| lines != NONE);
        }
    }
    None
}

fn in_locations(table: &[u8], first_line: u32, offset: u64) -> Option<u32> {
    let mut rest = table.iter().copied();
    let mut line = i64::from(first_line);
    let mut end = 0;
    while let Some(head) = rest.next() {
        end += 2 * (u64::from(head & 7) + 1);
        let (delta, further) = match head >> 3 & 15 {
            // Columns of one byte each; the line is unchanged.
            0..=9 => (Some(0), 1),
            // A small line increment, and two columns.
            kind @ 10..=12 => (Some(i64::from(kind) - 10), 2),
            // A line increment without columns.
            13 => (Some(signed(number(&mut rest)?)), 0),
            // Long form: a line increment, and three more numbers for the end line and the columns.
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

/// Decodes a variable-length number: six bits in each byte, the lowest first; the seventh bit is set if more follow.
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

/// Decodes a signed number whose lowest bit is the sign.
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
        // Line 10 for two units; 12 for one; none for one; 5 less than that; 100 more, with columns.
        let table = [entry(0, 2), 0x11, entry(12, 1), 1, 2, entry(15, 1), entry(13, 1), 5 << 1 | 1]
            .into_iter()
            .chain([entry(14, 8), 100 << 1 & 63 | 64, 100 >> 5, 0, 1, 1]);
        let table: Vec<u8> = table.collect();
        let kind = LineTable::Locations;
        let lines: Vec<Option<u32>> = (0..14).map(|unit| at(kind, &table, 10, 2 * unit)).collect();
        let expected = [Some(10), Some(10), Some(12), None, Some(7)];
        assert_eq!(lines[..5], expected);
        assert_eq!(lines[5..13], [Some(107); 8]);
        assert_eq!(lines[13], None, "beyond the end");
        (0..table.len()).for_each(|end| assert!(at(kind, &table[..end], 10, 24).is_none(), "cut off"));
    }
    /// Compares lines with those of PyCode_Addr2Line in each version, recorded by `lines_truth.py` for tables that it made.
    #[test]
    fn lines_are_those_that_python_says() {
        let mut seen = [0; 3];
        for entry in include_str!("lines_truth.txt").lines() {
            let mut words = entry.split(' ');
            let mut word = || words.next().expect("a form, a line and a table");
            let kind = match word() {
                "lnotab" => LineTable::Lnotab,
                "ranges" => LineTable::Ranges,
                "locations" => LineTable::Locations,
                other => panic!("{other}"),
            };
            let first: u32 = word().parse().expect("a line");
            let digits = word().trim_start_matches('-');
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
            let table: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
            let mut offset = 0;
            for run in words {
                let (line, count) = run.split_once('x').expect("LINExCOUNT");
                for _ in 0..count.parse::<u32>().expect("a count") {
                    assert_eq!(at(kind, &table, first, offset), line.parse().ok(), "{entry} at {offset}");
                    offset += 2;
                    seen[kind as usize] += 1;
                }
            }
        }
        assert!(seen.iter().all(|&seen| seen > 500), "{seen:?}");
    }
}
