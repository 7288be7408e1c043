//! Data by which BPF programs find the frames of running threads.
//!
//! Elsewhere: the programs (crates/capture-bpf/bpf/script.h), and the numbers that each shares (`kernel.rs` in the folder of its language).

/// Words of a code object that distinguish it from others.
pub const IDENTITY_WORDS: usize = 16;
/// Most bytes of a code object that are read.
pub const MAX_CODE_BYTES: usize = 240;
/// Most bytes of a frame that are read.
pub const MAX_FRAME_BYTES: usize = 112;
/// Number of words in [`KernelLayout::words`].
pub const LAYOUT_WORDS: usize = 20;

/// The structure where BPF programs begin, and the layout of the structures from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Stated address of the interpreter's root structure.
    pub address: u64,
    /// Offsets in its structures.
    pub layout: KernelLayout,
}

/// Offsets in an interpreter's structures, for the BPF program that reads its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLayout {
    /// Number of the program: `READER` in the `kernel.rs` of the language.
    pub reader: u32,
    /// Bytes of a code object that are sent, at most [`MAX_CODE_BYTES`].
    pub code_bytes: u32,
    /// Offset in a code object of the words that distinguish it from others.
    pub identity_at: u32,
    /// Masks of the bits in these words that never change while the code object exists.
    pub identity: [u64; IDENTITY_WORDS],
    /// Offsets that only that program knows how to use, in the order that the `kernel.rs` of the language states.
    pub words: [u32; LAYOUT_WORDS],
}

impl KernelLayout {
    /// Of an interpreter whose frames only user space can find: the BPF programs walk no stack through its code (READER_NONE in crates/capture-bpf/bpf/runtimes.h).
    pub(crate) const WITHOUT_READER: KernelLayout = KernelLayout {
        reader: u32::MAX,
        code_bytes: 0,
        identity_at: 0,
        identity: [0; IDENTITY_WORDS],
        words: [0; LAYOUT_WORDS],
    };
}

/// Puts words at their indices.
pub(crate) fn words<const N: usize>(known: [(u32, u32); N]) -> [u32; LAYOUT_WORDS] {
    let mut words = [0; LAYOUT_WORDS];
    for (index, word) in known {
        words[index as usize] = word;
    }
    words
}
