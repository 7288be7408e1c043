//! Finds the program that runs an executable file: the interpreter named by a script, the dynamic loader of an ELF file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Length of a script's first line that the kernel reads.
const FIRST_LINE: usize = 256;
/// Longest path (PATH_MAX).
const LONGEST_PATH: u64 = 4096;

/// Returns the program that the kernel would run for the file at `path`; `None` if the file needs none, or can't be read.
pub(crate) fn of(path: &Path) -> Option<PathBuf> {
    if !path.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut start = Vec::new();
    file.by_ref().take(FIRST_LINE as u64).read_to_end(&mut start).ok()?;
    let name = match start.strip_prefix(b"#!") {
        Some(line) => script(line),
        None => loader(&file, &start)?,
    };
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(&name)))
}

/// Returns the first word of a script's first line.
fn script(line: &[u8]) -> Vec<u8> {
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_start();
    line.split(|byte| matches!(byte, b' ' | b'\t' | 0)).next().unwrap_or_default().to_vec()
}

/// Returns the PT_INTERP entry of a little-endian 64-bit ELF file (System V ABI, chapter 5).
fn loader(file: &File, start: &[u8]) -> Option<Vec<u8>> {
    const PT_INTERP: u64 = 3;
    if !start.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |bytes: &[u8], at: usize, size: usize| {
        let bytes = bytes.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let (offset, count) = (number(start, 32, 8)?, number(start, 56, 2)?);
    for index in 0..count {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, offset.checked_add(56 * index)?).ok()?;
        if number(&header, 0, 4)? == PT_INTERP {
            let mut name = vec![0; number(&header, 32, 8)?.min(LONGEST_PATH) as usize];
            file.read_exact_at(&mut name, number(&header, 8, 8)?).ok()?;
            return name.split(|&byte| byte == 0).next().map(<[u8]>::to_vec);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_programs_name_what_runs_them() {
        let path = std::env::temp_dir().join(format!("plumb-interpreter-{}", std::process::id()));
        for (text, expected) in [
            (&b"#!/no/such -x\nrest"[..], Some("/no/such")),
            (b"#! \t/bin/env python\n", Some("/bin/env")),
            (b"#!\n", None),
            (b"echo\n", None),
            (b"\x7fELF\x02\x01\x01", None),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(of(&path), expected.map(PathBuf::from), "{text:?}");
        }
        std::fs::remove_file(&path).unwrap();
        // This test has a loader, unless it is linked statically.
        if let Some(loader) = of(&std::env::current_exe().unwrap()) {
            assert!(loader.to_string_lossy().contains("ld") && loader.exists(), "{loader:?}");
        }
        assert_eq!(of(Path::new("/no/such")), None);
        assert_eq!(of(Path::new("/")), None);
    }
}
