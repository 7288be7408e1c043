//! Instructions of x86-64 by which HotSpot enters and leaves functions.

/// The stack of a function that is about to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The return address is on top.
    Bare,
    /// The frame pointer is, and the return address above it.
    Pushed,
}

/// Whether code leaves its frame without touching the stack pointer first, but for popping the frame pointer.
pub(super) fn leaves(mut code: &[u8]) -> Option<Left> {
    /// Instructions before the return: whether a safepoint is requested is asked, and registers are cleared.
    const BETWEEN: usize = 4;
    let mut left = Left::Bare;
    if let Some(rest) = code.strip_prefix(&[0x5d]) {
        (left, code) = (Left::Pushed, rest);
    }
    for _ in 0..=BETWEEN {
        code = match code {
            [0xc3 | 0xc2, ..] | [0xf3, 0xc3, ..] => return Some(left),
            // cmp offset(%r15),%rsp
            [0x49, 0x3b, 0xa7, _, _, _, _, rest @ ..] | [0x49, 0x3b, 0x67, _, rest @ ..] => rest,
            // ja
            [0x0f, 0x87, _, _, _, _, rest @ ..] => rest,
            // mov offset(%r15),%r10; test %eax,(%r10)
            [0x4d, 0x8b, 0x97, _, _, _, _, rest @ ..] | [0x41, 0x85, 0x02, rest @ ..] => rest,
            // test %eax,offset(%rip)
            [0x85, 0x05, _, _, _, _, rest @ ..] => rest,
            // vzeroupper
            [0xc5, 0xf8, 0x77, rest @ ..] => rest,
            _ => return None,
        };
    }
    None
}

/// Offset of the instruction that lowers the stack pointer to make a frame of that many bytes, and whether the frame pointer was pushed before.
pub(super) fn makes_frame(code: &[u8], frame: u64) -> Option<(usize, bool)> {
    let makes = |rest: &[u8]| -> Option<u64> {
        match *rest {
            [0x48, 0x83, 0xec, bytes, ..] => Some(bytes.into()),
            [0x48, 0x81, 0xec, a, b, c, d, ..] => Some(u32::from_le_bytes([a, b, c, d]).into()),
            _ => None,
        }
    };
    (0..code.len()).find_map(|at| {
        let bytes = makes(code.get(at..)?)?;
        let is_pushed = bytes + 16 == frame && at > 0 && code.get(at - 1) == Some(&0x55);
        (is_pushed || bytes + 8 == frame).then_some((at, is_pushed))
    })
}

/// Offset of the instruction that pushes the frame pointer, before the one that sets it.
pub(super) fn pushes_pointer(code: &[u8]) -> Option<usize> {
    code.windows(4).position(|four| matches!(four, [0x55, 0x48, 0x8b, 0xec] | [0x55, 0x48, 0x89, 0xe5]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_functions_are_recognized() {
        let poll = [0x49, 0x3b, 0xa7, 0x58, 3, 0, 0, 0x0f, 0x87, 1, 0, 0, 0, 0xc3];
        assert_eq!(leaves(&poll), Some(Left::Bare));
        assert_eq!(leaves(&[&[0x5d], &poll[..]].concat()), Some(Left::Pushed));
        assert_eq!(leaves(&[&[0x48, 0x83, 0xc4, 0x10, 0x5d], &poll[..]].concat()), None, "not left yet");
        let entry = [0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20];
        assert_eq!(makes_frame(&entry, 0x30), Some((8, true)));
        assert_eq!(makes_frame(&[0x48, 0x81, 0xec, 0x18, 1, 0, 0], 0x120), Some((0, false)));
        assert_eq!(makes_frame(&entry, 0x38), None, "another frame");
        assert_eq!(pushes_pointer(&[0x50, 0x55, 0x48, 0x8b, 0xec]), Some(1));
    }
}
