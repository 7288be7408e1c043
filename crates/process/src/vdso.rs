//! The vdso: an ELF image that the kernel maps into every process without a file behind it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::maps::parse_maps;

/// Returns the vdso's image, read from our own memory: it is the same in all processes of our word size on this boot.
/// `None` if there is none (`vdso=0`).
pub fn vdso() -> Option<Vec<u8>> {
    let text = std::fs::read("/proc/self/maps").ok()?;
    let line = parse_maps(&text).find(|line| line.path == b"[vdso]")?;
    let size = usize::try_from(line.end - line.start).ok().filter(|&size| size <= 1 << 20)?;
    let mut image = vec![0; size];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, line.start).ok()?;
    Some(image)
}
