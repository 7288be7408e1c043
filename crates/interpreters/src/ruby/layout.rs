//! Offsets of the members of Ruby's structures, in bytes: those of x86_64, taken from the crate rbspy-ruby-structs, which has them from each version's
//! headers. Offsets that are the same in all supported versions are constants. Other processors differ in the size of the locks that are members.

use super::kernel::*;
pub(super) use super::kernel::{
    BODY_FILE, BODY_INSTRUCTIONS, BODY_NAME, CODE_BODY, CONTEXT_FRAME, CONTEXT_STACK, FRAME_CODE,
    FRAME_ENVIRONMENT, FRAME_INSTRUCTION, FRAME_IS_LAST, NO_POSITION,
};
use crate::KernelLayout;
use crate::root::{IDENTITY_WORDS, words};

/// The structures of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RubyLayout {
    /// `rb_ractor_t.threads.set`, the list of its threads.
    pub threads: u32,
    /// `rb_ractor_t.threads.running_ec`, the execution context of the thread that holds the lock.
    pub running: u32,
    /// `rb_thread_t.ec`
    pub thread_context: u32,
    /// `rb_thread_t.nt`; 0: the version has no such structure, and `thread_id` is a member of the thread.
    pub thread_native: u32,
    /// `rb_native_thread.thread_id`, or `rb_thread_t.thread_id`: the result of pthread_self(), which is the thread pointer.
    pub thread_id: u32,
    /// `rb_execution_context_t.thread_ptr`
    pub context_thread: u32,
    /// Size of `rb_control_frame_t`.
    pub frame_bytes: u32,
    /// Layout of strings.
    pub strings: Strings,
    /// Whether `first_lineno` is a C integer rather than a Ruby one.
    pub has_plain_line: bool,
    /// `rb_iseq_constant_body.insns_info`
    pub lines: u32,
    /// Size of `struct iseq_insn_info_entry`.
    pub line_bytes: u32,
}

impl RubyLayout {
    /// The offsets for the BPF program.
    pub(super) fn for_kernel(self) -> KernelLayout {
        KernelLayout {
            reader: READER,
            code_bytes: MAX_BODY_BYTES as u32,
            identity_at: BODY_FILE,
            identity: IDENTITY,
            words: words([
                (WORD_THREADS, self.threads),
                (WORD_RUNNING, self.running),
                (WORD_THREAD_CONTEXT, self.thread_context),
                (WORD_THREAD_NATIVE, self.thread_native),
                (WORD_THREAD_ID, self.thread_id),
                (WORD_CONTEXT_THREAD, self.context_thread),
                (WORD_FRAME_BYTES, self.frame_bytes),
            ]),
        }
    }
}

/// `struct RString`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strings {
    /// The length of a short string is in its flags, and its bytes start where other strings have their length (up to 3.1).
    InFlags,
    /// All strings have their length in the same place.
    Plain,
}

/// `rb_iseq_constant_body.iseq_size`: the number of its instruction words.
pub(super) const BODY_LENGTH: u32 = 4;
/// `location.first_lineno`
pub(super) const BODY_LINE: u32 = 88;
/// Most bytes of a body that are read.
pub const MAX_BODY_BYTES: usize = 192;

/// Masks of the words at [`BODY_FILE`] that never change while the code exists.
pub const IDENTITY: [u64; IDENTITY_WORDS] = {
    let mut words = [0; IDENTITY_WORDS];
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
    lines: 120,
    line_bytes: 12,
};

const V3_2: RubyLayout = RubyLayout {
    thread_context: 48,
    thread_native: 40,
    thread_id: 8,
    strings: Strings::Plain,
    has_plain_line: true,
    lines: 112,
    ..V3_1
};

const V3_3: RubyLayout = RubyLayout { threads: 256, running: 384, thread_id: 16, frame_bytes: 56, ..V3_2 };

/// Size of `pthread_mutex_t` on x86_64.
const MUTEX_BYTES: u32 = 40;

/// The structures of a version, if it is supported, where a `pthread_mutex_t` has `mutex_bytes`.
pub(super) fn of((major, minor): (u32, u32), mutex_bytes: u32) -> Option<RubyLayout> {
    let layout = match (major, minor) {
        (3, 0) => RubyLayout { context_thread: 56, frame_bytes: 56, line_bytes: 8, ..V3_1 },
        (3, 1) => V3_1,
        (3, 2) => V3_2,
        (3, 3 | 4) => V3_3,
        (4, 0) => RubyLayout { threads: 184, running: 312, ..V3_3 },
        _ => return None,
    };
    // `sync.lock` of the ractor is before `threads`, the scheduler's lock between that and `running_ec`.
    let larger = mutex_bytes.saturating_sub(MUTEX_BYTES);
    Some(RubyLayout { threads: layout.threads + larger, running: layout.running + 2 * larger, ..layout })
}
