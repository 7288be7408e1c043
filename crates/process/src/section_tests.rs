//! Reading by pieces returns the bytes of the file, at any position and in any order.

use std::fs::File;
use std::io::Write;

use super::{KEPT, PIECE, SectionReader};

/// A file whose words contain their own positions, after `before` bytes.
fn words(before: u64, size: u64) -> (File, Vec<u8>) {
    let bytes: Vec<u8> = (0..size / 4).flat_map(|at| (at as u32).to_le_bytes()).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![0xff; before as usize]).unwrap();
    file.write_all(&bytes).unwrap();
    file.write_all(&[0xff; 64]).unwrap();
    (file, bytes)
}

#[test]
fn pieces_are_what_the_file_has() {
    let size = (KEPT as u64 + 3) * PIECE + 100;
    let (file, bytes) = words(4097, size);
    let section = SectionReader::of_file(0x1000, file, 4097..4097 + size);
    assert_eq!(section.size(), size);
    let mut seed = 7_u64;
    let mut read = [0; 300];
    for round in 0..20_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // At random, and across the ends of pieces and of the section.
        let near = [0, PIECE - 100, 2 * PIECE - 1, size - 200][round % 4];
        let at = if round % 3 == 0 { (seed >> 33) % size } else { near + (seed >> 33) % 90 };
        let length = (seed >> 20) as usize % read.len();
        let count = section.read_at(at, &mut read[..length]);
        let rest = &bytes[at as usize..];
        assert_eq!(read[..count], rest[..length.min(rest.len())], "{length} at {at}");
    }
    assert_eq!(section.read_at(size, &mut read), 0);
    assert_eq!(section.read_at(u64::MAX, &mut read), 0);
}

#[test]
fn what_a_file_lost_is_missing() {
    let (file, _) = words(0, 4 * PIECE);
    let section = SectionReader::of_file(0, file.try_clone().unwrap(), 0..4 * PIECE);
    file.set_len(PIECE + 10).unwrap();
    let mut read = [0; 32];
    assert_eq!(section.read_at(PIECE, &mut read), 10);
    assert_eq!(section.read_at(2 * PIECE, &mut read), 0);
    assert_eq!(section.read_at(PIECE - 8, &mut read), 18);
}
