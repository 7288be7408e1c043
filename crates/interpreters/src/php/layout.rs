//! Offsets of the members of PHP's structures, in bytes. Tests compare them with those of a C compiler.
//!
//! Offsets that are the same in all supported versions are constants. `zend_execute_data` and the beginning of `zend_op_array` have not
//! changed from 7.4 to 8.5.

/// The structures of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhpLayout {
    /// `zend_executor_globals.current_execute_data`
    pub current: u32,
    /// `zend_op_array.filename`, followed by `line_start` and `line_end`.
    pub file: u32,
}

/// `zend_execute_data.opline`
pub const CALL_INSTRUCTION: u32 = 0;
/// `zend_execute_data.func`
pub const CALL_FUNCTION: u32 = 24;
/// Byte of `zend_execute_data.This.u1.type_info` with [`CALL_IS_TOP`].
pub const CALL_INFO: u32 = 42;
/// `ZEND_CALL_TOP`: native code entered the loop with this call.
pub const CALL_IS_TOP: u8 = 2;
/// `zend_execute_data.prev_execute_data`
pub const CALL_CALLER: u32 = 48;
/// Bytes of a call that are read.
pub const CALL_BYTES: u32 = 56;

/// Values of `zend_function.type` for functions written in PHP: `ZEND_USER_FUNCTION` and `ZEND_EVAL_CODE`. Others are written in C.
pub const SCRIPT_TYPES: [u8; 2] = [2, 4];
/// `zend_function.common.function_name`
pub const FUNCTION_NAME: u32 = 8;
/// `zend_function.common.scope`
pub const FUNCTION_CLASS: u32 = 16;
/// Most bytes of a function that are read.
pub const MAX_FUNCTION_BYTES: usize = 184;

/// `zend_op.lineno`
pub const INSTRUCTION_LINE: u32 = 24;
/// `zend_class_entry.name`
pub const CLASS_NAME: u32 = 8;
/// `zend_string.len`
pub(super) const TEXT_LENGTH: usize = 16;
/// `zend_string.val`
pub(super) const TEXT: u64 = 24;

/// Offset of the words that identify a function. Their number is that of Python's code.
pub const IDENTITY: usize = 56;

impl PhpLayout {
    /// Masks of the words at [`IDENTITY`] that identify a function: the file and the lines.
    pub fn identity(&self) -> [u64; crate::python::IDENTITY_WORDS] {
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
