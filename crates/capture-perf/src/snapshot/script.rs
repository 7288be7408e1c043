//! The interpreter in a process, if there is one.

use plumb_interpreters::{Interpreter, Mapped, Memory, find as find_in, is_likely};
use plumb_process::{FileKey, Place, parse_maps};

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
        let key = FileKey { inode: line.inode, ..FileKey::of_path(line.path) };
        let place = Place::Process { pid, range: line.start..line.end, parent: 0 };
        let file = plumb_process::open_mapped(&key, &place).ok()?;
        find_in(&file, Mapped { start: line.start, offset: line.offset }, &ProcessMemory(pid))
    })
}
