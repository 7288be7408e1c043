//! The files (and pseudo-files) that addresses belong to: DSOs, dynamic shared objects.

use crate::strings::StringId;
use crate::table::id;

id!(
    /// A file that code was mapped from.
    DsoId
);

/// One file, with one kind of address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dso {
    /// Path as seen by the profiled process, or a name in brackets: `[vdso]`, `[kernel.kallsyms]`, `[anon]`.
    /// For a kernel module its name in brackets, as in /proc/kallsyms.
    pub path: StringId,
    /// GNU build id, if the file has one.
    pub build_id: Option<BuildId>,
    /// Kind of the file.
    pub kind: DsoKind,
    /// Base of an [`Address`](crate::Address) in this file.
    pub addresses: AddressSpace,
}

/// The kind of a [`Dso`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DsoKind {
    /// An ELF file, executable or shared library, or any other mapped file.
    File,
    /// The vdso that the kernel maps into every process.
    Vdso,
    /// The kernel itself.
    Kernel,
    /// A loaded kernel module.
    KernelModule,
    /// Functions of interpreted programs of one language, in any process: the path is the language's name in brackets. In
    /// stacks they are directly inside the frame of the interpreter loop that ran them.
    Script,
    /// Executable memory of the process with this pid that belongs to no file, as written by a JIT compiler. Its
    /// symbols, if any, are in `/tmp/perf-PID.map`.
    Anonymous {
        /// Process id in the outermost pid namespace that the recorder saw.
        pid: u32,
    },
}

impl DsoKind {
    /// Whether this is the kernel or a kernel module.
    pub fn is_kernel(self) -> bool {
        matches!(self, DsoKind::Kernel | DsoKind::KernelModule)
    }
}

/// The meaning of the addresses of a [`Dso`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressSpace {
    /// Virtual address stated in the ELF file, as used by its own headers and `addr2line`.
    Svma,
    /// Byte offset in the file: used if its program headers could not be read.
    FileOffset,
    /// Virtual address at run time: kernel and anonymous memory.
    Avma,
    /// A function's number in this profile times 2^32, plus a line of its source file: functions of interpreted programs.
    Line,
}

/// A GNU build id (`.note.gnu.build-id`), most often 20 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// Creates a build id from bytes; `None` if there are none, or more than the 64 that any linker writes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=64).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Parses the output of [`Display`](std::fmt::Display).
    pub fn from_hex(hex: &str) -> Option<Self> {
        if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
            return None;
        }
        let bytes: Result<Vec<u8>, _> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16)).collect();
        Self::new(&bytes.ok()?)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Display for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
