//! Offsets of the members of Perl's structures, in bytes. Tests compare them with those of a C compiler.
//!
//! Offsets that are the same in all supported versions are constants. All are for builds with threads, like most packages of Linux
//! distributions.

pub(super) use super::kernel::*;
use crate::KernelLayout;
use crate::root::{IDENTITY_WORDS, words};

/// The structures of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerlLayout {
    /// `struct interpreter`: `Icurcop`, the current statement.
    pub statement: u32,
    /// `Icurstackinfo`, the innermost list of contexts.
    pub contexts: u32,
    /// `Iphase`
    pub phase: u32,
    /// `PERL_SI.si_type`
    pub purpose: u32,
    /// Size of a `PERL_CONTEXT`.
    pub context_bytes: u32,
    /// Whether the body of a hash contains its `struct xpvhv_aux`; otherwise that follows the hash's elements.
    pub has_names_in_body: bool,
}

impl PerlLayout {
    /// The offsets for the BPF program.
    pub(super) fn for_kernel(self) -> KernelLayout {
        KernelLayout {
            reader: READER,
            code_bytes: MAX_CODE_BYTES as u32,
            identity_at: IDENTITY as u32,
            identity: MASKS,
            words: words([
                (WORD_PHASE, self.phase),
                (WORD_STATEMENT, self.statement),
                (WORD_CONTEXTS, self.contexts),
                (WORD_PURPOSE, self.purpose),
                (WORD_CONTEXT_BYTES, self.context_bytes),
                (WORD_CONTEXT_CODE, self.context_code()),
                (WORD_BODY_NAMES, if self.has_names_in_body { BODY_NAMES } else { NO_MEMBER }),
            ]),
        }
    }

    /// `cx_u.cx_blk.blk_u.blku_sub.cv` of a context; formats have it at the same offset.
    pub fn context_code(&self) -> u32 {
        self.context_bytes - 32
    }
}

/// `CVf_LEXICAL`: the function is in no package.
pub(super) const LEXICAL: u64 = 0x1_0000;
/// `struct xpvhv_with_aux.xhv_aux`
pub const BODY_NAMES: u32 = 32;
/// `HEK.hek_len` and `hek_key`
pub(super) const TEXT_LENGTH: u32 = 4;
pub(super) const TEXT: u32 = 8;

/// Offset of the words that identify a function.
pub const IDENTITY: usize = 32;
/// Bytes of a function that are read: its own, and some after it that are masked out.
pub const MAX_CODE_BYTES: usize = IDENTITY + 8 * IDENTITY_WORDS;

/// Masks of the immutable words at [`IDENTITY`]: the function's start, code, name and file. A closure inherits them from its prototype.
pub const MASKS: [u64; IDENTITY_WORDS] = {
    let mut masks = [0; IDENTITY_WORDS];
    masks[1] = !0;
    masks[2] = !0;
    masks[3] = !0;
    masks[4] = !0;
    masks
};

/// Bytes by which `struct interpreter` is larger on aarch64 than on x86_64, all before `Iphase` and behind `Icurstackinfo`: glibc's `sigjmp_buf` has
/// 112 more, its `struct stat` 16 fewer.
const AARCH64_MORE: u32 = 96;

/// The structures of a version with a `struct interpreter` of this size. `None` if they are unknown: build options change the size.
pub(super) fn of(version: u32, interpreter_bytes: u32) -> Option<PerlLayout> {
    of_x86_64(version, interpreter_bytes).or_else(|| {
        let layout = of_x86_64(version, interpreter_bytes.checked_sub(AARCH64_MORE)?)?;
        Some(PerlLayout { phase: layout.phase + AARCH64_MORE, ..layout })
    })
}

fn of_x86_64(version: u32, interpreter_bytes: u32) -> Option<PerlLayout> {
    let (phase, contexts) = match (version, interpreter_bytes) {
        (30, 3280) => (2508, 240),
        (32, 3792) => (2532, 240),
        (34, 3760) | (36, 3768) => (2512, 224),
        (38, 3896) => (2336, 224),
        (40 | 42, 3768) => (2216, 224),
        _ => return None,
    };
    Some(PerlLayout {
        statement: contexts - 16,
        contexts,
        phase,
        purpose: if version < 32 { 40 } else { 44 },
        context_bytes: if version < 32 { 96 } else { 104 },
        has_names_in_body: version >= 36,
    })
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
