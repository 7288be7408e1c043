//! The reasons for which kernel functions run.
//!
//! The tables here are the only place with names of kernel functions: those of Linux 5.15 to 6.18 on x86_64 and
//! arm64. `place.rs` combines the meanings of a stack's functions.

use std::collections::HashMap;

use super::Cause;
use crate::frame::{Kind, ViewFrame};

/// Prefixes of the functions that implement system calls.
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

/// System calls whose implementing function has another name.
const ALIASES: [(&str, &str); 7] = [
    ("newstat", "stat"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("mmap_pgoff", "mmap"),
    ("umount", "umount2"),
];

/// System calls that are a cause of their own.
const SYSCALLS: [(&str, Cause); 8] = [
    ("clone", Cause::Fork),
    ("clone3", Cause::Fork),
    ("fork", Cause::Fork),
    ("vfork", Cause::Fork),
    ("execve", Cause::Exec),
    ("execveat", Cause::Exec),
    ("exit", Cause::Exit),
    ("exit_group", Cause::Exit),
];

/// Other functions that run for one cause only: inlined system calls, and functions reached without one.
const FUNCTIONS: [(&str, Cause); 36] = [
    // kernel/fork.c. A child starts in `schedule_tail` (`ret_from_fork` is also below every kernel thread).
    ("kernel_clone", Cause::Fork),
    ("_do_fork", Cause::Fork),
    ("copy_process", Cause::Fork),
    ("schedule_tail", Cause::Fork),
    // fs/exec.c, fs/binfmt_elf.c
    ("do_execveat_common", Cause::Exec),
    ("kernel_execve", Cause::Exec),
    ("bprm_execve", Cause::Exec),
    ("exec_binprm", Cause::Exec),
    ("search_binary_handler", Cause::Exec),
    ("load_elf_binary", Cause::Exec),
    ("load_script", Cause::Exec),
    ("begin_new_exec", Cause::Exec),
    // arch/x86/mm/fault.c, arch/x86/entry
    ("asm_exc_page_fault", Cause::Fault),
    ("exc_page_fault", Cause::Fault),
    ("do_user_addr_fault", Cause::Fault),
    ("do_kern_addr_fault", Cause::Fault),
    // arch/arm64/kernel/entry-common.c, arch/arm64/mm/fault.c
    ("el0_da", Cause::Fault),
    ("el0_ia", Cause::Fault),
    ("el1_abort", Cause::Fault),
    ("do_mem_abort", Cause::Fault),
    ("do_translation_fault", Cause::Fault),
    ("do_page_fault", Cause::Fault),
    // mm/memory.c
    ("handle_mm_fault", Cause::Fault),
    ("__handle_mm_fault", Cause::Fault),
    // kernel/exit.c
    ("do_exit", Cause::Exit),
    ("do_group_exit", Cause::Exit),
    ("make_task_dead", Cause::Exit),
    ("exit_notify", Cause::Exit),
    ("exit_mm", Cause::Exit),
    ("exit_files", Cause::Exit),
    // kernel/kthread.c, kernel/vhost_task.c, io_uring
    ("kthread", Cause::Thread),
    ("vhost_task_fn", Cause::Thread),
    ("io_wq_worker", Cause::Thread),
    ("io_sq_thread", Cause::Thread),
    // kernel/sched/idle.c
    ("cpu_startup_entry", Cause::Idle),
    ("do_idle", Cause::Idle),
];

/// Prefixes of interrupt entry functions (arch/x86/include/asm/idtentry.h).
const INTERRUPT: [&str; 2] = ["asm_sysvec_", "sysvec_"];

/// Functions below which an interrupt begins (`true`), or below which it is over while the kernel has not yet returned
/// to the interrupted code: it looks for another task to run, and for signals.
const INTERRUPTS: [(&str, bool); 20] = [
    // arch/x86/include/asm/idtentry.h
    ("asm_common_interrupt", true),
    ("asm_spurious_interrupt", true),
    ("common_interrupt", true),
    ("asm_exc_nmi", true),
    // arch/arm64/kernel/entry-common.c
    ("el0_interrupt", true),
    ("el1_interrupt", true),
    ("el0t_64_irq", true),
    ("el1h_64_irq", true),
    ("el0_irq", true),
    ("el1_irq", true),
    // kernel/softirq.c: deferred interrupt work in a thread of its own. Called from elsewhere (`do_softirq`) it belongs to the caller.
    ("run_ksoftirqd", true),
    // kernel/entry/common.c, kernel/sched/core.c
    ("irqentry_exit", false),
    ("irqentry_exit_cond_resched", false),
    ("raw_irqentry_exit_cond_resched", false),
    ("irqentry_exit_to_user_mode", false),
    ("exit_to_user_mode_loop", false),
    ("exit_to_user_mode_prepare", false),
    ("preempt_schedule_irq", false),
    // arch/arm64
    ("arm64_preempt_schedule_irq", false),
    ("do_notify_resume", false),
];

/// A property of a sample that is independent of its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u16);

impl Mark {
    /// Copies the parent's page tables: not part of a vfork or posix_spawn.
    pub(crate) const COPYING: Mark = Mark(1);
    /// The child does not exist yet: the sample belongs to the next child to start.
    pub(crate) const MAKING: Mark = Mark(2);
    /// Copies a page shared since a fork, because it is written to.
    pub(crate) const UNSHARING: Mark = Mark(4);
    /// Waits for child processes.
    pub(crate) const WAITING: Mark = Mark(8);
    /// A page fault, anywhere.
    pub(crate) const FAULTING: Mark = Mark(16);
    /// Copies a page of a privately mapped file, because it is written to.
    pub(crate) const COPYING_FILE: Mark = Mark(32);
    /// Reads data that is not in memory.
    pub(crate) const READING: Mark = Mark(64);
    /// Runs deferred interrupt work.
    pub(crate) const SOFTIRQ: Mark = Mark(128);
    /// System call entry or exit.
    pub(crate) const ENTRY: Mark = Mark(256);
}

/// Marks by function.
const MARKS: [(&str, Mark); 36] = [
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
    ("do_cow_fault", Mark::COPYING_FILE),
    // mm/filemap.c, mm/readahead.c, mm/swap_state.c, mm/page_io.c
    ("do_sync_mmap_readahead", Mark::READING),
    ("page_cache_sync_ra", Mark::READING),
    ("filemap_read_folio", Mark::READING),
    ("swapin_readahead", Mark::READING),
    ("swap_cluster_readahead", Mark::READING),
    ("swap_vma_readahead", Mark::READING),
    ("swap_read_folio", Mark::READING),
    ("swap_readpage", Mark::READING),
    // kernel/softirq.c
    ("handle_softirqs", Mark::SOFTIRQ),
    ("__do_softirq", Mark::SOFTIRQ),
    ("do_softirq", Mark::SOFTIRQ),
    // arch/x86/entry, kernel/entry/common.c
    ("entry_SYSCALL_64", Mark::ENTRY),
    ("entry_SYSCALL_64_after_hwframe", Mark::ENTRY),
    ("entry_SYSCALL_64_safe_stack", Mark::ENTRY),
    ("syscall_return_via_sysret", Mark::ENTRY),
    ("do_syscall_64", Mark::ENTRY),
    ("entry_INT80_compat", Mark::ENTRY),
    // arch/arm64/kernel/entry-common.c, arch/arm64/kernel/syscall.c
    ("el0t_64_sync", Mark::ENTRY),
    ("el0_svc", Mark::ENTRY),
    ("do_el0_svc", Mark::ENTRY),
];

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meaning<'v> {
    pub(super) cause: Option<Cause>,
    /// The system call that it implements, if that is not a cause of its own.
    pub(super) call: Option<&'v str>,
    /// An interrupt begins (`true`), or is over.
    pub(super) interrupt: Option<bool>,
    marks: u16,
}

