//! Code ownership: the user's own code against that of libraries, language runtimes and compilers, which the user cannot change.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::cost::Cost;
use crate::frame::{FrameIndex, Kind, SymbolId, ViewFrame};
use crate::kernel::KernelRow;
use crate::view::{NodeId, View};

/// Largest number of functions, callers or lines named.
pub(crate) const NAMED: usize = 3;

/// Directories of files that belong to the system or a language.
const FOLDERS: [&str; 13] = [
    "/lib/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/usr/share/",
    "/usr/local/go/",
    "/usr/lib/go",
    "/usr/include/",
    "/rustc/",
    "/build/glibc",
    "/nix/store/",
    // Modules of Node.js itself.
    "node:",
];

/// Parts of the paths of sources and modules that belong to a language.
const PARTS: [&str; 11] = [
    "/rustlib/src/",
    "/.cargo/registry/",
    "/lib/python3",
    "/dist-packages/",
    "/site-packages/",
    "/node_modules/",
    "/include/c++/",
    "/go/pkg/mod/",
    "/glibc-",
    "/jdk/",
    "/libpython",
];

/// Prefixes of functions compiled into the user's file that are not the user's.
const PREFIXES: [&str; 29] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "operator new",
    "operator delete",
    "core::",
    "alloc::",
    "hashbrown::",
    "<core::",
    "<alloc::",
    "<std::",
    "<hashbrown::",
    "__rust",
    "rust_",
    "runtime.",
    "internal/",
    "sync.",
    "syscall.",
    "strings.",
    "bytes.",
    "fmt.",
    "regexp.",
    "regexp/syntax.",
    "sort.",
    "slices.",
    "memeqbody",
    "Builtins_",
    "v8::",
    "node::",
];

/// File names of programs that run users' code.
const RUNTIMES: [&str; 13] =
    ["node", "nodejs", "deno", "bun", "java", "bash", "dash", "sh", "perl", "ruby", "php", "lua", "awk"];

/// Functions at the root of every program or thread, without work of their own.
const STARTERS: [&str; 8] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
];

/// Function, file and line; if the line is unknown they identify the function.
pub(crate) type SourceLine<'v> = (&'v str, &'v str, u32);

/// The user's own code on the stacks of a view: neither the kernel's nor a library's nor a runtime's.
pub(crate) struct OwnCode {
    /// For each node of the view, the innermost frame of own code: the node or one of its callers.
    innermost: Vec<Option<NodeId>>,
}

impl OwnCode {
    /// Classifies the frames and nodes of a view, each once.
    pub fn of(view: &View<'_>) -> Self {
        let program = MainProgram::of(view);
        let is_own: Vec<bool> = view.frames().map(|(_, frame)| is_own(frame, program)).collect();
        let mut innermost: Vec<Option<NodeId>> = Vec::with_capacity(view.node_count());
        for id in (0..view.node_count()).map(NodeId::from_index) {
            let node = view.node(id);
            // Callers come before callees.
            let above = || node.caller.and_then(|caller| innermost[caller.index()]);
            innermost.push(is_own[node.frame.0 as usize].then_some(id).or_else(above));
        }
        Self { innermost }
    }

    /// Returns the innermost frame of own code on the stack of a node: the node or one of its callers.
    pub fn innermost(&self, node: NodeId) -> Option<NodeId> {
        self.innermost[node.index()]
    }

    /// Returns the source line of that frame.
    pub fn line<'v>(&self, view: &'v View<'_>, node: NodeId) -> Option<SourceLine<'v>> {
        self.innermost(node).map(|own| source_line(view, view.node(own).frame))
    }
}

/// Returns the source line of a frame.
pub(crate) fn source_line<'v>(view: &'v View<'_>, index: FrameIndex) -> SourceLine<'v> {
    let frame = view.frame(index);
    (&frame.name, frame.file, frame.line)
}

/// Costs by key, each with an example frame.
pub(crate) struct FrameCosts<K>(HashMap<K, (FrameIndex, Cost)>);

