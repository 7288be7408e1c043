//! Tests of the thresholds that rules share, and of the state that they keep. The tests of `plumb kernel --advice`
//! run each rule on a program with the pattern and on one without.

use super::*;

const SECOND: f64 = 1e9;

/// Returns the basis of one second, in which calls took the given milliseconds of CPU time, out of 500 in all.
fn basis(cpu_ms: &[(&str, f64)]) -> Basis {
    Basis {
        span_ns: SECOND,
        cpu_ns: 5e8,
        cpu_of: cpu_ms.iter().map(|&(name, ms)| (name.to_owned(), ms * 1e6)).collect(),
        cpu_of_thread: [(1, 3e8)].into(),
        user_of_thread: [(1, 1e8)].into(),
        cpus: 2,
        costs: Costs { call: 100.0, byte: 0.02, fault: 1500.0, open: 1600.0 },
    }
}

fn call(name: &str, arguments: [u64; 6], result: i64, at_ns: u64) -> CallEvent<'_> {
    CallEvent { name, pid: 1, tid: 1, arguments, result, begin_ns: at_ns, wall_ns: 1000, path: None }
}

fn rules(watched: &Watched, basis: &Basis) -> Vec<&'static str> {
    watched.advise(basis).iter().map(|advice| advice.rule.name).collect()
}

#[test]
fn what_gains_little_is_not_said() {
    let mut watched = Watched::default();
    (0..500).for_each(|at| watched.call(&call("sched_yield", [0; 6], 0, at)));
    // 500 calls per second exceed the rule's threshold.
    assert_eq!(rules(&watched, &basis(&[("sched_yield", 9.9)])), [""; 0], "1.98% of processor time");
    assert_eq!(rules(&watched, &basis(&[("sched_yield", 10.1)])), ["yield-loop"]);
    let short = Basis { cpu_ns: 1e7, ..basis(&[("sched_yield", 9.0)]) };
    assert_eq!(rules(&watched, &short), [""; 0], "90% of processor time, but 9 ms");
}

/// Builds a second in which thread 1 sleeps 400 times for 2 ms. If `wakes`, it hands work to thread 2 after each
/// sleep. Thread 2 runs for 0.2 s.
fn sleeper(wakes: bool) -> (Watched, Basis) {
    let mut watched = Watched::default();
    for at in 0..400 {
        watched.call(&CallEvent { wall_ns: 2_000_000, ..call("clock_nanosleep", [0; 6], 0, at) });
        let woken = i64::from(wakes);
        watched.call(&call("futex", [0, 129, 1, 0, 0, 0], woken, at));
    }
    (watched, Basis { cpu_of_thread: [(1, 1e7), (2, 2e8)].into(), ..basis(&[("clock_nanosleep", 20.0)]) })
}

#[test]
fn a_thread_that_sleeps_holds_up_those_that_it_wakes_and_no_others() {
    let advice = |(watched, basis): (Watched, Basis)| {
        let advice = watched.advise(&basis);
        advice.iter().find(|one| one.rule.name == "polling-sleep").map(|one| one.wall_percent)
    };
    // Asleep for 0.8 s, of which the other thread ran for 0.2 s.
    let held_up = advice(sleeper(true)).expect("it sleeps 400 times a second");
    assert!((held_up - 60.0).abs() < 1e-6, "{held_up}");
    assert_eq!(advice(sleeper(false)), Some(0.0), "a ticker holds up nobody");
    let (watched, basis) = sleeper(true);
    let busy = Basis { cpu_of_thread: [(1, 1e7), (2, 9e8)].into(), ..basis };
    assert_eq!(advice((watched, busy)), Some(0.0), "what is waited for takes as long");
}

