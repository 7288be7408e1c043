//! The interpreter in a process, if there is one.

use std::fs::File;

use plumb_interpreters::{Interpreter, Mapped, Memory, find as find_in, is_likely};
use plumb_process::parse_maps;

use crate::sys::trace::read_memory;

/// Memory of a process that may run.
pub(super) struct ProcessMemory(pub(super) u32);

impl Memory for ProcessMemory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        read_memory(self.0, at, bytes) == bytes.len()
    }
}

/// The interpreter in a process: in the program's own file, or in a library with a name like one.
pub(super) fn find(pid: u32) -> Option<Box<dyn Interpreter>> {
    let maps = plumb_process::mappings(pid)?;
    let executable = plumb_process::executable(pid)?;
    let mut code = parse_maps(&maps).filter(|line| line.executable);
    code.find_map(|line| {
        if line.path != executable && !is_likely(line.path) {
            return None;
        }
        // By its mapping, so that it is the right file also if it was replaced or is in another mount namespace.
        let file = File::open(format!("/proc/{pid}/map_files/{:x}-{:x}", line.start, line.end));
        let file = file.or_else(|_| {
            let path = std::str::from_utf8(line.path).unwrap_or_default();
            let own = line.path == executable;
            File::open(if own { format!("/proc/{pid}/exe") } else { format!("/proc/{pid}/root{path}") })
        });
        find_in(&file.ok()?, Mapped { start: line.start, offset: line.offset }, &ProcessMemory(pid))
    })
}