impl<K: Eq + Hash> FrameCosts<K> {
    /// Adds the cost of a frame.
    pub fn add(&mut self, key: K, index: FrameIndex, cost: Cost) {
        let sum = self.0.entry(key).or_insert((index, Cost::default()));
        sum.1 += cost;
        // The first frame seen would depend on the order of stacks.
        sum.0 = sum.0.min(index);
    }

    /// Returns the keys with costs.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// Returns the most expensive keys' frames and costs, at most [`NAMED`].
    pub fn first(self) -> Vec<(FrameIndex, Cost)> {
        let mut sums: Vec<(FrameIndex, Cost)> = self.0.into_values().collect();
        sums.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        sums.truncate(NAMED);
        sums
    }
}

impl<K> Default for FrameCosts<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The program that ran most of the time.
#[derive(Clone, Copy, Debug)]
struct MainProgram<'p> {
    /// Path of its executable, which may be in a system directory.
    executable: &'p str,
    /// Whether it is an interpreter: the user's code is what it runs.
    is_interpreter: bool,
}

impl<'p> MainProgram<'p> {
    fn of(view: &View<'p>) -> Option<Self> {
        let profile = view.profile();
        let mut costs: HashMap<&str, u64> = HashMap::new();
        for sample in view.samples() {
            let process = profile.threads[sample.sample.thread].process;
            *costs.entry(profile.strings.get(profile.processes[process].exe)).or_default() +=
                sample.sample.weight;
        }
        let (executable, _) = costs.into_iter().max_by_key(|&(exe, cost)| (cost, exe))?;
        let is_script = |frame: &ViewFrame<'_>| frame.frame.is_some_and(|id| profile.is_script(id));
        let file = executable.rsplit('/').next().unwrap_or(executable);
        let is_interpreter = RUNTIMES.contains(&file) || view.frames().any(|(_, frame)| is_script(frame));
        Some(Self { executable, is_interpreter })
    }
}

/// Whether a binary or source file belongs to the system or a language.
pub(crate) fn is_system(path: &str) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder)) || PARTS.iter().any(|part| path.contains(part))
}

