//! Offsets and instance types of one version of V8, from the constants that it states for debuggers (`v8dbg_…`, tools/gen-postmortem-metadata.py), and
//! where it states none, by version.

use crate::image::{Image, Wanted};
use crate::root::{IDENTITY_WORDS, KernelLayout, words};

use super::kernel;
use super::positions::Form;

/// Number of bytes of a constant; those of one or two are cut to their size.
const NUMBER: usize = 4;

/// Bytes of a `SharedFunctionInfo` of which its identity is made.
pub(super) const SHARED_BYTES: usize = 8 * IDENTITY_WORDS;

/// A constant for debuggers that later versions name differently.
type Names = &'static [&'static str];

const SHARED: &str = "v8dbg_class_JSFunction__shared__SharedFunctionInfo";
const MAJOR: &str = "_ZN2v88internal7Version6major_E";
const MINOR: &str = "_ZN2v88internal7Version6minor_E";
const FRAME_FUNCTION: &str = "v8dbg_off_fp_function";
const FRAME_CONTEXT: &str = "v8dbg_off_fp_context_or_frame_type";
const FRAME_OFFSET: &str = "v8dbg_off_fp_bytecode_offset";
const FUNCTION_TYPE: &str = "v8dbg_type_JSFunction__JS_FUNCTION_TYPE";
const FIRST_FUNCTION: &str = "v8dbg_FirstJSFunctionType";
const LAST_FUNCTION: &str = "v8dbg_LastJSFunctionType";
const SHARED_NAME: Names = &[
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
];
const SHARED_SCRIPT: Names = &[
    "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
    "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
];
const SHARED_FLAGS: &str = "v8dbg_class_SharedFunctionInfo__flags__int";
const SCRIPT_NAME: &str = "v8dbg_class_Script__name__Object";
const SCRIPT_SOURCE: &str = "v8dbg_class_Script__source__Object";
const SCRIPT_ENDS: &str = "v8dbg_class_Script__line_ends__Object";
const SCOPE_LOCALS: &str = "v8dbg_scopeinfo_idx_ncontextlocals";
const SCOPE_FIRST: &str = "v8dbg_scopeinfo_idx_first_vars";
const SCOPE_TYPE: &str = "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE";
const SCRIPT_TYPE: &str = "v8dbg_type_Script__SCRIPT_TYPE";
const SHARED_TYPE: &str = "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE";
const WRAPPER_TYPE: &str = "v8dbg_type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE";
const CODE_TYPE: &str = "v8dbg_type_Code__CODE_TYPE";
const BYTECODE_TYPE: &str = "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE";
const BYTECODE_DATA: &str = "v8dbg_class_BytecodeArray__data__uintptr_t";
const CODE_START: &str = "v8dbg_class_Code__instruction_start__Address";
const CODE_SIZE: &str = "v8dbg_class_Code__instruction_size__int";
const LITERALS: &str = "v8dbg_DeoptimizationDataLiteralArrayIndex";
const INLININGS: &str = "v8dbg_DeoptimizationDataInliningPositionsIndex";

const fn number(name: &'static str) -> Wanted {
    Wanted { name, bytes: NUMBER }
}

/// Symbols to search for in a file.
pub(super) const SYMBOLS: &[Wanted] = &[
    number(SHARED),
    number(MAJOR),
    number(MINOR),
    number(FRAME_FUNCTION),
    number(FRAME_CONTEXT),
    number(FRAME_OFFSET),
    number(FUNCTION_TYPE),
    number(FIRST_FUNCTION),
    number(LAST_FUNCTION),
    number(SHARED_NAME[0]),
    number(SHARED_NAME[1]),
    number(SHARED_NAME[2]),
    number(SHARED_SCRIPT[0]),
    number(SHARED_SCRIPT[1]),
    number(SHARED_FLAGS),
    number(SCRIPT_NAME),
    number(SCRIPT_SOURCE),
    number(SCRIPT_ENDS),
    number(SCOPE_LOCALS),
    number(SCOPE_FIRST),
    number(SCOPE_TYPE),
    number(SCRIPT_TYPE),
    number(SHARED_TYPE),
    number(WRAPPER_TYPE),
    number(CODE_TYPE),
    number(BYTECODE_TYPE),
    number(BYTECODE_DATA),
    number(CODE_START),
    number(CODE_SIZE),
    number(LITERALS),
    number(INLININGS),
];

/// The version of V8 in a file, and the stated address of a symbol of it.
pub(super) fn version(image: &Image) -> Option<((u32, u32), u64)> {
    Some(((image.number(MAJOR)?, image.number(MINOR)?), image.address(MAJOR)?))
}

/// Offsets in V8's structures, and its instance types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct V8Layout {
    /// `JSFunction`: its `SharedFunctionInfo`.
    pub(super) function_shared: u32,
    /// The instance types of functions.
    pub(super) functions: (u16, u16),
    pub(super) shared: SharedLayout,
    pub(super) scope: ScopeLayout,
    pub(super) script: ScriptLayout,
    pub(super) bytecode: BytecodeLayout,
    /// Form of tables of source positions.
    pub(super) form: Form,
    pub(super) code: CodeLayout,
}

/// `SharedFunctionInfo`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedLayout {
    pub(super) kind: u16,
    /// Type of objects that lead to one, since V8 12.
    pub(super) wrapper: Option<u16>,
    /// The name, or the `ScopeInfo`.
    pub(super) name: u32,
    pub(super) script: u32,
    /// Flags; behind them is the number of the function in its script.
    flags: u32,
}

/// `ScopeInfo`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScopeLayout {
    pub(super) kind: u16,
    /// Index of the number of locals in contexts.
    pub(super) locals: u32,
    /// Index behind the fixed part.
    pub(super) first: u32,
}

