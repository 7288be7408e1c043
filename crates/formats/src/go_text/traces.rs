//! Reads goroutines with `debug=2`, and the output of a panicking Go program: each goroutine separately, with its state.

use plumb_profile::{FrameKind, Profile};

use crate::foreign::{Assembly, Counted, ForeignError, Place};

/// Whether the first line is the header of a goroutine's stack.
pub(super) fn is(bytes: &[u8]) -> bool {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    state(&String::from_utf8_lossy(first)).is_some()
}

/// Reads all goroutines. The state becomes the name of the thread.
pub(super) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let text = String::from_utf8_lossy(bytes);
    let mut assembly = Assembly::new();
    let event = assembly.event("goroutines", "");
    let mut counted = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(state) = state(line) else { continue };
        let thread = assembly.thread(None, None, state, "");
        let mut frames = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.is_empty() && self::state(line).is_none()) {
            let place = lines.next_if(|line| line.starts_with('\t')).map(str::trim).unwrap_or_default();
            // The goroutine that started this one is not its caller.
            if let Some(name) = called(line).filter(|_| !line.starts_with("created by ")) {
                let place = place.rsplit_once(" +0x").map_or(place, |(place, _)| place);
                let (file, line) = place.rsplit_once(':').unwrap_or_default();
                let place = Place { name, file, line: line.parse().unwrap_or(0), ..Place::default() };
                frames.push(assembly.frame(FrameKind::User, "", &[place]));
            }
        }
        let stack = assembly.profile.add_stack(&frames);
        let weight = assembly.weigh(1).unwrap_or(1);
        counted.push(Counted { thread, event, stack, count: 1, weight });
    }
    assembly.counted(counted);
    let warnings = &mut assembly.profile.meta.warnings;
    warnings.push(
        "imported from the stacks of goroutines: threads are called by their goroutines' states".into(),
    );
    Ok(assembly.finish("Go runtime/pprof"))
}

/// Returns the state in `goroutine 7 [chan receive, 3 minutes]:`.
fn state(line: &str) -> Option<&str> {
    let rest = line.trim_end().strip_prefix("goroutine ")?;
    let (number, rest) = rest.split_once(' ')?;
    let (_, state) = rest.strip_suffix("]:")?.split_once('[')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| state.split(',').next().unwrap_or_default())
}

/// Returns the function's name without its arguments: the part before the last pair of parentheses.
fn called(line: &str) -> Option<&str> {
    let mut open = 0_usize;
    line.strip_suffix(')')?;
    for (at, byte) in line.bytes().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(&line[..at]).filter(|name| !name.is_empty());
        }
    }
    None
}
