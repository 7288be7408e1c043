//! CPU time by cause, from handwritten stacks as kernels of both architectures have them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed unwrap is a failed test")]

use plumb_analyze::{Cause, Filter, KernelTime, View};
use plumb_fixtures::Made;
use plumb_profile::{Profile, Scope};

const MS: u64 = 1_000_000;
const ENTRY: &str = "entry_SYSCALL_64_after_hwframe@k;do_syscall_64@k";

fn name_of(number: u32) -> Option<&'static str> {
    [(0, "read"), (39, "getpid"), (56, "clone"), (59, "execve"), (231, "exit_group")]
        .into_iter()
        .find_map(|(known, name)| (known == number).then_some(name))
}

fn of(profile: &Profile) -> KernelTime {
    let filter = Filter::default();
    KernelTime::new(&View::new(profile, &filter), &filter, name_of)
}

/// Returns the row of a single sample, and its kind.
fn row(stack: &str, syscall: Option<u32>) -> (String, &'static str) {
    let mut made = Made::new();
    made.syscall(syscall).sample("x/1", stack, MS);
    let time = of(&made.profile);
    let [row] = &time.rows[..] else { panic!("{stack}: {:?}", time.rows) };
    assert_eq!(row.cost.weight, MS);
    (row.name.clone(), row.kinds.first().map_or("", |&(kind, _)| kind))
}

#[test]
fn stacks_alone_tell_what_the_kernel_did() {
    let cases = [
        ("main@x", "user", ""),
        ("!", "user", ""),
        ("main@x;ENTRY;__x64_sys_getppid@k;__task_pid_nr_ns@k", "getppid", ""),
        ("main@x;el0_svc@k;do_el0_svc@k;__arm64_sys_getdents64@k;iterate_dir@k", "getdents64", ""),
        ("main@x;ENTRY;ksys_mmap_pgoff@k;vm_mmap_pgoff@k", "mmap", ""),
        ("main@x;ENTRY;x64_sys_call@k;__do_sys_newfstat@k", "fstat", ""),
        ("main@x;entry_SYSCALL_64@k", "syscall-entry", ""),
        ("main@x;ENTRY;syscall_exit_to_user_mode@k", "syscall-entry", ""),
        // A fault inside a call belongs to the call; outside of one it is a cause of its own.
        ("main@x;ENTRY;ksys_read@k;copy_to_user@k;asm_exc_page_fault@k", "read", ""),
        ("main@x;asm_exc_page_fault@k;handle_mm_fault@k;do_anonymous_page@k", "page-fault", "minor"),
        ("main@x;asm_exc_page_fault@k;handle_mm_fault@k;do_wp_page@k", "page-fault", "copy-on-write"),
        ("main@x;el0_da@k;do_page_fault@k;do_fault@k;do_cow_fault@k", "page-fault", "copy-on-write"),
        ("main@x;asm_exc_page_fault@k;filemap_fault@k;page_cache_sync_ra@k", "page-fault", "major"),
        ("main@x;ENTRY;__x64_sys_clone@k;kernel_clone@k;copy_process@k", "fork", ""),
        ("ret_from_fork_asm@k;ret_from_fork@k;schedule_tail@k", "fork", ""),
        ("main@x;ENTRY;do_execveat_common.isra.0@k;load_elf_binary@k;asm_exc_page_fault@k", "exec", ""),
        ("main@x;ENTRY;__x64_sys_exit_group@k;do_exit@k;exit_mmap@k", "exit", ""),
        (
            "main@x;asm_sysvec_apic_timer_interrupt@k;sysvec_apic_timer_interrupt@k;handle_softirqs@k",
            "irq",
            "softirq",
        ),
        ("main@x;asm_common_interrupt@k;common_interrupt@k;handle_edge_irq@k", "irq", "hard"),
        ("main@x;el0t_64_irq@k;el0_interrupt@k;gic_handle_irq@k", "irq", "hard"),
        // An interrupt is a cause of its own wherever it arrives, until it is over.
        (
            "main@x;ENTRY;ksys_read@k;asm_common_interrupt@k;irq_exit_rcu@k;handle_softirqs@k",
            "irq",
            "softirq",
        ),
        ("main@x;asm_exc_page_fault@k;asm_sysvec_call_function@k", "irq", "hard"),
        (
            "main@x;asm_sysvec_reschedule_ipi@k;irqentry_exit_to_user_mode@k;exit_to_user_mode_loop@k;schedule@k",
            "other",
            "",
        ),
        (
            "main@x;asm_common_interrupt@k;irqentry_exit_to_user_mode@k;get_signal@k;do_group_exit@k",
            "exit",
            "",
        ),
        // Softirqs that a call runs directly belong to the call; those in their own thread do not.
        ("main@x;ENTRY;__x64_sys_sendto@k;__local_bh_enable_ip@k;do_softirq@k;net_rx_action@k", "sendto", ""),
        ("ret_from_fork@k;kthread@k;smpboot_thread_fn@k;run_ksoftirqd@k;handle_softirqs@k", "irq", "softirq"),
        ("ret_from_fork@k;kthread@k;worker_thread@k;process_one_work@k", "kernel-thread", ""),
        ("main@x;asm_exc_int3@k;do_int3@k", "other", ""),
        ("cpu_startup_entry@k;do_idle@k;cpuidle_idle_call@k", "idle", ""),
        ("__x64_sys_read@x", "user", ""),
    ];
    for (stack, name, kind) in cases {
        let found = row(&stack.replace("ENTRY", ENTRY), None);
        assert_eq!((found.0.as_str(), found.1), (name, kind), "{stack}");
    }
}