/// Simulates a second in which thread 1 sleeps 200 times for 4 ms and then wakes thread 2, which waited `waited_ns`
/// each time at the same address for a lock.
fn lock_sleeper(waited_ns: u64, expected: u64) -> Vec<(&'static str, f64)> {
    const LOCK: u64 = 0x1000;
    let mut watched = Watched::default();
    for at in 0..200 {
        watched.call(&CallEvent { wall_ns: 4_000_000, ..call("clock_nanosleep", [0; 6], 0, at) });
        watched.call(&call("futex", [LOCK, 129, 1, 0, 0, 0], 1, at));
        let wait = call("futex", [LOCK, 128, expected, 0, 0, 0], 0, at);
        watched.call(&CallEvent { tid: 2, wall_ns: waited_ns, ..wait });
    }
    let basis = Basis { cpu_of_thread: [(1, 1e7), (2, 1e7)].into(), ..basis(&[("clock_nanosleep", 20.0)]) };
    watched.advise(&basis).iter().map(|one| (one.rule.name, one.wall_percent)).collect()
}

#[test]
fn a_sleep_with_a_lock_is_no_polling() {
    let [(name, percent)] = lock_sleeper(3_900_000, 2)[..] else { panic!("one rule speaks") };
    assert_eq!(name, "sleep-under-lock");
    assert!((percent - 80.0).abs() < 1e-6, "{percent}");
    let names = |waited_ns, expected| -> Vec<&str> {
        lock_sleeper(waited_ns, expected).iter().map(|one| one.0).collect()
    };
    assert_eq!(names(20_000, 2), ["polling-sleep"], "the lock of a queue, taken after the sleep");
    assert_eq!(names(3_900_000, 77), ["polling-sleep"], "a condition variable");
}

/// Simulates a second in which thread 1 waits 200 times for a read of 4 ms and then wakes thread 2, which waited
/// `waited_ns` each time for a lock.
fn lock_reader(waited_ns: u64) -> Vec<&'static str> {
    const LOCK: u64 = 0x1000;
    let mut watched = Watched::default();
    for at in 0..200 {
        watched.call(&CallEvent { wall_ns: 4_000_000, ..call("read", [0; 6], 64, at) });
        watched.call(&call("futex", [LOCK, 129, 1, 0, 0, 0], 1, at));
        let wait = call("futex", [LOCK, 128, 2, 0, 0, 0], 0, at);
        watched.call(&CallEvent { tid: 2, wall_ns: waited_ns, ..wait });
    }
    let basis = Basis { cpu_of_thread: [(1, 1e7), (2, 1e7)].into(), ..basis(&[("read", 20.0)]) };
    let advice = watched.advise(&basis);
    let about_locks = advice.iter().filter(|one| one.rule.name.ends_with("-under-lock"));
    about_locks.map(|one| one.rule.name).collect()
}

#[test]
fn a_read_with_a_lock_is_told_from_one_before_it() {
    assert_eq!(lock_reader(3_900_000), ["io-under-lock"]);
    assert!(lock_reader(20_000).is_empty(), "what was read is handed over by a queue");
}

#[test]
fn short_timeouts_are_told_from_waits_that_find_something() {
    let of = |result: i64, descriptors: u64, wall_ns: u64| {
        let mut watched = Watched::default();
        for at in 0..900 {
            watched
                .call(&CallEvent { wall_ns, ..call("poll", [0x1000, descriptors, 1, 0, 0, 0], result, at) });
        }
        rules(&watched, &basis(&[("poll", 20.0)])).contains(&"short-timeouts")
    };
    assert!(of(0, 1, 1_060_000));
    assert!(!of(1, 1, 1_060_000), "there was something");
    assert!(!of(0, 0, 1_060_000), "that is a sleep");
    assert!(!of(0, 1, 500), "it did not wait");
    assert!(!of(0, 1, 50_000_000), "that is long");
}

#[test]
fn who_waits_for_a_lock_after_a_sleep_did_not_hold_it_before() {
    let mut watched = Watched::default();
    for at in 0..200 {
        watched.call(&CallEvent { wall_ns: 4_000_000, ..call("clock_nanosleep", [0; 6], 0, at) });
        let wait = call("futex", [0x1000, 128, 2, 0, 0, 0], 0, at);
        watched.call(&CallEvent { wall_ns: 900_000, ..wait });
        watched.call(&call("futex", [0x1000, 129, 1, 0, 0, 0], 1, at));
        watched.call(&CallEvent { tid: 2, wall_ns: 4_500_000, ..wait });
    }
    let basis = Basis { cpu_of_thread: [(1, 1e7), (2, 1e7)].into(), ..basis(&[("clock_nanosleep", 20.0)]) };
    assert_eq!(rules(&watched, &basis), ["polling-sleep"]);
}

