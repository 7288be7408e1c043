//! The files (and things that act as one) that addresses belong to. The field's word is DSO.

use crate::strings::StringId;
use crate::table::id;

id!(
    /// A file that code was mapped from.
    DsoId
);

/// One file, as seen by one kind of address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dso {
    /// Path as the profiled process saw it, or a name in brackets: `[vdso]`, `[kernel.kallsyms]`, `[anon]`.
    /// For a kernel module its name in brackets, as in /proc/kallsyms.
    pub path: StringId,
    /// GNU build id, if the file has one.
    pub build_id: Option<BuildId>,
    /// What kind of thing it is.
    pub kind: DsoKind,
    /// What an [`Address`](crate::Address) in this file counts from.
    pub addresses: AddressSpace,
}

/// What stands behind a [`Dso`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DsoKind {
    /// An ELF file, executable or shared library, or any other mapped file.
    File,
    /// The vdso page that the kernel maps into every process.
    Vdso,
    /// The kernel itself.
    Kernel,
    /// A loaded kernel module.
    KernelModule,
    /// Functions of interpreted programs of one language, in any process: its path is the language's name in brackets. In
    /// stacks they come just further in than the frame of the interpreter's loop that ran them.
    Script,
    /// Executable memory that belongs to no file, of the process with this pid: what a JIT compiler writes. Its
    /// symbols, if any, are in `/tmp/perf-PID.map`.
    Anonymous {
        /// The process, as a pid of the outermost pid namespace that the recorder saw.
        pid: u32,
    },
}

impl DsoKind {
    /// Whether this is the kernel or a part of it.
    pub fn is_kernel(self) -> bool {
        matches!(self, DsoKind::Kernel | DsoKind::KernelModule)
    }
}

/// What the addresses of a [`Dso`] count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressSpace {
    /// Stated virtual address: what the ELF file's own headers and `addr2line` use.
    Svma,
    /// Byte offset in the file: used when its program headers could not be read.
    FileOffset,
    /// Actual virtual address at run time: kernel and anonymous memory.
    Avma,
    /// A function's number in this profile times 2^32, and a line of its source file: functions of interpreted programs.
    Line,
}

/// A GNU build id (`.note.gnu.build-id`), most often 20 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// A build id of these bytes; `None` if there are none, or more than the 64 that any linker writes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=64).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Reads what [`Display`](std::fmt::Display) wrote.
    pub fn from_hex(hex: &str) -> Option<Self> {
        if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
            return None;
        }
        let bytes: Result<Vec<u8>, _> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16)).collect();
        Self::new(&bytes.ok()?)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Display for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
