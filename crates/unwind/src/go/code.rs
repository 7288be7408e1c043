//! Recognizes the prologues of Go functions: where the frame pointer is saved.

use super::Bytes;

/// The text section.
pub(super) struct Code<'a, B: ?Sized> {
    pub(super) start: u64,
    pub(super) bytes: &'a B,
}

impl<B: ?Sized> Clone for Code<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: ?Sized> Copy for Code<'_, B> {}

/// Addresses from which on the frame pointer is saved, and from which on it points at its saved value.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) saved: u64,
    pub(super) points: u64,
}

impl<B: Bytes + ?Sized> Code<'_, B> {
    /// Returns the end address; `None` if it exceeds the address space.
    pub(super) fn end(&self) -> Option<u64> {
        self.start.checked_add(self.bytes.len())
    }

    /// Recognizes the instructions that set up a frame just after the stack pointer has moved, at `at`.
    pub(super) fn frame(&self, at: u64) -> Option<Frame> {
        let frame = |saved: u64, points: u64| {
            Some(Frame { saved: at.checked_add(saved)?, points: at.checked_add(points)? })
        };
        // Includes the byte before `at`.
        let mut bytes = [0; 17];
        let before = at.checked_sub(self.start)?.checked_sub(1)?;
        let read = self.bytes.read_at(before, &mut bytes);
        let bytes = bytes.get(..read)?;
        // push rbp; mov rbp, rsp: Go 1.21 and newer.
        if bytes.starts_with(&[0x55, 0x48, 0x89, 0xe5]) {
            return frame(0, 3);
        }
        // mov [rsp + n], rbp; lea rbp, [rsp + n].
        match *bytes.get(1..)? {
            [0x48, 0x89, 0x6c, 0x24, n, 0x48, 0x8d, 0x6c, 0x24, same, ..] if n == same => frame(5, 10),
            [0x48, 0x89, 0xac, 0x24, a, b, c, d, 0x48, 0x8d, 0xac, 0x24, e, f, g, h, ..]
                if [a, b, c, d] == [e, f, g, h] =>
            {
                frame(8, 16)
            }
            _ => None,
        }
    }
}
