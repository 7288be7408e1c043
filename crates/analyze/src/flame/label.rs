//! The labels of boxes. Frames of the same function, file and kind share a label.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use plumb_profile::{DsoKind, Id, Profile, Thread, ThreadId};

use crate::flame::Grouping;
use crate::frame::{FrameIndex, Kind, ViewFrame};
use crate::kernel::{Cause, Place, Places};
use crate::view::{NodeId, View};

/// The root's label.
pub const ROOT: u32 = 0;

/// The kind of code in a box, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BoxKind {
    /// All samples.
    Root,
    /// A thread or a process.
    Group,
    /// Code of the program's own file.
    Program,
    /// A call that the compiler inlined into its caller.
    Inlined,
    /// Code of a shared library.
    Library,
    /// Code in anonymous memory.
    Jit,
    /// Kernel code for a system call, or for none of the causes below.
    Kernel,
    /// Kernel code for a page fault outside system calls.
    Fault,
    /// Kernel code for the start or end of a process: fork, exec, exit.
    Process,
    /// Kernel code for an interrupt.
    Interrupt,
    /// Not code: the reason why frames are missing.
    Missing,
}

/// The label of a box.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label<'p> {
    /// Function name; `file+address` if no symbol is known; for missing frames the reason in brackets.
    pub name: Cow<'p, str>,
    /// Kind of box.
    pub kind: BoxKind,
    /// Path of the file that the code is in, empty if there is none.
    pub dso: &'p str,
    /// Source file, empty if not known.
    pub file: &'p str,
}

/// The labels of a view's frames and threads.
pub struct Labels<'p> {
    labels: Vec<Label<'p>>,
    /// Per node of the view.
    nodes: Vec<u32>,
    /// Empty without grouping.
    threads: Vec<u32>,
}

impl<'p> Labels<'p> {
    pub fn new(view: &View<'p>, grouping: Grouping) -> Self {
        let profile = view.profile();
        let root = Label { name: "all".into(), kind: BoxKind::Root, dso: "", file: "" };
        let mut interner = Interner { labels: vec![root], known: HashMap::new() };
        let programs: HashSet<&str> =
            profile.processes.rows().iter().map(|process| profile.strings.get(process.exe)).collect();
        let kinds: Vec<BoxKind> =
            view.frames().map(|(_, frame)| kind_of(profile, frame, &programs)).collect();
        let places = Places::new(view);
        // Most nodes share a frame and kind with another node.
        let mut known: HashMap<(FrameIndex, BoxKind), u32> = HashMap::new();
        let nodes = (0..view.node_count())
            .map(|index| {
                let id = NodeId::from_index(index);
                let index = view.node(id).frame;
                let kind = match kinds[index.0 as usize] {
                    BoxKind::Kernel => kind_of_kernel(places.of(id)),
                    kind => kind,
                };
                let frame = view.frame(index);
                let add = || interner.add(frame.name.clone(), kind, frame.dso_path, frame.file);
                *known.entry((index, kind)).or_insert_with(add)
            })
            .collect();
        let threads = match grouping {
            Grouping::None => Vec::new(),
            _ => {
                let threads = profile.threads.rows().iter();
                threads
                    .map(|thread| {
                        interner.add(group_name(profile, thread, grouping).into(), BoxKind::Group, "", "")
                    })
                    .collect()
            }
        };
        Self { labels: interner.labels, nodes, threads }
    }

    pub fn get(&self, label: u32) -> &Label<'p> {
        &self.labels[label as usize]
    }

    pub fn of_node(&self, node: NodeId) -> u32 {
        self.nodes[node.index()]
    }

    /// Returns the label of the thread's group, if there are groups.
    pub fn of_thread(&self, thread: ThreadId) -> Option<u32> {
        self.threads.get(thread.index()).copied()
    }

    /// Returns the frame's line if it is in the label's file (inlined code may come from several), otherwise 0.
    pub fn line_of(&self, frame: &ViewFrame<'_>, label: u32) -> u32 {
        if frame.file == self.labels[label as usize].file { frame.line } else { 0 }
    }

    /// As [`sorted`], of the labels of frames and threads.
    pub fn sorted(self, used: impl Iterator<Item = u32>) -> (Vec<Label<'p>>, Vec<u32>) {
        sorted(&self.labels, used)
    }
}

