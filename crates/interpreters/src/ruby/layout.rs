//! Where the members of Ruby's structures are, in bytes: those of x86_64 and glibc, which the crate rbspy-ruby-structs has from each
//! version's headers. Those that all known versions have in one place are constants.

/// The structures of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RubyLayout {
    /// `rb_ractor_t.threads.set`, the list of its threads.
    pub threads: u32,
    /// `rb_ractor_t.threads.running_ec`, the execution context of the thread that has the lock.
    pub running: u32,
    /// `rb_thread_t.ec`
    pub thread_context: u32,
    /// `rb_thread_t.nt`; 0: there is no such structure, and the next member is the thread's.
    pub thread_native: u32,
    /// `rb_native_thread.thread_id`, or `rb_thread_t.thread_id`: what pthread_self() says, which is the thread pointer.
    pub thread_id: u32,
    /// `rb_execution_context_t.thread_ptr`
    pub context_thread: u32,
    /// The size of `rb_control_frame_t`.
    pub frame_bytes: u32,
    /// How long a string is and where it begins.
    pub strings: Strings,
    /// `first_lineno` is a number of C, not one of Ruby.
    pub has_plain_line: bool,
}

/// `struct RString`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strings {
    /// The length of short ones is in their flags, and they begin where that of others is (up to 3.1).
    InFlags,
    /// All have their length in the same place.
    Plain,
}

/// `rb_execution_context_t.vm_stack`, after which comes its size in words.
pub const CONTEXT_STACK: u32 = 0;
/// `rb_execution_context_t.cfp`
pub const CONTEXT_FRAME: u32 = 16;
/// `rb_control_frame_t.pc`; 0: the function is written in C.
pub const FRAME_INSTRUCTION: u32 = 0;
/// `rb_control_frame_t.iseq`
pub const FRAME_CODE: u32 = 16;
/// `rb_control_frame_t.ep`, which points at flags.
pub const FRAME_ENVIRONMENT: u32 = 32;
/// `VM_FRAME_FLAG_FINISH`: native code began a round of the loop with this frame.
pub const FRAME_IS_LAST: u64 = 0x20;
/// `rb_iseq_t.body`
pub const CODE_BODY: u32 = 16;
/// `rb_iseq_constant_body.location`: `pathobj`, `base_label`, `label` and `first_lineno`, by which code is told from other code.
pub const BODY_FILE: u32 = 64;
/// `location.label`
pub const BODY_NAME: u32 = 80;
/// `location.first_lineno`
pub(super) const BODY_LINE: u32 = 88;
/// The most bytes of a body that are read.
pub const MAX_BODY_BYTES: usize = 192;

/// Which words at [`BODY_FILE`] don't change as long as the code is there.
pub const IDENTITY: [u64; crate::python::IDENTITY_WORDS] = {
    let mut words = [0; crate::python::IDENTITY_WORDS];
    words[0] = !0;
    words[1] = !0;
    words[2] = !0;
    // The line.
    words[3] = 0xffff_ffff;
    words
};

const V3_1: RubyLayout = RubyLayout {
    threads: 304,
    running: 520,
    thread_context: 40,
    thread_native: 0,
    thread_id: 80,
    context_thread: 48,
    frame_bytes: 64,
    strings: Strings::InFlags,
    has_plain_line: false,
};

const V3_2: RubyLayout =
    RubyLayout { thread_context: 48, thread_native: 40, thread_id: 8, strings: Strings::Plain, ..V3_1 };

const V3_3: RubyLayout =
    RubyLayout { threads: 256, running: 384, thread_id: 16, frame_bytes: 56, has_plain_line: true, ..V3_2 };

/// The structures of a version, if they are known.
pub(super) fn of((major, minor): (u32, u32)) -> Option<RubyLayout> {
    match (major, minor) {
        (3, 0) => Some(RubyLayout { context_thread: 56, frame_bytes: 56, ..V3_1 }),
        (3, 1) => Some(V3_1),
        (3, 2) => Some(V3_2),
        (3, 3 | 4) => Some(V3_3),
        (4, 0) => Some(RubyLayout { threads: 184, running: 312, ..V3_3 }),
        _ => None,
    }
}
