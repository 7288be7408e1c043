//! Numbers that the BPF program for Ruby shares (crates/capture-bpf/bpf/interpreters/ruby.h). `WORD_`: the index of an offset in
//! [`KernelLayout::words`](crate::KernelLayout::words).

/// Number of the reader.
pub const READER: u32 = 2;

/// `rb_ractor_t`: its list of threads.
pub const WORD_THREADS: u32 = 0;
/// `rb_ractor_t`: the execution context of the thread that holds the lock.
pub const WORD_RUNNING: u32 = 1;
/// `rb_thread_t`: its execution context.
pub const WORD_THREAD_CONTEXT: u32 = 2;
/// `rb_thread_t.nt`; 0: the member does not exist.
pub const WORD_THREAD_NATIVE: u32 = 3;
/// The thread pointer, in what `nt` points to, or in the thread.
pub const WORD_THREAD_ID: u32 = 4;
/// `rb_execution_context_t`: its thread.
pub const WORD_CONTEXT_THREAD: u32 = 5;
/// Size of `rb_control_frame_t`.
pub const WORD_FRAME_BYTES: u32 = 6;

/// `rb_execution_context_t.vm_stack`, followed by its size in words.
pub const CONTEXT_STACK: u32 = 0;
/// `rb_execution_context_t.cfp`
pub const CONTEXT_FRAME: u32 = 16;
/// `rb_control_frame_t.pc`; 0: the function is written in C.
pub const FRAME_INSTRUCTION: u32 = 0;
/// `rb_control_frame_t.iseq`
pub const FRAME_CODE: u32 = 16;
/// `rb_control_frame_t.ep`, which points to flags.
pub const FRAME_ENVIRONMENT: u32 = 32;
/// `VM_FRAME_FLAG_FINISH`: native code entered the loop with this frame.
pub const FRAME_IS_LAST: u64 = 0x20;
/// `rb_iseq_t.body`
pub const CODE_BODY: u32 = 16;
/// `rb_iseq_constant_body.iseq_encoded`: its instructions, in words.
pub const BODY_INSTRUCTIONS: u32 = 8;
/// The position in a frame that does not tell it: `UNKNOWN` in `function.rs`.
pub const NO_POSITION: u32 = 0x7fffffff;
/// `rb_iseq_constant_body.location`: `pathobj`, `base_label`, `label` and `first_lineno`, which identify the code.
pub const BODY_FILE: u32 = 64;
/// `location.label`
pub const BODY_NAME: u32 = 80;
/// `RUBY_T_MASK` of an object's flags.
pub const TYPE: u64 = 0x1f;
/// `RUBY_T_ARRAY`
pub const ARRAY: u64 = 7;
/// `RARRAY_EMBED_FLAG`: the elements of an array are its own members.
pub const EMBEDDED: u64 = 0x2000;
/// Offset of an object's own members, which follow `struct RBasic`.
pub const MEMBERS: u64 = 16;
