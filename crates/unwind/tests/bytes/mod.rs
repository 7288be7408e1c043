//! Test helper that assembles call-frame information.

#![allow(dead_code, reason = "each test binary uses what it needs")]

use plumb_unwind::{Module, Section, Sections, Svma};

/// Stated address of the section.
pub const SECTION: u64 = 0x1000;
/// Start of the only function.
pub const FUNCTION: u64 = 0x40_0000;
/// Length of the only function.
pub const LENGTH: u64 = 0x1000;

/// `def_cfa rsp+8; offset rip cfa-8`: the initial instructions of every x86_64 CIE.
pub const USUAL: &[u8] = &[0x0c, 7, 8, 0x90, 1];

/// A section under construction.
#[derive(Clone, Default)]
pub struct Frames {
    pub bytes: Vec<u8>,
}

impl Frames {
    /// Appends `body` preceded by its length. Returns the offset of the entry.
    fn entry(&mut self, body: &[u8], is_64: bool) -> usize {
        let at = self.bytes.len();
        if is_64 {
            self.bytes.extend(u32::MAX.to_le_bytes());
            self.bytes.extend((body.len() as u64).to_le_bytes());
        } else {
            self.bytes.extend((body.len() as u32).to_le_bytes());
        }
        self.bytes.extend(body);
        at
    }

    /// Appends a CIE with this augmentation string, its data, and instructions. Code alignment 1, data alignment -8.
    pub fn cie(&mut self, augmentation: &str, data: &[u8], instructions: &[u8]) -> usize {
        let mut body = vec![0, 0, 0, 0, 1];
        body.extend(augmentation.bytes());
        body.extend([0, 1, 0x78, 16]);
        if augmentation.starts_with('z') {
            body.push(data.len() as u8);
        }
        body.extend(data);
        body.extend(instructions);
        self.entry(&body, false)
    }

    /// Appends an FDE of `cie`. `range` holds the encoded pointers; `data` is the augmentation data, if any.
    pub fn fde(&mut self, cie: usize, range: &[u8], data: Option<&[u8]>, instructions: &[u8]) -> usize {
        let back = self.bytes.len() + 4 - cie;
        let mut body = (back as u32).to_le_bytes().to_vec();
        body.extend(range);
        if let Some(data) = data {
            body.push(data.len() as u8);
            body.extend(data);
        }
        body.extend(instructions);
        self.entry(&body, false)
    }

    /// As [`Frames::fde`] with a 64-bit length.
    pub fn fde_64(&mut self, cie: usize, range: &[u8], instructions: &[u8]) -> usize {
        let back = self.bytes.len() + 12 - cie;
        let mut body = (back as u32).to_le_bytes().to_vec();
        body.extend(range);
        body.push(0);
        body.extend(instructions);
        self.entry(&body, true)
    }

    pub fn module(self) -> Module<Vec<u8>> {
        let eh_frame = Some(Section { address: Svma(SECTION), bytes: self.bytes });
        Module::new(Sections { eh_frame, ..Sections::default() })
    }
}

/// Encodes a range as absolute pointers.
pub fn absolute(begin: u64, length: u64) -> Vec<u8> {
    [begin.to_le_bytes(), length.to_le_bytes()].concat()
}

/// Builds a module with one function at [`FUNCTION`].
pub fn one_function(augmentation: &str, initial: &[u8], instructions: &[u8]) -> Module<Vec<u8>> {
    let mut frames = Frames::default();
    let data: Vec<u8> = augmentation.bytes().filter(|&letter| letter == b'R').map(|_| 0).collect();
    let cie = frames.cie(augmentation, &data, initial);
    let has_data = augmentation.starts_with('z').then_some(&[][..]);
    frames.fde(cie, &absolute(FUNCTION, LENGTH), has_data, instructions);
    frames.module()
}
