//! Offsets in HotSpot's structures, as the library states them.

use crate::{Memory, Unreadable};

use super::statements::{Field, Statements, Tables};

/// Offsets of one build of HotSpot.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Major version of Java.
    pub(super) version: u32,
    /// Stated addresses of static variables.
    pub(super) heaps: u64,
    pub(super) interpreter: u64,
    /// `GrowableArray<CodeHeap*>`: its length and its elements.
    pub(super) array_length: u32,
    pub(super) array_data: u32,
    /// `CodeHeap`.
    pub(super) heap: HeapLayout,
    pub(super) blob: BlobLayout,
    pub(super) compiled: CompiledLayout,
    pub(super) method: MethodLayout,
    pub(super) codelets: Codelets,
}

/// `CodeHeap`, and what is before each blob in one.
#[derive(Clone, Debug)]
pub(super) struct HeapLayout {
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) segments: u32,
    pub(super) segment_bits: u32,
    pub(super) block_bytes: u32,
    pub(super) block_used: u32,
}

/// `CodeBlob`.
#[derive(Clone, Debug)]
pub(super) struct BlobLayout {
    pub(super) bytes: u32,
    pub(super) name: u32,
    pub(super) size: Field,
    pub(super) code: CodeBounds,
    pub(super) frame_complete: Field,
    pub(super) frame_size: Field,
}

/// The place of a blob's instructions.
#[derive(Clone, Debug)]
pub(super) enum CodeBounds {
    /// Up to Java 22: their first and last address.
    Addresses(Field, Field),
    /// Offsets in the blob.
    Offsets(Field, Field),
}

/// `nmethod`.
#[derive(Clone, Debug)]
pub(super) struct CompiledLayout {
    pub(super) bytes: u32,
    pub(super) method: u32,
    pub(super) compile_id: Field,
    pub(super) scopes: Scopes,
    pub(super) metadata: Metadata,
    /// Whether bytes of numbers in scopes are never zero: since Java 20.
    pub(super) excludes_zero: bool,
}

/// The places of scopes, and of the table that leads to them.
#[derive(Clone, Debug)]
pub(super) enum Scopes {
    /// Up to Java 22: all in the blob.
    Inside { data: u32, table: Field, table_end: Field },
    /// Behind a pointer, at these offsets.
    Apart { pointer: u32, table: Field, data: Field },
}

/// The place of the pointers to methods.
#[derive(Clone, Debug)]
pub(super) enum Metadata {
    /// At an offset in the blob; up to Java 22.
    Inside(Field),
    /// At an offset in the blob's data.
    InData(Field, Field),
    /// Behind a pointer, after the relocations; since Java 25.
    Apart { pointer: u32, before: Field },
}

/// `Method`, and what leads to its name and lines.
#[derive(Clone, Debug)]
pub(super) struct MethodLayout {
    pub(super) constant: u32,
    /// `ConstMethod`.
    pub(super) constant_bytes: u32,
    pub(super) pool: u32,
    pub(super) size: Field,
    pub(super) flags: Field,
    pub(super) code_size: Field,
    pub(super) name: Field,
    pub(super) signature: Field,
    /// `ConstantPool`.
    pub(super) pool_bytes: u32,
    pub(super) holder: u32,
    pub(super) source: Source,
    pub(super) class_name: u32,
    pub(super) symbol_length: Field,
    pub(super) symbol_text: u32,
}

/// The structure with the name of the source file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Pool(Field),
    Class(Field),
}

/// Pieces of the interpreter.
#[derive(Clone, Debug)]
pub(super) struct Codelets {
    pub(super) buffer: u32,
    pub(super) end: Field,
    pub(super) size: Field,
    pub(super) description: u32,
}

impl Layout {
    /// Reads the layout that a process states. The inner `None`: it lacks something.
    pub(super) fn read(
        memory: &dyn Memory,
        bias: u64,
        tables: &Tables,
    ) -> Result<Option<Layout>, Unreadable> {
        let all = Statements::read(memory, bias, tables)?;
        let version = all.variable("Abstract_VM_Version", "_vm_major_version");
        let Some(version) = version else { return Ok(None) };
        let version = memory.word(version)? as u32;
        Ok(Layout::of(&all, version, bias))
    }