/// A set of marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks(u16);

impl Marks {
    pub(super) fn has(self, mark: Mark) -> bool {
        self.0 & mark.0 != 0
    }

    /// Returns the union with those of one more frame.
    pub(super) fn and(self, meaning: &Meaning<'_>) -> Self {
        Marks(self.0 | meaning.marks)
    }
}

/// Returns the cause of a system call by name.
pub(super) fn cause_of_call(name: &str) -> Cause {
    SYSCALLS.iter().find(|(known, _)| *known == name).map_or(Cause::Call, |&(_, cause)| cause)
}

/// The tables above as maps.
pub(super) struct Functions {
    causes: HashMap<&'static str, Cause>,
    interrupts: HashMap<&'static str, bool>,
    marks: HashMap<&'static str, Mark>,
}

impl Default for Functions {
    fn default() -> Self {
        Functions {
            causes: FUNCTIONS.into_iter().collect(),
            interrupts: INTERRUPTS.into_iter().collect(),
            marks: MARKS.into_iter().collect(),
        }
    }
}

impl Functions {
    pub(super) fn of<'v>(&self, frame: &'v ViewFrame<'_>) -> Meaning<'v> {
        if frame.kind != Kind::Kernel {
            return Meaning::default();
        }
        // Compilers name parts and variants of a function `f.isra.0`, `f.cold`, `f.llvm.123`.
        let name = frame.name.split('.').next().unwrap_or_default();
        let marks = self.marks.get(name).map_or(0, |mark| mark.0);
        if let Some(call) = SYSCALL.iter().find_map(|prefix| name.strip_prefix(prefix)) {
            let call = ALIASES.iter().find(|(alias, _)| *alias == call).map_or(call, |&(_, name)| name);
            let cause = cause_of_call(call);
            let call = (cause == Cause::Call).then_some(call);
            return Meaning { cause: Some(cause), call, interrupt: None, marks };
        }
        let cause = self.causes.get(name).copied();
        let begins = INTERRUPT.iter().any(|prefix| name.starts_with(prefix)).then_some(true);
        let interrupt = self.interrupts.get(name).copied().or(begins);
        let fault = if cause == Some(Cause::Fault) { Mark::FAULTING.0 } else { 0 };
        Meaning { cause, call: None, interrupt, marks: marks | fault }
    }
}
