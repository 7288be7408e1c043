//! Offsets of the members of PHP's structures, in bytes. Tests compare them with those of a C compiler.
//!
//! Offsets that are the same in all supported versions are constants. `zend_execute_data` and the beginning of `zend_op_array` have not
//! changed from 7.4 to 8.5.

pub(super) use super::kernel::{
    CALL_BYTES, CALL_CALLER, CALL_FUNCTION, CALL_INFO, CALL_INSTRUCTION, CALL_IS_TOP, CLASS_NAME,
    FUNCTION_CLASS, FUNCTION_NAME, INSTRUCTION_LINE,
};
use super::kernel::{EVAL_CODE, READER, USER_FUNCTION, WORD_CURRENT, WORD_FILE};
use crate::KernelLayout;
use crate::root::{IDENTITY_WORDS, words};

/// The structures of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhpLayout {
    /// `zend_executor_globals.current_execute_data`
    pub current: u32,
    /// `zend_op_array.filename`, followed by `line_start` and `line_end`.
    pub file: u32,
}

/// Values of `zend_function.type` for functions written in PHP. Others are written in C.
pub(super) const SCRIPT_TYPES: [u8; 2] = [USER_FUNCTION, EVAL_CODE];
/// Most bytes of a function that are read.
pub const MAX_FUNCTION_BYTES: usize = 184;

/// `zend_string.len`
pub(super) const TEXT_LENGTH: usize = 16;
/// `zend_string.val`
pub(super) const TEXT: u64 = 24;

/// Offset of the words that identify a function.
pub(super) const IDENTITY: usize = 56;

impl PhpLayout {
    /// The offsets for the BPF program.
    pub(super) fn for_kernel(self) -> KernelLayout {
        KernelLayout {
            reader: READER,
            code_bytes: MAX_FUNCTION_BYTES as u32,
            identity_at: IDENTITY as u32,
            identity: self.identity(),
            words: words([(WORD_CURRENT, self.current), (WORD_FILE, self.file)]),
        }
    }

    /// Masks of the words at [`IDENTITY`] that identify a function: the file and the lines.
    pub fn identity(&self) -> [u64; IDENTITY_WORDS] {
        let file = (self.file as usize).saturating_sub(IDENTITY) / 8;
        std::array::from_fn(|word| if word == file || word == file + 1 { !0 } else { 0 })
    }
}

/// The structures of a version, if it is supported.
pub(super) fn of((major, minor): (u32, u32)) -> Option<PhpLayout> {
    let (current, file) = match (major, minor) {
        (7, 4) => (488, 136),
        (8, 0 | 1 | 3) => (488, 144),
        (8, 2) => (488, 152),
        (8, 4) => (488, 168),
        (8, 5) => (512, 168),
        _ => return None,
    };
    Some(PhpLayout { current, file })
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
