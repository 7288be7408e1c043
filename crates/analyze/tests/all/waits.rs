//! Waits are told apart by what is waited for, and idle ones are those of threads that wait for work: never one for a lock.

use plumb_analyze::{Filter, View, WaitKind, WaitSums};
use plumb_fixtures::Made;

/// The end of stacks that wait by a futex, and by epoll.
const FUTEX: &str = "__x64_sys_futex@k;futex_wait@k";
const EPOLL: &str = "epoll_wait@libc;__x64_sys_epoll_wait@k;do_epoll_wait@k";
const SECOND: u64 = 1_000_000_000;

/// A profile of the time that threads are blocked: who, in which stack, for how many milliseconds each time.
fn profile(waits: &[(&str, &str, &[u64])]) -> Made {
    let mut made = Made::new();
    made.event("off-cpu", "ns");
    for (who, stack, times) in waits {
        for ms in *times {
            made.sample(who, stack, ms * 1_000_000);
        }
    }
    made.profile.meta.duration_ns = 10 * SECOND;
    made
}

/// The kinds with the milliseconds of each, idle last.
fn kinds(made: &Made) -> Vec<(WaitKind, u64)> {
    let event = made.profile.samples.get(0).map(|sample| sample.event);
    let filter = Filter { event, ..Filter::default() };
    let mut view = View::new(&made.profile, &filter);
    let whole = view.part();
    let sums = WaitSums::set_idle_aside(&mut view, &filter, |_| None).expect("the event is off-cpu");
    let idle = sums.idle.part();
    assert_eq!(view.part().weight + idle.weight, whole.weight, "each wait is in one of both");
    assert_eq!(sums.whole(), view.whole());
    sums.kinds.iter().map(|&(kind, cost)| (kind, cost.weight / 1_000_000)).collect()
}

fn futex(functions: &str) -> String {
    format!("clone3@libc;start_thread@libc;{functions};{FUTEX}")
}

#[test]
fn workers_of_a_pool_are_idle_and_their_locks_are_not() {
    let waits = futex("work@app;pthread_cond_wait@libc");
    let locks = futex("work@app;handle@app;pthread_mutex_lock@libc;__lll_lock_wait@libc");
    let made = profile(&[
        ("w/1/2", &waits, &[900, 900, 900]),
        ("w/1/2", &locks, &[50, 50]),
        // A thread that never had work.
        ("w/1/3", &waits, &[10_000]),
    ]);
    assert_eq!(kinds(&made), [(WaitKind::Lock, 100), (WaitKind::Idle, 12_700)]);
}

#[test]
fn two_threads_that_hold_each_others_lock_are_never_idle() {
    for lock in [
        "pthread_mutex_lock@libc;__lll_lock_wait@libc",
        "pthread_rwlock_wrlock@libc",
        "sem_wait@libc",
        "f@app",
    ] {
        let stack = futex(&format!("work@app;{lock}"));
        let made = profile(&[("w/1/2", &stack, &[10_000]), ("w/1/3", &stack, &[10_000])]);
        assert_eq!(kinds(&made), [(WaitKind::Lock, 20_000)], "{lock}");
    }
}

#[test]
fn a_lock_that_is_waited_for_by_epoll_is_told_from_the_wait_for_a_client() {
    let client = format!("main@db;loop@db;read_command@db;wait_event@db;{EPOLL}");
    let row =
        format!("main@db;loop@db;run@db;execute@db;update@db;lock_row@db;sleep@db;wait_event@db;{EPOLL}");
    let checkpoint = format!("main@db;checkpointer@db;wait_event@db;{EPOLL}");
    let made = profile(&[
        ("db/10/10", &client, &[100, 100]),
        ("db/10/10", &row, &[400]),
        // This process waits for the row during the whole recording; the first one shows that the loop's own wait is elsewhere.
        ("db/11/11", &row, &[10_000]),
        ("db/12/12", &checkpoint, &[10_000]),
    ]);
    assert_eq!(kinds(&made), [(WaitKind::Lock, 10_400), (WaitKind::Idle, 10_200)], "lock_row says so");
    let other = row.replace("lock_row", "send_row");
    let made = profile(&[("db/10/10", &client, &[100, 100]), ("db/10/10", &other, &[400])]);
    assert_eq!(kinds(&made), [(WaitKind::Descriptors, 400), (WaitKind::Idle, 200)]);
}

#[test]
fn what_the_end_of_a_command_waits_for_is_not_idle() {
    let stack = format!("main@app;finish@app;pthread_cond_wait@libc;{FUTEX}");
    let mut made = profile(&[("app/7/7", &stack, &[100, 200])]);
    assert_eq!(kinds(&made), [(WaitKind::Idle, 300)], "a process that was met as it ran");
    made.profile.meta.command = vec!["app".into()];
    assert_eq!(kinds(&made), [(WaitKind::Lock, 300)]);
    let sleeps = "main@app;nap@app;clock_nanosleep@libc;__x64_sys_clock_nanosleep@k";
    assert_eq!(kinds(&profile(&[("app/7/7", sleeps, &[100, 100])])), [(WaitKind::Timer, 200)]);
    assert_eq!(kinds(&profile(&[("app/7/8", sleeps, &[100, 100])])), [(WaitKind::Idle, 200)], "a helper");
    assert_eq!(
        kinds(&profile(&[("app/7/8", sleeps, &[5, 5])])),
        [(WaitKind::Timer, 10)],
        "a part of its work"
    );
    let lock = futex("work@app;pthread_mutex_lock@libc");
    let both = profile(&[("app/7/8", sleeps, &[100, 100]), ("app/7/8", &lock, &[50])]);
    assert_eq!(
        kinds(&both),
        [(WaitKind::Timer, 200), (WaitKind::Lock, 50)],
        "it may hold what others wait for"
    );
}

#[test]
fn a_thread_that_never_woke_deep_in_its_work_is_not_idle() {
    let deep: Vec<String> = (0..15).map(|depth| format!("f{depth}@app")).collect();
    let stack = futex(&format!("{};pthread_cond_wait@libc", deep.join(";")));
    assert_eq!(kinds(&profile(&[("w/1/2", &stack, &[10_000])])), [(WaitKind::Lock, 10_000)]);
}

#[test]
fn kinds_are_told_by_the_kernels_functions() {
    let disk = "main@app;save@app;fsync@libc;__x64_sys_fsync@k;io_schedule@k";
    let child = "main@app;wait4@libc;__x64_sys_wait4@k;do_wait@k";
    let pipe = "main@app;read@libc;__x64_sys_read@k;anon_pipe_read@k";
    let fault = "main@app;touch@app;asm_exc_page_fault@k;io_schedule@k";
    let made = profile(&[
        ("a/1/1", disk, &[40]),
        ("a/1/1", child, &[30]),
        ("a/1/1", pipe, &[20]),
        ("a/1/1", fault, &[5]),
    ]);
    let wanted = [(WaitKind::Disk, 45), (WaitKind::Child, 30), (WaitKind::Network, 20)];
    assert_eq!(kinds(&made), wanted);
}
