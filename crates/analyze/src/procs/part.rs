//! What the kernel does for processes to begin and end, told from the functions in a sample's kernel stack.
//!
//! The table here is the one place that knows kernel functions by name: those of Linux 5.15 to 6.18 on x86_64 and
//! arm64. The outermost function that the table knows decides, so that a page fault inside an exec is exec's, and the
//! old memory that an exec frees is not an exit's.

use std::collections::HashMap;

use crate::frame::{Kind, ViewFrame};
use crate::view::{NodeId, View};

/// What a sample's time went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Code of the program, its libraries and loader.
    User,
    /// Making a process or thread, on both sides: the parent's call and the child's first steps.
    Fork,
    /// Replacing a program, freeing the old one's memory included.
    Exec,
    /// Page faults.
    Fault,
    /// The end of a process: freeing its memory, closing its files.
    Exit,
    /// Everything else in the kernel: other system calls, interrupts, scheduling.
    Kernel,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 6] = [Part::User, Part::Fork, Part::Exec, Part::Fault, Part::Exit, Part::Kernel];

    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Part::User => "user",
            Part::Fork => "fork",
            Part::Exec => "exec",
            Part::Fault => "fault",
            Part::Exit => "exit",
            Part::Kernel => "kernel",
        }
    }
}

/// What stands before a system call's name in the functions that implement it.
const SYSCALL: [&str; 8] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__ia32_compat_sys_",
    "__arm64_sys_",
    "__arm64_compat_sys_",
    "__se_sys_",
    "__do_sys_",
    "ksys_",
];

/// System calls that are a part as a whole.
const SYSCALLS: [(&str, Part); 8] = [
    ("clone", Part::Fork),
    ("clone3", Part::Fork),
    ("fork", Part::Fork),
    ("vfork", Part::Fork),
    ("execve", Part::Exec),
    ("execveat", Part::Exec),
    ("exit", Part::Exit),
    ("exit_group", Part::Exit),
];

/// Other functions that only run as a part: system calls that were inlined, and what is reached without one.
const FUNCTIONS: [(&str, Part); 30] = [
    // kernel/fork.c. `schedule_tail` is where a child begins (`ret_from_fork` is also below every kernel thread).
    ("kernel_clone", Part::Fork),
    ("_do_fork", Part::Fork),
    ("copy_process", Part::Fork),
    ("schedule_tail", Part::Fork),
    // fs/exec.c, fs/binfmt_elf.c
    ("do_execveat_common", Part::Exec),
    ("kernel_execve", Part::Exec),
    ("bprm_execve", Part::Exec),
    ("exec_binprm", Part::Exec),
    ("search_binary_handler", Part::Exec),
    ("load_elf_binary", Part::Exec),
    ("load_script", Part::Exec),
    ("begin_new_exec", Part::Exec),
    // arch/x86/mm/fault.c, arch/x86/entry
    ("asm_exc_page_fault", Part::Fault),
    ("exc_page_fault", Part::Fault),
    ("do_user_addr_fault", Part::Fault),
    ("do_kern_addr_fault", Part::Fault),
    // arch/arm64/kernel/entry-common.c, arch/arm64/mm/fault.c
    ("el0_da", Part::Fault),
    ("el0_ia", Part::Fault),
    ("el1_abort", Part::Fault),
    ("do_mem_abort", Part::Fault),
    ("do_translation_fault", Part::Fault),
    ("do_page_fault", Part::Fault),
    // mm/memory.c
    ("handle_mm_fault", Part::Fault),
    ("__handle_mm_fault", Part::Fault),
    // kernel/exit.c
    ("do_exit", Part::Exit),
    ("do_group_exit", Part::Exit),
    ("make_task_dead", Part::Exit),
    ("exit_notify", Part::Exit),
    ("exit_mm", Part::Exit),
    ("exit_files", Part::Exit),
];

/// Something about a sample that cuts across its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    /// Copies the parent's page tables: no part of a vfork or posix_spawn.
    pub(crate) const COPYING: Mark = Mark(1);
    /// Before the child is there: the sample belongs to a child whose beginning is yet to come.
    pub(crate) const MAKING: Mark = Mark(2);
    /// Copies a page that was shared since a fork, because it is written to.
    pub(crate) const UNSHARING: Mark = Mark(4);
    /// Waits for children.
    pub(crate) const WAITING: Mark = Mark(8);
}

