//! Whose code a frame is: the user's own, or that of a library, language runtime or compiler that he can't change.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::cost::Cost;
use crate::frame::{FrameIndex, Kind, SymbolId, ViewFrame};
use crate::view::{NodeId, View};

/// Places that are named.
const MOST_PLACES: usize = 3;

/// Folders of files that come with the system or with a language.
const FOLDERS: [&str; 12] = [
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
];

/// Parts of paths of sources and modules that come with a language.
const PARTS: [&str; 11] = [
    "/rustlib/src/",
    "/.cargo/registry/",
    "/lib/python3",
    "/dist-packages/",
    "/site-packages/",
    "/node_modules/",
    "/include/c++/",
    "node:internal",
    "/go/pkg/mod/",
    "/glibc-",
    "/jdk/",
];

/// What names of functions begin with that were compiled into the user's file but aren't his.
const PREFIXES: [&str; 26] = [
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
];

/// Functions that begin every program or thread, without work of their own.
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

/// The program that ran most of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MainProgram<'p> {
    /// Its file, which may be in a folder of the system.
    executable: &'p str,
    /// It is an interpreter: the user's code is what it runs.
    is_interpreter: bool,
}

/// Whether a frame is code of the user: neither the kernel's nor a library's nor a runtime's.
pub(crate) fn is_own_code(frame: &ViewFrame<'_>, program: Option<MainProgram<'_>>) -> bool {
    if frame.kind != Kind::User || !frame.named || STARTERS.contains(&&*frame.name) {
        return false;
    }
    let is_system = |path: &str| {
        FOLDERS.iter().any(|folder| path.starts_with(folder)) || PARTS.iter().any(|part| path.contains(part))
    };
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
    !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The program that ran most of the time.
pub(crate) fn main_program<'p>(view: &View<'p>) -> Option<MainProgram<'p>> {
    let profile = view.profile();
    let mut costs: HashMap<&str, u64> = HashMap::new();
    for sample in view.samples() {
        let process = profile.threads[sample.sample.thread].process;
        *costs.entry(profile.strings.get(profile.processes[process].exe)).or_default() +=
            sample.sample.weight;
    }
    let (executable, _) = costs.into_iter().max_by_key(|&(exe, cost)| (cost, exe))?;
    let is_script = |frame: &ViewFrame<'_>| frame.frame.is_some_and(|id| profile.is_script(id));
    let is_interpreter = view.frames().any(|(_, frame)| is_script(frame));
    Some(MainProgram { executable, is_interpreter })
}

/// The user's own code that the kernel worked for.
#[derive(Clone, Debug, Default)]
pub struct KernelCallers {
    /// The innermost frame of own code of each stack, by source line: those with more first.
    pub places: Vec<(FrameIndex, Cost)>,
    /// Own time in user code of the functions from there to the kernel.
    pub around: Cost,
    /// All that was done for these lines, in user code and in the kernel.
    pub lines: Cost,
}

impl KernelCallers {
    /// Of stacks of the user's part, with what the kernel took for each.
    pub(crate) fn of(view: &View<'_>, stacks: &[(NodeId, Cost)]) -> Self {
        let program = main_program(view);
        let mut sums: HashMap<(&str, &str, u32), (FrameIndex, Cost)> = HashMap::new();
        let mut between: HashSet<SymbolId> = HashSet::new();
        for &(node, cost) in stacks {
            let (mut at, mut met) = (Some(node), Vec::new());
            while let Some(id) = at {
                let index = view.node(id).frame;
                let frame = view.frame(index);
                met.push(frame.symbol);
                if is_own_code(frame, program) {
                    let sum =
                        sums.entry((&frame.name, frame.file, frame.line)).or_insert((index, Cost::default()));
                    sum.1 += cost;
                    sum.0 = sum.0.min(index);
                    between.extend(met);
                    break;
                }
                at = view.node(id).caller;
            }
        }
        let all = view.costs_by(|_| 0);
        let is_for_lines = |node: NodeId| {
            let line = own_line(view, node, program);
            line.is_some_and(|line| sums.contains_key(&line))
        };
        let lines = all.iter().filter(|&&(_, node, _)| is_for_lines(node)).map(|&(_, _, cost)| cost).sum();
        let mut places: Vec<(FrameIndex, Cost)> = sums.into_values().collect();
        places.sort_by_key(|&(frame, cost)| (Reverse(cost), frame));
        places.truncate(MOST_PLACES);
        let own = all.into_iter();
        let is_around = |node: NodeId| between.contains(&view.frame(view.node(node).frame).symbol);
        let around = own.filter(|&(_, node, _)| is_around(node)).map(|(_, _, cost)| cost).sum();
        KernelCallers { places, around, lines }
    }
}

/// The innermost frame of the user's own code on a stack: its function, file and line.
fn own_line<'v>(
    view: &'v View<'_>,
    node: NodeId,
    program: Option<MainProgram<'_>>,
) -> Option<(&'v str, &'v str, u32)> {
    let mut at = Some(node);
    while let Some(id) = at {
        let frame = view.frame(view.node(id).frame);
        if is_own_code(frame, program) {
            return Some((&frame.name, frame.file, frame.line));
        }
        at = view.node(id).caller;
    }
    None
}

/// Without what stands before a name: what a template returns, and brackets of a trait's implementation.
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
    // `operator new` has a blank of its own.
    if name[..begin].contains("operator") { name } else { &name[begin..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_behind_what_templates_return() {
        assert_eq!(strip("void std::sort<int*>(int*, int*)"), "std::sort<int*>(int*, int*)");
        assert_eq!(strip("operator new(unsigned long)"), "operator new(unsigned long)");
        assert_eq!(strip("main"), "main");
        assert_eq!(strip("std::map<int, long>::find(int const&)"), "std::map<int, long>::find(int const&)");
    }
}