/// Returns the labels in use, sorted by name with the root first, and the new number of each.
pub fn sorted<'p>(labels: &[Label<'p>], used: impl Iterator<Item = u32>) -> (Vec<Label<'p>>, Vec<u32>) {
    let mut order: Vec<u32> = used.collect();
    order.sort_unstable();
    order.dedup();
    order.sort_by_key(|&i| (i != ROOT, &labels[i as usize]));
    let mut ranks = vec![0; labels.len()];
    for (rank, &i) in order.iter().enumerate() {
        ranks[i as usize] = rank as u32;
    }
    (order.into_iter().map(|i| labels[i as usize].clone()).collect(), ranks)
}

struct Interner<'p> {
    labels: Vec<Label<'p>>,
    known: HashMap<(Cow<'p, str>, BoxKind, &'p str), u32>,
}

impl<'p> Interner<'p> {
    /// Adds a label, or returns the equal one. The source file does not distinguish labels; the first known one is kept.
    fn add(&mut self, name: Cow<'p, str>, kind: BoxKind, dso: &'p str, file: &'p str) -> u32 {
        let next = self.labels.len() as u32;
        let index = *self.known.entry((name.clone(), kind, dso)).or_insert(next);
        if index == next {
            self.labels.push(Label { name, kind, dso, file });
        }
        let label = &mut self.labels[index as usize];
        if label.file.is_empty() {
            label.file = file;
        }
        index
    }
}

fn kind_of(profile: &Profile, frame: &ViewFrame<'_>, programs: &HashSet<&str>) -> BoxKind {
    match frame.kind {
        Kind::Marker => BoxKind::Missing,
        Kind::Kernel => BoxKind::Kernel,
        Kind::User if frame.inlined => BoxKind::Inlined,
        Kind::User => match frame.dso.map(|dso| profile.dsos[dso].kind) {
            Some(DsoKind::File) => {
                // Recordings of other tools do not name the executable; but a library can be recognized by its file name.
                let is_library = frame.dso_name().contains(".so");
                if programs.contains(frame.dso_path) || !is_library {
                    BoxKind::Program
                } else {
                    BoxKind::Library
                }
            }
            Some(DsoKind::Script) => BoxKind::Program,
            Some(DsoKind::Vdso | DsoKind::Kernel | DsoKind::KernelModule) => BoxKind::Library,
            Some(DsoKind::Anonymous { .. }) | None => BoxKind::Jit,
        },
    }
}

/// Returns the kind of box for what the kernel was doing. Its entry code serves no particular cause.
fn kind_of_kernel(place: &Place<'_>) -> BoxKind {
    match place.cause(None) {
        Cause::Fault => BoxKind::Fault,
        Cause::Fork | Cause::Exec | Cause::Exit => BoxKind::Process,
        Cause::Interrupt => BoxKind::Interrupt,
        Cause::User | Cause::Call | Cause::Thread | Cause::Entry | Cause::Idle | Cause::Other => {
            BoxKind::Kernel
        }
    }
}

fn group_name(profile: &Profile, thread: &Thread, grouping: Grouping) -> String {
    let comm = profile.strings.get(thread.comm);
    let process = &profile.processes[thread.process];
    match grouping {
        Grouping::None | Grouping::Comm => comm.to_owned(),
        Grouping::Thread => format!("{comm} ({})", thread.tid),
        Grouping::Process => {
            let exe = profile.strings.get(process.exe).rsplit('/').next().unwrap_or_default();
            format!("{} ({})", if exe.is_empty() { comm } else { exe }, process.pid)
        }
    }
}
