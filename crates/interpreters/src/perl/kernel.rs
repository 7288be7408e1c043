//! Numbers that the BPF program for Perl shares (crates/capture-bpf/bpf/interpreters/perl.h). `WORD_`: the index of an offset in
//! [`KernelLayout::words`](crate::KernelLayout::words).

/// Number of the reader.
pub const READER: u32 = 3;

/// `struct interpreter`: its phase.
pub const WORD_PHASE: u32 = 0;
/// `struct interpreter`: the current statement.
pub const WORD_STATEMENT: u32 = 1;
/// `struct interpreter`: the innermost list of contexts.
pub const WORD_CONTEXTS: u32 = 2;
/// `PERL_SI`: its purpose.
pub const WORD_PURPOSE: u32 = 3;
/// Size of a `PERL_CONTEXT`.
pub const WORD_CONTEXT_BYTES: u32 = 4;
/// `PERL_CONTEXT`: the code of a call.
pub const WORD_CONTEXT_CODE: u32 = 5;
/// The member in the body of packages that leads to the name; [`NO_MEMBER`]: the name is behind their symbols.
pub const WORD_BODY_NAMES: u32 = 6;

/// Value of an offset if the structure has no such member.
pub const NO_MEMBER: u32 = 0xffffffff;

/// `PERL_SI.si_cxstack`
pub const LIST_CONTEXTS: u32 = 8;
/// `PERL_SI.si_prev`
pub const LIST_OUTER: u32 = 16;
/// `PERL_SI.si_cxix`
pub const LIST_INNERMOST: u32 = 32;
/// `PERLSI_SORT`
pub const SORT: u32 = 3;

/// `PERL_CONTEXT`: `blku_oldcop`, the statement that was running as it began.
pub const CONTEXT_STATEMENT: u32 = 16;
/// `retop` of calls, formats and evals.
pub const CONTEXT_RETURN: u32 = 48;
/// `CXTYPEMASK`
pub const KIND: u8 = 15;
/// `CXt_SUB`
pub const CALL: u8 = 9;
/// `CXt_FORMAT`
pub const FORMAT: u8 = 10;
/// `CXt_EVAL`
pub const EVAL: u8 = 11;
/// `CXp_TRYBLOCK`
pub const TRY: u8 = 64;

/// `COP.cop_line`
pub const STATEMENT_LINE: u32 = 36;
/// `COP.cop_file`
pub const STATEMENT_FILE: u32 = 48;
/// `PERL_PHASE_RUN`
pub const RUNS: u32 = 4;

/// `XPVCV.xcv_stash`
pub const CODE_PACKAGE: u32 = 32;
/// `xcv_gv_u`
pub const CODE_NAME: u32 = 56;
/// `xcv_file`
pub const CODE_FILE: u32 = 64;
/// `xcv_flags`
pub const CODE_FLAGS: u32 = 92;
/// `CVf_NAMED`
pub const NAMED: u64 = 0x8000;
/// `XPVGV`: `xiv_u.xivu_namehek`
pub const GLOB_NAME: u32 = 32;
/// `xnv_u.xgv_stash`
pub const GLOB_PACKAGE: u32 = 40;
/// `HV.sv_u.svu_hash`
pub const PACKAGE_SYMBOLS: u32 = 16;
/// `XPVHV.xhv_max`
pub const BODY_LAST_SYMBOL: u32 = 24;
/// `struct xpvhv_aux.xhv_riter`, followed by `xhv_name_count`.
pub const NAMES_COUNT: u32 = 24;
