//! Recognizes the prologues of Go functions: where the frame pointer is saved.

use super::bytes::Bytes;
use crate::isa::Isa;

/// Instructions of aarch64, from the Arm architecture reference manual, C6.2: `stur x29, [sp, #-8]`, `sub x29, sp, #8`,
/// `stp x29, x30, [x20, #-8]`, `mov sp, x20`.
const SAVE: u32 = 0xf81f_83fd;
const POINT: u32 = 0xd100_23fd;
const SAVE_BOTH: u32 = 0xa93f_fa9d;
const MOVE_STACK: u32 = 0x9100_029f;

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

    /// Recognizes the instructions that set up a frame, where the stack pointer has just moved, at `at`.
    pub(super) fn frame(&self, isa: Isa, at: u64) -> Option<Frame> {
        match isa {
            Isa::X86_64 => self.x86_64_frame(at),
            Isa::Aarch64 => self.aarch64_frame(at),
            Isa::Arm => None,
        }
    }

    fn x86_64_frame(&self, at: u64) -> Option<Frame> {
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

    /// A frame has the frame pointer's saved value just below the stack pointer and the return address on top of the stack, and the frame
    /// pointer then points at them (`preprocess` in cmd/internal/obj/arm64/obj7.go).
    fn aarch64_frame(&self, at: u64) -> Option<Frame> {
        let (saved, points) =
            match (self.word(at.checked_sub(8)?), self.word(at.checked_sub(4)?), self.word(at)?) {
                (_, _, SAVE) if self.word(at.checked_add(4)?) == Some(POINT) => (4, 8),
                (Some(SAVE_BOTH), Some(MOVE_STACK), POINT) => (0, 4),
                _ => return None,
            };
        Some(Frame { saved: at.checked_add(saved)?, points: at.checked_add(points)? })
    }

    /// Reads an instruction of aarch64.
    pub(super) fn word(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        let read = self.bytes.read_at(at.checked_sub(self.start)?, &mut bytes);
        (read == bytes.len()).then(|| u32::from_le_bytes(bytes))
    }
}