#[test]
fn a_bound_is_no_more_than_there_is_and_the_largest_comes_first() {
    let mut watched = Watched::default();
    (0..20_000).for_each(|at| watched.call(&call("getpid", [0; 6], 1, at)));
    (0..500).for_each(|at| watched.call(&call("sched_yield", [0; 6], 0, at)));
    let advice = watched.advise(&basis(&[("sched_yield", 9e9), ("getpid", 50.0)]));
    let gains: Vec<(&str, f64)> = advice.iter().map(|one| (one.rule.name, one.cpu_percent)).collect();
    assert_eq!(gains, [("yield-loop", 100.0), ("repeated-identity", 10.0)]);
}

#[test]
fn a_heap_that_only_grows_is_no_churn() {
    let mut watched = Watched::default();
    let mut faults = 0;
    for step in 0..200_u64 {
        let end = 0x1000_0000 + step * 0x1_0000;
        watched.call(&call("brk", [end, 0, 0, 0, 0, 0], end as i64, step));
        for page in 0..16 {
            faults += 1;
            watched.fault(&FaultEvent { pid: 1, address: end - 0x1_0000 + page * 4096, time_ns: step });
        }
    }
    assert_eq!(faults, 3200);
    let basis = basis(&[("brk", 100.0), ("page-fault", 10.0)]);
    assert!(!rules(&watched, &basis).contains(&"brk-churn"));
    // The heap then repeatedly gives everything back and grows again.
    for step in 0..200_u64 {
        let end = 0x1000_0000 + (step % 2) * 0x10_0000;
        watched.call(&call("brk", [end, 0, 0, 0, 0, 0], end as i64, 1000 + step));
    }
    let advice = watched.advise(&basis);
    let churn = advice.iter().find(|one| one.rule.name == "brk-churn").expect("it shrinks 100 times");
    // Only the calls count, because no page faulted twice.
    assert_eq!(churn.cpu_ns, 1e8);
}

/// Builds a second with 2,000 writes of 40 bytes to a file, of which the first `slow` take 0.1 ms.
fn writer(slow: u64) -> Watched {
    let mut watched = Watched::default();
    for at in 0..2000 {
        let wall_ns = if at < slow { 100_000 } else { 3000 };
        watched.call(&CallEvent {
            wall_ns,
            path: Some("/journal"),
            ..call("write", [3, 0, 40, 0, 0, 0], 40, at)
        });
    }
    watched
}

#[test]
fn writes_that_wait_for_the_disk_are_told_from_those_that_sometimes_have_to() {
    let basis = basis(&[("write", 100.0)]);
    let advice = writer(2000).advise(&basis);
    let waits = advice.iter().find(|one| one.rule.name == "sync-write").expect("each waits");
    assert!((waits.wall_percent - 20.0).abs() < 1e-6, "{}", waits.wall_percent);
    assert!(!rules(&writer(1500), &basis).contains(&"sync-write"), "a quarter did not wait");
}

#[test]
fn a_pipe_is_read_in_crumbs_only_if_little_is_asked_for() {
    let reads = |bytes: i64| {
        let mut watched = Watched::default();
        for at in 0..20_000 {
            watched.call(&CallEvent { path: Some("pipe:[7]"), ..call("read", [0; 6], bytes, at) });
        }
        rules(&watched, &basis(&[("read", 200.0)])).contains(&"small-file-io")
    };
    assert!(reads(1));
    assert!(!reads(64), "what a writer wrote at a time");
}

