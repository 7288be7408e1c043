//! The interpreter in a process, if there is one, and the list of goroutines in one of Go.

use std::fs::File;

use plumb_ingest::ProcessMemory;
use plumb_interpreters::{
    Detected, GoroutineList, Interpreter, Mapped, NoGoroutines, bias, find as find_in, is_likely,
};
use plumb_process::{FileKey, FileOrigin, parse_maps};

/// An interpreter and the bias of the file that it is in.
pub(super) type Placed = (Box<dyn Interpreter>, u64);

/// The interpreter in a process: in the program's own file, or in a library with a name like one.
pub(super) fn find(pid: u32) -> Option<Placed> {
    in_code(pid, is_likely, |file, mapped| match find_in(file, true)? {
        Detected::Known(interpreter) => Some((interpreter, bias(file, mapped)?)),
        Detected::Unknown(_) => None,
    })
}

/// The list of goroutines in a process. `None`: its program is not one of Go.
pub(super) fn goroutines(pid: u32) -> Option<Result<GoroutineList, NoGoroutines>> {
    let find = |file: &File, mapped| GoroutineList::find(file, &ProcessMemory(pid), bias(file, mapped)?);
    in_code(pid, |_| false, find)
}

/// Looks into the program's own file, and into others with code of which `is_likely` holds.
fn in_code<T>(
    pid: u32,
    is_likely: impl Fn(&[u8]) -> bool,
    look: impl Fn(&File, Mapped) -> Option<T>,
) -> Option<T> {
    let maps = plumb_process::mappings(pid)?;
    let executable = plumb_process::executable(pid)?;
    let mut code = parse_maps(&maps).filter(|line| line.executable);
    code.find_map(|line| {
        let key = FileKey { device: None, ..FileKey::of_line(&line) }.without_deleted(pid);
        if *key.path != *executable && !is_likely(&key.path) {
            return None;
        }
        let place = FileOrigin::Process { pid, range: line.start..line.end, parent: 0 };
        let file = plumb_process::open_mapped(&key, &place).ok()?;
        look(&file, Mapped { start: line.start, offset: line.offset })
    })
}
