//! Offsets of the members of Perl's structures, in bytes. Tests compare them with those of a C compiler.
//!
//! Offsets that are the same in all supported versions are constants. All are for builds with threads, like most packages of Linux
//! distributions.

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
    /// `cx_u.cx_blk.blk_u.blku_sub.cv` of a context; formats have it at the same offset.
    pub fn context_code(&self) -> u32 {
        self.context_bytes - 32
    }
}

/// `PERL_SI.si_cxstack`
pub(super) const LIST_CONTEXTS: u32 = 8;
/// `PERL_SI.si_prev`
pub(super) const LIST_OUTER: u32 = 16;
/// `PERL_SI.si_cxix`
pub(super) const LIST_INNERMOST: u32 = 32;
/// `PERLSI_SORT`
pub(super) const SORT: u32 = 3;

/// `PERL_CONTEXT`: `blku_oldcop`
pub(super) const CONTEXT_STATEMENT: u32 = 16;
/// `retop` of calls, formats and evals.
pub(super) const CONTEXT_RETURN: u32 = 48;
/// `CXTYPEMASK`, `CXt_SUB`, `CXt_FORMAT`, `CXt_EVAL` and `CXp_TRYBLOCK`.
pub(super) const KIND: u8 = 15;
pub(super) const CALL: u8 = 9;
pub(super) const FORMAT: u8 = 10;
pub(super) const EVAL: u8 = 11;
pub(super) const TRY: u8 = 64;

/// `COP.cop_line`
pub(super) const STATEMENT_LINE: u32 = 36;
/// `COP.cop_file`
pub(super) const STATEMENT_FILE: u32 = 48;
/// `PERL_PHASE_RUN`
pub(super) const RUNS: u32 = 4;

/// `XPVCV`: `xcv_stash`, `xcv_gv_u`, `xcv_file`, `xcv_flags`.
pub(super) const CODE_PACKAGE: u32 = 32;
/// `xcv_gv_u`
pub const CODE_NAME: u32 = 56;
/// `xcv_file`
pub const CODE_FILE: u32 = 64;
pub(super) const CODE_FLAGS: u32 = 92;
/// `CVf_NAMED`
pub(super) const NAMED: u64 = 0x8000;
/// `CVf_LEXICAL`: the function is in no package.
pub(super) const LEXICAL: u64 = 0x1_0000;
/// `XPVGV`: `xiv_u.xivu_namehek` and `xnv_u.xgv_stash`.
pub(super) const GLOB_NAME: u32 = 32;
pub(super) const GLOB_PACKAGE: u32 = 40;
/// `HV.sv_u.svu_hash`
pub(super) const PACKAGE_SYMBOLS: u32 = 16;
/// `XPVHV.xhv_max`
pub(super) const BODY_LAST_SYMBOL: u32 = 24;
/// `struct xpvhv_with_aux.xhv_aux`
pub const BODY_NAMES: u32 = 32;
/// `struct xpvhv_aux.xhv_riter`, followed by `xhv_name_count`.
pub(super) const NAMES_COUNT: u32 = 24;
/// `HEK.hek_len` and `hek_key`
pub(super) const TEXT_LENGTH: u32 = 4;
pub(super) const TEXT: u32 = 8;

/// Offset of the words that identify a function. Their number is that of Python's code.
pub const IDENTITY: usize = 32;
/// Bytes of a function that are read: its own, and some after it that are masked out.
pub const MAX_CODE_BYTES: usize = IDENTITY + 8 * crate::python::IDENTITY_WORDS;

/// Masks of the immutable words at [`IDENTITY`]: the function's start, code, name and file. A closure inherits them from its prototype.
pub const MASKS: [u64; crate::python::IDENTITY_WORDS] = {
    let mut masks = [0; crate::python::IDENTITY_WORDS];
    masks[1] = !0;
    masks[2] = !0;
    masks[3] = !0;
    masks[4] = !0;
    masks
};

/// The structures of a version with a `struct interpreter` of this size. `None` if they are unknown: build options change the size.
pub(super) fn of(version: u32, interpreter_bytes: u32) -> Option<PerlLayout> {
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
