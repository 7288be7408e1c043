//! User code by kind of module: the program itself, the C library, other libraries, and code in no file.

use std::cmp::Reverse;
use std::collections::HashMap;

use plumb_profile::{DsoKind, Id, ProcessId};

use crate::cost::Cost;
use crate::frame::{Kind, ViewFrame};
use crate::view::View;

/// A kind of module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleKind {
    /// The executable's own file.
    Program,
    /// The C library and the dynamic loader.
    CLibrary,
    /// Another library.
    Library,
    /// Functions of an interpreted program.
    Script,
    /// Anonymous memory, and the kernel's vdso.
    Memory,
    /// The module is not known.
    Unknown,
}

impl ModuleKind {
    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            ModuleKind::Program => "program",
            ModuleKind::CLibrary => "c-library",
            ModuleKind::Library => "library",
            ModuleKind::Script => "script",
            ModuleKind::Memory => "memory",
            ModuleKind::Unknown => "unknown",
        }
    }
}

/// The cost of one kind of module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module<'p> {
    /// The kind.
    pub kind: ModuleKind,
    /// Total cost.
    pub cost: Cost,
    /// The files, most expensive first.
    pub files: Vec<(&'p str, Cost)>,
}

/// Returns the kinds of modules that samples in user code are in, most expensive first. They add up to all of user code.
pub(super) fn modules<'p>(view: &View<'p>) -> Vec<Module<'p>> {
    let profile = view.profile();
    let process = |thread| profile.threads[thread].process;
    let costs = view.costs_by(|thread| process(thread).index() as u32);
    let mut sums: HashMap<ModuleKind, HashMap<&'p str, Cost>> = HashMap::new();
    for (process, node, cost) in costs {
        let frame = view.frame(view.node(node).frame);
        let process = &profile.processes[ProcessId::from_index(process as usize)];
        if frame.kind != Kind::Kernel && process.pid != 0 {
            let kind = kind(view, frame, profile.strings.get(process.exe));
            *sums.entry(kind).or_default().entry(frame.dso_path).or_default() += cost;
        }
    }
    let mut modules: Vec<Module<'p>> = sums
        .into_iter()
        .map(|(kind, files)| {
            let mut files: Vec<(&str, Cost)> = files.into_iter().collect();
            files.sort_by_key(|&(path, cost)| (Reverse(cost), path));
            Module { kind, cost: files.iter().map(|&(_, cost)| cost).sum(), files }
        })
        .collect();
    modules.sort_by_key(|module| (Reverse(module.cost), module.kind));
    modules
}

fn kind(view: &View<'_>, frame: &ViewFrame<'_>, exe: &str) -> ModuleKind {
    if frame.kind == Kind::Marker {
        return ModuleKind::Unknown;
    }
    match frame.dso.map(|dso| view.profile().dsos[dso].kind) {
        // A placeholder for a file that another tool's profile does not name.
        Some(DsoKind::File) if frame.dso_path.starts_with('[') => ModuleKind::Unknown,
        Some(DsoKind::File) if frame.dso_path == exe => ModuleKind::Program,
        // Recordings of other tools do not name the executable; but a library can be recognized by its file name.
        Some(DsoKind::File) if !frame.dso_name().contains(".so") => ModuleKind::Program,
        Some(DsoKind::File) if is_c_library(frame.dso_name()) => ModuleKind::CLibrary,
        Some(DsoKind::File) => ModuleKind::Library,
        Some(DsoKind::Script) => ModuleKind::Script,
        Some(DsoKind::Vdso | DsoKind::Kernel | DsoKind::KernelModule | DsoKind::Anonymous { .. }) => {
            ModuleKind::Memory
        }
        None => ModuleKind::Unknown,
    }
}

/// Whether this is a file of glibc or musl.
fn is_c_library(name: &str) -> bool {
    let parts = ["libc", "libm", "libpthread", "ld-linux", "ld-musl"];
    parts.iter().any(|part| {
        let rest = name.strip_prefix(part).unwrap_or_default();
        rest.starts_with(['.', '-'])
    })
}