    pub(super) fn of(all: &Statements, version: u32, bias: u64) -> Option<Layout> {
        let stated = |structure, name| Some(all.variable(structure, name)?.wrapping_sub(bias));
        let array = ["GrowableArrayBase", "GenericGrowableArray"];
        Some(Layout {
            version,
            heaps: stated("CodeCache", "_heaps")?,
            interpreter: stated("AbstractInterpreter", "_code")?,
            array_length: array.iter().find_map(|base| all.offset(base, "_len"))?,
            array_data: all.offset("GrowableArray<int>", "_data")?,
            heap: HeapLayout::of(all)?,
            blob: BlobLayout::of(all)?,
            compiled: CompiledLayout::of(all, version)?,
            method: MethodLayout::of(all)?,
            codelets: Codelets {
                buffer: all.offset("StubQueue", "_stub_buffer")?,
                end: all.field("StubQueue", "_queue_end")?,
                size: all.field("InterpreterCodelet", "_size")?,
                description: all.offset("InterpreterCodelet", "_description")?,
            },
        })
    }
}

impl HeapLayout {
    fn of(all: &Statements) -> Option<HeapLayout> {
        let memory = all.offset("CodeHeap", "_memory")?;
        Some(HeapLayout {
            low: memory + all.offset("VirtualSpace", "_low_boundary")?,
            high: memory + all.offset("VirtualSpace", "_high_boundary")?,
            segments: all.offset("CodeHeap", "_segmap")? + all.offset("VirtualSpace", "_low")?,
            segment_bits: all.offset("CodeHeap", "_log2_segment_size")?,
            block_bytes: all.size("HeapBlock")?,
            block_used: all.offset("HeapBlock::Header", "_used")?,
        })
    }
}

impl BlobLayout {
    fn of(all: &Statements) -> Option<BlobLayout> {
        let field = |name| all.field("CodeBlob", name);
        let addresses = || Some(CodeBounds::Addresses(field("_code_begin")?, field("_code_end")?));
        Some(BlobLayout {
            bytes: all.size("CodeBlob")?,
            name: field("_name")?.offset,
            size: field("_size")?,
            code: match field("_code_offset") {
                Some(begin) => CodeBounds::Offsets(begin, field("_data_offset")?),
                None => addresses()?,
            },
            frame_complete: field("_frame_complete_offset")?,
            frame_size: field("_frame_size")?,
        })
    }
}

impl CompiledLayout {
    fn of(all: &Statements, version: u32) -> Option<CompiledLayout> {
        let field = |name| all.field("nmethod", name);
        let either = |name| field(name).or_else(|| all.field("CompiledMethod", name));
        let scopes = match field("_immutable_data") {
            Some(pointer) => Scopes::Apart {
                pointer: pointer.offset,
                table: field("_scopes_pcs_offset")?,
                data: field("_scopes_data_offset")?,
            },
            None => Scopes::Inside {
                data: either("_scopes_data_begin")?.offset,
                table: field("_scopes_pcs_offset")?,
                table_end: field("_dependencies_offset")?,
            },
        };
        let metadata = match (all.offset("CodeBlob", "_mutable_data"), field("_metadata_offset")) {
            (Some(pointer), _) => {
                Metadata::Apart { pointer, before: all.field("CodeBlob", "_relocation_size")? }
            }
            (None, Some(offset)) if matches!(scopes, Scopes::Inside { .. }) => Metadata::Inside(offset),
            (None, offset) => Metadata::InData(all.field("CodeBlob", "_data_offset")?, offset?),
        };
        Some(CompiledLayout {
            bytes: all.size("nmethod")?,
            method: either("_method")?.offset,
            compile_id: field("_compile_id")?,
            scopes,
            metadata,
            excludes_zero: version >= 20,
        })
    }
}

impl MethodLayout {
    fn of(all: &Statements) -> Option<MethodLayout> {
        let field = |name| all.field("ConstMethod", name);
        let source = "_source_file_name_index";
        let in_class = || all.field("InstanceKlass", source).map(Source::Class);
        Some(MethodLayout {
            constant: all.offset("Method", "_constMethod")?,
            constant_bytes: all.size("ConstMethod")?,
            pool: field("_constants")?.offset,
            size: field("_constMethod_size")?,
            flags: field("_flags").or_else(|| field("_flags._flags"))?,
            code_size: field("_code_size")?,
            name: field("_name_index")?,
            signature: field("_signature_index")?,
            pool_bytes: all.size("ConstantPool")?,
            holder: all.offset("ConstantPool", "_pool_holder")?,
            source: all.field("ConstantPool", source).map(Source::Pool).or_else(in_class)?,
            class_name: all.offset("Klass", "_name")?,
            symbol_length: all.field("Symbol", "_length")?,
            symbol_text: all.offset("Symbol", "_body")?,
        })
    }
}