/// `Script`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptLayout {
    pub(super) kind: u16,
    pub(super) name: u32,
    pub(super) source: u32,
    /// The number, which no other script of the process has or had.
    pub(super) number: u32,
}

/// `BytecodeArray`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BytecodeLayout {
    pub(super) kind: u16,
    /// The bytecodes.
    pub(super) data: u32,
    /// The table of source positions.
    pub(super) positions: u32,
}

/// Offsets in the object of a piece of compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    pub(super) kind: u16,
    /// Place of the instructions.
    pub(super) start: Start,
    /// The number of bytes of its instructions.
    pub(super) size: u32,
    /// The data for deoptimizing; for code without optimizations the bytecode.
    pub(super) deoptimization: u32,
    /// The table of source positions.
    pub(super) positions: u32,
    /// Index in the data for deoptimizing: functions and other constants.
    pub(super) literals: u32,
    /// Index in the data for deoptimizing: the inlined calls.
    pub(super) inlinings: u32,
}

/// The place of the instructions of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Up to V8 10: in the object itself, at this offset.
    Inside(u32),
    /// In an object of their own, whose header leads to the code; the code has their address at this offset.
    At(u32),
}

impl V8Layout {
    /// The layout that a file states. `None` if it lacks a constant, or has frames of another form.
    pub(super) fn of(image: &Image, version: (u32, u32)) -> Option<V8Layout> {
        let number = |name: &str| image.sized_number(name);
        let kind = |name: &str| u16::try_from(number(name)?).ok();
        let any = |names: Names| names.iter().find_map(|name| number(name));
        let frame = |name: &str| image.number(name).map(u32::cast_signed);
        let has_known_frames = frame(FRAME_FUNCTION) == Some(-16)
            && frame(FRAME_CONTEXT) == Some(-8)
            && frame(FRAME_OFFSET) == Some(-40);
        if !has_known_frames {
            return None;
        }
        let first = kind(FIRST_FUNCTION).or_else(|| kind(FUNCTION_TYPE))?;
        Some(V8Layout {
            function_shared: number(SHARED)?,
            // Up to V8 11 the last is not stated: eleven constructors of typed arrays and four others follow.
            functions: (first, kind(LAST_FUNCTION).unwrap_or(first + 15)),
            shared: SharedLayout {
                kind: kind(SHARED_TYPE)?,
                wrapper: kind(WRAPPER_TYPE),
                name: any(SHARED_NAME)?,
                script: any(SHARED_SCRIPT)?,
                flags: number(SHARED_FLAGS)?,
            },
            scope: ScopeLayout {
                kind: kind(SCOPE_TYPE)?,
                locals: number(SCOPE_LOCALS)?,
                first: number(SCOPE_FIRST)?,
            },
            script: ScriptLayout {
                kind: kind(SCRIPT_TYPE)?,
                name: number(SCRIPT_NAME)?,
                source: number(SCRIPT_SOURCE)?,
                // Not stated, but behind the ends of lines in all versions.
                number: number(SCRIPT_ENDS)?.saturating_add(8),
            },
            bytecode: BytecodeLayout {
                kind: kind(BYTECODE_TYPE)?,
                data: number(BYTECODE_DATA)?,
                positions: if version >= (12, 0) { 24 } else { 32 },
            },
            form: if version >= (14, 0) { Form::WithProperty } else { Form::Plain },
            code: CodeLayout::of(image, version)?,
        })
    }

    /// Masks of the words of a `SharedFunctionInfo` that don't change while its function may run: its map, its name, its script and its number in the
    /// script. A collector that moves one of these makes it another one.
    pub(super) fn identity(&self) -> [u64; IDENTITY_WORDS] {
        let mut masks = [0; IDENTITY_WORDS];
        let mut set = |at: u32, mask: u64| {
            if let Some(word) = masks.get_mut(at as usize / 8) {
                *word = mask;
            }
        };
        set(0, !0);
        set(self.shared.name, !0);
        set(self.shared.script, !0);
        set(self.shared.flags, !0 << 32);
        // The number of its script is there.
        set(8 * (IDENTITY_WORDS as u32 - 1), !0);
        masks
    }

    /// The numbers for the kernel's reader.
    pub(super) fn for_kernel(&self) -> KernelLayout {
        KernelLayout {
            reader: kernel::READER,
            code_bytes: SHARED_BYTES as u32,
            identity_at: 0,
            identity: self.identity(),
            words: words([
                (kernel::WORD_SHARED, self.function_shared),
                (kernel::WORD_FIRST_FUNCTION, self.functions.0.into()),
                (kernel::WORD_LAST_FUNCTION, self.functions.1.into()),
                (kernel::WORD_BYTECODE, self.bytecode.kind.into()),
                (kernel::WORD_SCRIPT, self.shared.script),
                (kernel::WORD_SCRIPT_NUMBER, self.script.number),
            ]),
        }
    }
}

impl CodeLayout {
    fn of(image: &Image, version: (u32, u32)) -> Option<CodeLayout> {
        let number = |name: &str| image.sized_number(name);
        let kind = u16::try_from(number(CODE_TYPE)?).ok()?;
        let (literals, inlinings) = (number(LITERALS).unwrap_or(2), number(INLININGS).unwrap_or(7));
        let old = CodeLayout {
            kind,
            start: Start::Inside(128),
            size: 40,
            deoptimization: 16,
            positions: 24,
            literals,
            inlinings,
        };
        Some(match version {
            (..11, _) => old,
            (11, _) => CodeLayout { start: Start::At(40), size: 56, ..old },
            _ => CodeLayout {
                start: Start::At(number(CODE_START)?),
                size: number(CODE_SIZE)?,
                deoptimization: 8,
                positions: 16,
                ..old
            },
        })
    }
}
