//! Counts lines by reading a file byte by byte; the fix puts a buffer between.
use std::fs::File;
use std::io::{Read, Write};

#[cfg(after)]
fn open(path: &str) -> std::io::BufReader<File> {
    std::io::BufReader::new(File::open(path).unwrap())
}
#[cfg(not(after))]
fn open(path: &str) -> File {
    File::open(path).unwrap()
}

#[inline(never)]
fn count_lines(path: &str) -> usize {
    open(path).bytes().filter(|byte| matches!(byte, Ok(b'\n'))).count() // SLOW
}

fn main() {
    let mut file = File::create("lines.txt").unwrap();
    let text: String = (0..400_000).map(|i| format!("{i}\n")).collect();
    file.write_all(text.as_bytes()).unwrap();
    eprintln!("{}", count_lines("lines.txt"));
}