fn is_own(frame: &ViewFrame<'_>, program: Option<MainProgram<'_>>) -> bool {
    if frame.kind != Kind::User || !frame.named || STARTERS.contains(&&*frame.name) {
        return false;
    }
    if is_system(frame.file) || frame.file.starts_with('<') {
        return false;
    }
    let is_script = frame.dso_path.starts_with('[');
    let of_program = program.filter(|program| program.executable == frame.dso_path);
    match of_program {
        Some(program) if program.is_interpreter => return false,
        None if !is_script && is_system(frame.dso_path) => return false,
        _ => {}
    }
    let name = strip(&frame.name);
    if is_implied(name) {
        return false;
    }
    !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether it is a destructor, copy or clone. Compilers generate most of these, so the cause is at the call site.
fn is_implied(name: &str) -> bool {
    let copies = |class: &str| {
        let parameters = name[class.len()..].split_once('(').map_or("", |(_, parameters)| parameters);
        let parameters = parameters.strip_prefix(class).unwrap_or("");
        parameters.starts_with(" const&)") || parameters.starts_with("&&)")
    };
    let head = &name[..name.find('(').unwrap_or(name.len())];
    let is_copy = head.rsplit_once("::").is_some_and(|(class, own)| {
        own.starts_with('~') || own == "operator=" || class.rsplit("::").next() == Some(own) && copies(class)
    });
    is_copy || name.contains(" as core::clone::Clone>::clone") || name.starts_with("core::ptr::drop_in_place")
}

/// The user's own code on whose behalf the kernel worked.
#[derive(Clone, Debug, Default)]
pub struct KernelCallers {
    /// The innermost frame of own code of each stack, by source line, most expensive first.
    pub places: Vec<(FrameIndex, Cost)>,
    /// For each place, the function (not the user's own) that it called most often on the way to the kernel.
    pub called: Vec<Option<FrameIndex>>,
    /// Own user time of the functions between own code and the kernel.
    pub around: Cost,
    /// Total cost of these lines, in user code and in the kernel.
    pub lines: Cost,
    /// Total cost of other lines of own code.
    pub others: Cost,
}

impl KernelCallers {
    /// Computes the callers of each row of kernel time.
    pub(crate) fn of_rows(view: &View<'_>, own: &OwnCode, rows: &[KernelRow]) -> Vec<Self> {
        let mut by_line: HashMap<SourceLine<'_>, Cost> = HashMap::new();
        let mut by_symbol: HashMap<SymbolId, Cost> = HashMap::new();
        for (_, node, cost) in view.costs_by(|_| 0) {
            *by_symbol.entry(view.frame(view.node(node).frame).symbol).or_default() += cost;
            if let Some(line) = own.line(view, node) {
                *by_line.entry(line).or_default() += cost;
            }
        }
        let all: Cost = by_line.values().copied().sum();
        let of_row = |row: &KernelRow| {
            let mut places = FrameCosts::default();
            let mut around: HashSet<SymbolId> = HashSet::new();
            let mut met: HashSet<NodeId> = HashSet::new();
            let mut called: HashMap<SourceLine<'_>, HashMap<FrameIndex, Cost>> = HashMap::new();
            for &(node, cost) in &row.stacks {
                let Some(user) = own.innermost(node) else { continue };
                let index = view.node(user).frame;
                places.add(source_line(view, index), index, cost);
                let mut callees = std::iter::successors(Some(node), |&id| view.node(id).caller);
                if let Some(callee) = callees.find(|&id| view.node(id).caller == Some(user)) {
                    let calls = called.entry(source_line(view, index)).or_default();
                    *calls.entry(view.node(callee).frame).or_default() += cost;
                }
                // Above a node already visited the stack leads to the same frame.
                let up = std::iter::successors(Some(node), |&id| view.node(id).caller.filter(|_| id != user));
                let new = up.take_while(|&id| met.insert(id));
                around.extend(new.map(|id| view.frame(view.node(id).frame).symbol));
            }
            let lines: Cost = places.keys().filter_map(|line| by_line.get(line)).copied().sum();
            let places = places.first();
            let most = |&(index, _): &(FrameIndex, Cost)| {
                let calls = called.get(&source_line(view, index))?;
                calls.iter().max_by_key(|&(&frame, &cost)| (cost, Reverse(frame))).map(|(&frame, _)| frame)
            };
            KernelCallers {
                called: places.iter().map(most).collect(),
                lines,
                others: all.without(lines),
                around: around.iter().filter_map(|symbol| by_symbol.get(symbol)).copied().sum(),
                places,
            }
        };
        rows.iter().map(of_row).collect()
    }
}

/// Strips what precedes a name: a template's return type, and the brackets of a trait implementation.
fn strip(name: &str) -> &str {
    let end = name.find('(').unwrap_or(name.len());
    let head = &name[..end];
    let mut depth = 0_i32;
    let mut begin = 0;
    for (at, character) in head.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            ' ' if depth == 0 && !head[..at].ends_with("operator") => begin = at + 1,
            _ => {}
        }
    }
    // The name `operator new` contains a space itself.
    if name[..begin].contains("operator") { name } else { &name[begin..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_write_is_told_from_other_members() {
        for name in [
            "Customer::~Customer()",
            "shop::Cart::Cart(shop::Cart const&)",
            "Cart::Cart(Cart&&)",
            "Cart::operator=(Cart const&)",
            "<app::Board as core::clone::Clone>::clone",
        ] {
            assert!(is_implied(name), "{name}");
        }
        for name in ["Cart::Cart(int)", "Cart::add(Cart const&)", "main", "Cart::Cart()", "clone::run"] {
            assert!(!is_implied(name), "{name}");
        }
    }

    #[test]
    fn names_are_found_behind_what_templates_return() {
        assert_eq!(strip("void std::sort<int*>(int*, int*)"), "std::sort<int*>(int*, int*)");
        assert_eq!(strip("operator new(unsigned long)"), "operator new(unsigned long)");
        assert_eq!(strip("main"), "main");
        assert_eq!(strip("std::map<int, long>::find(int const&)"), "std::map<int, long>::find(int const&)");
    }
}
