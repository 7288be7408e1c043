//! The interpreter in a process, if there is one.

use plumb_interpreters::{Detected, Interpreter, Mapped, bias, find as find_in, is_likely};
use plumb_process::{FileKey, FileOrigin, parse_maps};

/// An interpreter and the bias of the file that it is in.
pub(super) type Placed = (Box<dyn Interpreter>, u64);

/// The interpreter in a process: in the program's own file, or in a library with a name like one.
pub(super) fn find(pid: u32) -> Option<Placed> {
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
        let mapped = Mapped { start: line.start, offset: line.offset };
        match find_in(&file, true)? {
            Detected::Known(interpreter) => Some((interpreter, bias(&file, mapped)?)),
            Detected::Unknown(_) => None,
        }
    })
}
