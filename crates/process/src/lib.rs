//! Facts about Linux processes: mappings over time, the files behind them, name, parent.
//!
//! Nearly everything here is plain file reading: `/proc` as text, ELF files by `pread`. Nothing is memory-mapped, because
//! a file that shrinks under a mapping kills its reader, and recorded programs are replaced while they run. The kernel's
//! accounts of processes and the clock are in [`procfs`] and [`usage`].
//! Whatever is read may be hostile or vanish halfway: that is an error value or a missing piece, never a panic.
//!
//! [`DiskCache`] is the one exception: what was learnt of files, kept in the user's cache from run to run.
//!
//! Not here: what the addresses are called, how stacks are unwound, any event from the kernel.

#![deny(unsafe_code)]

mod allocator;
mod arch;
mod caches;
mod descriptor;
pub mod elf;
mod files;
mod host;
mod identity;
mod kept;
mod maps;
mod memory;
mod open;
mod pid;
pub mod procfs;
mod program;
mod section;
mod setcap;
mod space;
mod startup;
pub mod taskstats;
mod thread;
pub mod throttle;
mod tree;
mod trusted;
mod uprobes;
pub mod usage;
mod vdso;
mod vectors;

pub use allocator::Allocator;
pub use arch::{UnsupportedMachine, can_observe};
pub use caches::cache_sizes;
pub use descriptor::{pidfd, read_memory};
pub use elf::{Elf, ElfError, FileOffset, Section, UnwindSections};
pub use files::{FileId, Files, MappedFile};
pub use host::{CAP_CHECKPOINT_RESTORE, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};
pub use identity::{Device, FileKey};
pub use kept::{DiskCache, Entry as DiskCacheEntry, cache_folder};
pub use maps::{MapLine, parse_maps};
pub use memory::available_memory;
pub use open::{FileOrigin, OpenError, RecordedFiles, open_mapped, path_of_open, recorded_paths};
pub use pid::{
    FOREIGN_PROC, comm, environment, executable, is_proc_foreign, living_thread, mappings, parent, peak_rss,
    pids, threads,
};
pub use program::Program;
pub use section::{SectionReader, read_most};
pub use setcap::{setcap_bpf, setcap_perf};
pub use space::{AddressSpace, Backing, Vma};
pub use startup::stdout_was_closed;
pub use thread::{WaitingAt, kernel_stack, state, tracer, user, waits_at};
pub use tree::Tree;
pub use trusted::open_owned;
pub use uprobes::{Uprobe, parse_uprobe_events, uprobes_in_processes};
pub use vdso::vdso;
pub use vectors::vector_bytes;