#[test]
fn a_recorded_number_tells_the_call_where_functions_do_not() {
    let cases = [
        ("main@x;entry_SYSCALL_64@k", 39, "getpid"),
        ("main@x;ENTRY;syscall_exit_to_user_mode@k;exit_to_user_mode_loop@k;schedule@k", 0, "read"),
        ("main@x;0x1234@k", 39, "getpid"),
        ("main@x;ENTRY", 999, "syscall_999"),
        ("main@x;ENTRY", 59, "exec"),
        ("ret_from_fork@k;syscall_exit_to_user_mode@k", 56, "fork"),
        ("main@x;ENTRY", 231, "exit"),
        // A signal ends the process while it waits.
        ("main@x;ENTRY;exit_to_user_mode_loop@k;get_signal@k;do_group_exit@k;exit_mmap@k", 0, "exit"),
        ("main@x;ENTRY;ksys_read@k;asm_common_interrupt@k;handle_softirqs@k", 0, "irq"),
    ];
    for (stack, number, name) in cases {
        assert_eq!(row(&stack.replace("ENTRY", ENTRY), Some(number)).0, name, "{stack}");
    }
}

#[test]
fn the_table_is_closed_and_says_how_far_it_is_off() {
    let mut made = Made::new();
    let read = format!("main@x;read@libc;{ENTRY};ksys_read@k");
    made.sample("x/1", "main@x", 50 * MS);
    made.sample("x/1", &read, 20 * MS);
    made.syscall(Some(0)).sample("x/1", &format!("{read};vfs_read@k"), 10 * MS);
    made.syscall(None).sample("x/1", "main@x;touch@x;asm_exc_page_fault@k", 15 * MS);
    made.sample("kworker/9", "ret_from_fork@k;kthread@k", 5 * MS);
    let mut profile = made.profile;
    profile.meta.target_cpu_ns = Some(125 * MS);
    let time = of(&profile);
    let rows: Vec<(&str, u64, u64)> =
        time.rows.iter().map(|row| (&*row.name, row.cost.weight / MS, row.cost.samples)).collect();
    let expected = [("user", 50, 1), ("read", 30, 2), ("page-fault", 15, 1), ("kernel-thread", 5, 1)];
    assert_eq!(rows, expected);
    assert_eq!((time.whole.weight, time.kernel.weight), (100 * MS, 50 * MS));
    assert_eq!(time.off_percent(), Some(-20.0));
    // Both samples of read were called from the same place.
    assert_eq!(time.rows[1].stacks.len(), 1);
    let view = View::new(&profile, &Filter::default());
    let leaf = |row: usize| view.stack(time.rows[row].stacks[0].0).next().unwrap().name.to_string();
    assert_eq!((leaf(1), leaf(2), leaf(3)), ("read".into(), "touch".into(), "kthread".into()));
}

#[test]
fn how_long_the_machine_idled_comes_from_its_account() {
    let mut made = Made::new();
    made.sample("x/1", "main@x", 300 * MS);
    let mut profile = made.profile;
    profile.meta.target_cpu_ns = Some(300 * MS);
    (profile.meta.cpus, profile.meta.duration_ns, profile.meta.scope) = (2, 500 * MS, Scope::System);
    let time = of(&profile);
    assert_eq!((time.rows[0].cause, time.rows[0].cost.weight / MS), (Cause::Idle, 700));
    assert_eq!(time.whole.weight, 300 * MS, "no processor time");
    profile.meta.scope = Scope::Cgroup;
    assert_eq!(of(&profile).rows.len(), 1);
}

#[test]
fn only_a_clock_is_held_against_the_account() {
    let mut made = Made::new();
    made.event("page-faults", "page-faults").sample("x/1", "main@x", 7);
    let mut profile = made.profile;
    profile.meta.target_cpu_ns = Some(1);
    let filter = Filter { event: Some(plumb_profile::Id::from_index(1)), ..Filter::default() };
    let time = KernelTime::new(&View::new(&profile, &filter), &filter, name_of);
    assert_eq!((time.is_time, time.off_percent(), time.whole.weight), (false, None, 7));
}