/// Functions that set a mark.
const MARKS: [(&str, Mark); 15] = [
    ("dup_mm", Mark::COPYING),
    ("dup_mmap", Mark::COPYING),
    ("copy_mm", Mark::COPYING),
    ("copy_page_range", Mark::COPYING),
    ("copy_pte_range", Mark::COPYING),
    ("anon_vma_fork", Mark::COPYING),
    ("copy_process", Mark::MAKING),
    ("do_wp_page", Mark::UNSHARING),
    ("wp_page_copy", Mark::UNSHARING),
    ("hugetlb_wp", Mark::UNSHARING),
    ("do_huge_pmd_wp_page", Mark::UNSHARING),
    ("do_wait", Mark::WAITING),
    ("__do_wait", Mark::WAITING),
    ("kernel_wait4", Mark::WAITING),
    ("kernel_waitid", Mark::WAITING),
];

/// What a node of the tree of stacks says about samples in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The part.
    pub(crate) part: Part,
    /// The innermost frame that is not the kernel's.
    pub(crate) user: Option<NodeId>,
    decided: bool,
    marks: u8,
}

impl Place {
    /// Whether a function that sets `mark` is on the stack.
    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.marks & mark.0 != 0
    }
}

/// The places of all nodes, and whether any kernel function has a name.
pub(crate) struct Places {
    places: Vec<Place>,
    /// Frames of the kernel are there, but none has a name: what they are for can't be told.
    pub(crate) nameless: bool,
}

impl Places {
    pub(crate) fn new(view: &View<'_>) -> Self {
        let names = Names::default();
        let known: Vec<(Option<Part>, u8)> = view.frames().map(|(_, frame)| names.of(frame)).collect();
        let mut kernel = view.frames().filter(|(_, frame)| frame.kind == Kind::Kernel).peekable();
        let nameless = kernel.peek().is_some() && !kernel.any(|(_, frame)| frame.named);
        let mut places: Vec<Place> = Vec::with_capacity(view.node_count());
        for index in 0..view.node_count() {
            let id = NodeId::from_index(index);
            let node = view.node(id);
            let place = match view.frame(node.frame).kind {
                Kind::User | Kind::Marker => {
                    Place { part: Part::User, user: Some(id), decided: false, marks: 0 }
                }
                Kind::Kernel => {
                    let below = node.caller.map(|caller| places[caller.index()]);
                    let (part, marks) = known[node.frame.0 as usize];
                    let decided = below.filter(|below| below.decided).map(|below| below.part).or(part);
                    Place {
                        part: decided.unwrap_or(Part::Kernel),
                        user: below.and_then(|below| below.user),
                        decided: decided.is_some(),
                        marks: marks | below.map_or(0, |below| below.marks),
                    }
                }
            };
            places.push(place);
        }
        Places { places, nameless }
    }

    pub(crate) fn of(&self, node: NodeId) -> Place {
        self.places[node.index()]
    }
}

/// The tables above, to be looked up in.
struct Names {
    syscalls: HashMap<&'static str, Part>,
    functions: HashMap<&'static str, Part>,
    marks: HashMap<&'static str, Mark>,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            syscalls: SYSCALLS.into_iter().collect(),
            functions: FUNCTIONS.into_iter().collect(),
            marks: MARKS.into_iter().collect(),
        }
    }
}

impl Names {
    fn of(&self, frame: &ViewFrame<'_>) -> (Option<Part>, u8) {
        if frame.kind != Kind::Kernel {
            return (None, 0);
        }
        // Compilers name the pieces and variants of a function `f.isra.0`, `f.cold`, `f.llvm.123`.
        let name = frame.name.split('.').next().unwrap_or_default();
        let syscall = SYSCALL.iter().find_map(|prefix| name.strip_prefix(prefix));
        let part = match syscall {
            Some(syscall) => self.syscalls.get(syscall),
            None => self.functions.get(name),
        };
        (part.copied(), self.marks.get(name).map_or(0, |mark| mark.0))
    }
}
