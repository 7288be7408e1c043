//! Makes a text of two numbers to look something up; the fix uses the pair as the key.
use std::collections::BTreeMap;

#[cfg(after)]
type Key = (u32, u32);
#[cfg(not(after))]
type Key = String;

#[cfg(after)]
fn key(row: u32, column: u32) -> Key {
    (row, column)
}
#[cfg(not(after))]
#[inline(never)]
fn key(row: u32, column: u32) -> Key {
    format!("{row}:{column}") // SLOW
}

fn main() {
    let mut cells: BTreeMap<Key, u32> = BTreeMap::new();
    for row in 0..6 {
        for column in 0..6 {
            cells.insert(key(row, column), row * column);
        }
    }
    let mut sum = 0u64;
    for i in 0..9_000_000u32 {
        sum += u64::from(*cells.get(&key(i / 6 % 6, i % 6)).unwrap_or(&0));
    }
    eprintln!("{sum}");
}
