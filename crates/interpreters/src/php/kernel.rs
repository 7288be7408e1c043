//! Numbers that the BPF program for PHP shares (crates/capture-bpf/bpf/interpreters/php.h). `WORD_`: the index of an offset in
//! [`KernelLayout::words`](crate::KernelLayout::words).

/// Number of the reader.
pub const READER: u32 = 1;

/// `zend_executor_globals.current_execute_data`
pub const WORD_CURRENT: u32 = 0;
/// `zend_op_array.filename`
pub const WORD_FILE: u32 = 1;

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
/// `zend_function.type`: `ZEND_USER_FUNCTION`
pub const USER_FUNCTION: u8 = 2;
/// `ZEND_EVAL_CODE`
pub const EVAL_CODE: u8 = 4;
/// `zend_function.common.function_name`
pub const FUNCTION_NAME: u32 = 8;
/// `zend_function.common.scope`
pub const FUNCTION_CLASS: u32 = 16;
/// `zend_op.lineno`
pub const INSTRUCTION_LINE: u32 = 24;
/// `zend_class_entry.name`
pub const CLASS_NAME: u32 = 8;
