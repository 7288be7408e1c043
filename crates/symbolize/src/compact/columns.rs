//! Sorted address ranges and their places, as differences from the range before.

use serde::{Deserialize, Serialize};

use super::Position;

/// Ranges of addresses. Each begins where the one before ends, and the last has no end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Columns {
    starts: Vec<u8>,
    scopes: Vec<u8>,
    files: Vec<u8>,
    lines: Vec<u8>,
    #[serde(skip)]
    last: (u64, Position),
}

impl Columns {
    /// Adds a range, whose start is behind the start of the one before.
    pub fn push(&mut self, start: u64, place: Position) {
        let (last_start, last) = self.last;
        if last == place {
            return;
        }
        put(&mut self.starts, start.wrapping_sub(last_start));
        put_step(&mut self.scopes, last.scope, place.scope);
        put_step(&mut self.files, last.file, place.file);
        put_step(&mut self.lines, last.line, place.line);
        self.last = (start, place);
    }

    /// Returns the place of each of the sorted addresses.
    pub fn find(&self, sorted: &[u64]) -> Vec<Position> {
        let mut found = Vec::with_capacity(sorted.len());
        let mut rest = [&*self.starts, &self.scopes, &self.files, &self.lines];
        let (mut start, mut place) = (0_u64, Position::default());
        while found.len() < sorted.len() {
            let Some([step, scope, file, line]) = take(&mut rest) else { break };
            let next = start.wrapping_add(step);
            while let Some(&address) = sorted.get(found.len()).filter(|&&address| address < next) {
                debug_assert!(address >= start);
                found.push(place);
            }
            start = next;
            place.scope = stepped(place.scope, scope);
            place.file = stepped(place.file, file);
            place.line = stepped(place.line, line);
        }
        found.resize(sorted.len(), place);
        found
    }
}

fn put(column: &mut Vec<u8>, number: u64) {
    // Writing a number into memory can't fail.
    if let Ok(longer) = postcard::to_extend(&number, std::mem::take(column)) {
        *column = longer;
    }
}

fn put_step(column: &mut Vec<u8>, from: u32, to: u32) {
    let step = i64::from(to) - i64::from(from);
    // The sign in bit 0.
    put(column, ((step << 1) ^ (step >> 63)).cast_unsigned());
}

fn stepped(from: u32, coded: u64) -> u32 {
    let step = (coded >> 1).cast_signed() ^ -(coded & 1).cast_signed();
    u32::try_from(i64::from(from).wrapping_add(step)).unwrap_or(0)
}

fn take(rest: &mut [&[u8]; 4]) -> Option<[u64; 4]> {
    let mut numbers = [0; 4];
    for (number, rest) in numbers.iter_mut().zip(rest) {
        (*number, *rest) = postcard::take_from_bytes(rest).ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_until_the_next() {
        let mut columns = Columns::default();
        let place = |scope, line| Position { scope, file: 1, line };
        columns.push(0x1000, place(7, 20));
        columns.push(0x1004, place(7, 20));
        columns.push(0x1010, place(3, u32::MAX));
        columns.push(0xffff_ffff_8000_0000, Position::default());
        let found =
            columns.find(&[0, 0xfff, 0x1000, 0x100f, 0x1010, 0x1010, 0xffff_ffff_8000_0000, u64::MAX]);
        let nothing = Position::default();
        let (first, second) = (place(7, 20), place(3, u32::MAX));
        assert_eq!(found, [nothing, nothing, first, first, second, second, nothing, nothing]);
        assert_eq!(columns.starts.len(), 2 + 1 + 10, "equal places are one range");
        assert_eq!(Columns::default().find(&[5]), [nothing]);
    }
}