#[test]
fn hostile_calls_do_no_harm() {
    let mut watched = Watched::default();
    let names: Vec<&str> = Watched::names().collect();
    let odd = [0, 1, 4, 4095, 1 << 31, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for (index, name) in names.iter().cycle().take(20_000).enumerate() {
        let of = |salt: usize| odd[(index / 7 + index * salt) % odd.len()];
        let event = CallEvent {
            pid: (index as u32).wrapping_mul(2_654_435_761),
            tid: index as u32,
            path: [None, Some(""), Some("/"), Some("/proc/1"), Some("a/../\u{fffd}")][index % 5],
            wall_ns: of(3),
            ..call(name, [of(1), of(2), of(3), of(4), of(5), of(6)], of(7) as i64, of(8))
        };
        watched.call(&event);
        watched.fault(&FaultEvent { pid: event.pid, address: of(2), time_ns: of(4) });
    }
    for basis in [basis(&[]), Basis { span_ns: 0.0, cpu_ns: 0.0, ..basis(&[("read", f64::MAX)]) }] {
        for advice in watched.advise(&basis) {
            assert!(advice.measured.iter().all(|one| !one.value.is_nan()), "{advice:?}");
        }
    }
}

#[test]
fn a_huge_page_that_was_not_to_be_had_now_and_then_is_no_habit() {
    const ANONYMOUS: u64 = 0x22;
    let start = 0x7f00_0000_0000_u64;
    // 64 MiB, mapped ten times, with one fault per 2 MiB, and each time 31 more faults in one of these.
    let mut watched = Watched::default();
    let map = |watched: &mut Watched, at| {
        watched.call(&call("mmap", [0, 64 << 20, 3, ANONYMOUS, u64::MAX, 0], start as i64, at));
    };
    let touch = |watched: &mut Watched, address, time_ns| {
        watched.fault(&FaultEvent { pid: 1, address, time_ns });
    };
    for round in 0..10 {
        map(&mut watched, round);
        (0..32).for_each(|page| touch(&mut watched, start + page * (2 << 20), round));
        (1..32).for_each(|page| touch(&mut watched, start + page * 4096, round));
    }
    let basis = basis(&[("page-fault", 100.0)]);
    assert!(!rules(&watched, &basis).contains(&"huge-pages"));
    // One mapping with small pages only.
    map(&mut watched, 10);
    (0..16384).for_each(|page| touch(&mut watched, start + page * 4096, 10));
    assert!(rules(&watched, &basis).contains(&"huge-pages"));
}

/// Simulates a second in which thread 1 copies `bytes` bytes 1,000 times, with 200 ms in the kernel and `user_ms` in
/// user code.
fn copies(bytes: i64, user_ms: f64) -> bool {
    let mut watched = Watched::default();
    for at in 0..1000 {
        watched.call(&call("read", [3, 0, 65536, 0, 0, 0], bytes, at));
        watched.call(&call("write", [4, 0, 65536, 0, 0, 0], bytes, at));
    }
    let user_of_thread = [(1, user_ms * 1e6), (2, 3e8)].into();
    let basis = Basis { user_of_thread, ..basis(&[("read", 100.0), ("write", 100.0)]) };
    rules(&watched, &basis).contains(&"copy-loop")
}

#[test]
fn what_looks_at_the_bytes_or_hands_on_a_few_is_no_copy() {
    assert!(copies(65536, 10.0));
    assert!(!copies(65536, 60.0), "a filter");
    assert!(!copies(1, 10.0), "messages");
}

/// Simulates a second in which two threads run for 0.45 s each and wait for 0.45 s each at a futex with this value.
fn contention(expected: u64, cpus: u32) -> Option<(f64, bool)> {
    let mut watched = Watched::default();
    for tid in [1, 2] {
        let wait = call("futex", [0x1000, 128, expected, 0, 0, 0], 0, 0);
        watched.call(&CallEvent { tid, wall_ns: 450_000_000, ..wait });
    }
    let basis = Basis { cpu_ns: 9e8, cpu_of_thread: [(1, 4.5e8), (2, 4.5e8)].into(), cpus, ..basis(&[]) };
    let advice = watched.advise(&basis);
    advice.first().map(|one| (one.wall_percent.round(), one.may_idle))
}

#[test]
fn a_wait_for_a_lock_gains_no_more_than_processors_are_free() {
    assert_eq!(contention(2, 4), Some((45.0, false)), "as long as one waits");
    assert_eq!(contention(2, 1), Some((10.0, false)), "no more than the processor is free");
    assert_eq!(contention(7, 4), Some((90.0, true)), "some other wait");
}

/// Simulates exchanges, each with `sends` sends and a wait of `wait_ms` milliseconds.
fn exchanges(sends: usize, wait_ms: u64, sets_no_delay: bool) -> Option<f64> {
    let mut watched = Watched::default();
    if sets_no_delay {
        watched.call(&call("setsockopt", [3, 6, 1, 0, 0, 0], 0, 0));
    }
    for at in 0..20 {
        (0..sends).for_each(|_| watched.call(&call("sendto", [3, 0, 4, 0, 0, 0], 4, at)));
        watched
            .call(&CallEvent { wall_ns: wait_ms * 1_000_000, ..call("recvfrom", [3, 0, 4, 0, 0, 0], 4, at) });
    }
    let advice = watched.advise(&basis(&[]));
    advice.iter().find(|one| one.rule.name == "delayed-ack").map(|one| one.wall_percent.round())
}

#[test]
fn requests_in_pieces_wait_for_acknowledgements() {
    assert_eq!(exchanges(2, 41, false), Some(82.0));
    assert_eq!(exchanges(1, 41, false), None, "in one piece");
    assert_eq!(exchanges(2, 60, false), None, "the other side's work");
    assert_eq!(exchanges(2, 41, true), None, "nothing is kept back");
}

/// A second of exchanges on 50 sockets of a server: what it reads and writes each time, and how many requests that is.
fn served(path: &'static str, reads: i64, writes: i64) -> bool {
    let mut watched = Watched::default();
    for at in 0..20_000 {
        let socket = [10 + at % 50, 0, 16384, 0, 0, 0];
        watched.call(&call("epoll_wait", [3, 0, 1000, 0, 0, 0], 1, at));
        let of =
            |name: &'static str, result| CallEvent { path: Some(path), ..call(name, socket, result, at) };
        watched.call(&of("read", reads));
        watched.call(&of("write", writes));
    }
    let basis = basis(&[("read", 150.0), ("write", 200.0), ("epoll_wait", 50.0)]);
    rules(&watched, &basis).contains(&"one-request-in-flight")
}

#[test]
fn one_request_in_flight_is_told_from_batches_streams_and_files() {
    assert!(served("TCP 127.0.0.1:6379 \u{2190} 127.0.0.1:40000", 45, 5), "sets of small values");
    assert!(served("UNIX", 30, 200), "gets of values");
    assert!(!served("TCP 127.0.0.1:6379", 16 * 45, 16 * 5), "16 requests together");
    assert!(!served("TCP 127.0.0.1:6379", 16_384, 5), "large transfers that are acknowledged");
    assert!(!served("/tmp/log", 30, 5), "a file");
    let mut stream = Watched::default();
    (0..50_000).for_each(|at| {
        let write = CallEvent { path: Some("TCP 127.0.0.1:80"), ..call("write", [4, 0, 5, 0, 0, 0], 5, at) };
        stream.call(&write);
    });
    assert!(
        !rules(&stream, &basis(&[("write", 200.0)])).contains(&"one-request-in-flight"),
        "nobody answers"
    );
}

#[test]
fn who_sleeps_in_poll_sleeps() {
    let polls = |descriptors: u64| {
        let mut watched = Watched::default();
        for at in 0..400 {
            let poll = call("poll", [0, descriptors, 1, 0, 0, 0], 0, at);
            watched.call(&CallEvent { wall_ns: 1_100_000, ..poll });
            watched.call(&call("futex", [0, 129, 1, 0, 0, 0], 1, at));
        }
        let basis = Basis { cpu_of_thread: [(1, 1e7)].into(), ..basis(&[]) };
        rules(&watched, &basis).contains(&"polling-sleep")
    };
    assert!(polls(0));
    assert!(!polls(1), "it waits for something");
}

#[test]
fn what_is_asked_often_is_told_on_a_busy_machine_too() {
    let mut watched = Watched::default();
    for at in 0..500 {
        watched.call(&CallEvent { path: Some("/etc/config"), ..call("newfstatat", [0; 6], 0, at) });
    }
    // 500 calls in a second in which the process had a fifth of a CPU.
    let basis = Basis { cpu_ns: 2e8, ..basis(&[("newfstatat", 50.0)]) };
    assert!(rules(&watched, &basis).contains(&"repeated-stat"));
}
