//! Describes each wake-up of a process from its system calls. Pure.
//!
//! Waits are not work: a wake-up is a burst of other calls after a pause. Invariant: a sentence is derived only from calls that were traced, all of
//! them in the time that it describes.

use std::collections::BTreeMap;

use plumb_syscalls::middle;

use super::watch::{SeenCall, SeenCalls};

/// Calls that wait for an event.
const WAITS: [&str; 21] = [
    "nanosleep",
    "clock_nanosleep",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "futex",
    "futex_wait",
    "futex_waitv",
    "pause",
    "rt_sigtimedwait",
    "rt_sigsuspend",
    "wait4",
    "waitid",
    "io_getevents",
    "io_pgetevents",
    "io_uring_enter",
    "sched_yield",
];
/// A call that takes at least this many nanoseconds counts as a wait, whichever it is.
const WAITED_NS: u64 = 50_000_000;
/// Shortest pause between two wake-ups, in nanoseconds.
const QUIET_NS: u64 = 50_000_000;
/// Shortest pause between two wake-ups, as a part of the longest pause.
const QUIET: f64 = 0.25;
/// Shortest interval that is reported; a process with shorter ones is simply busy.
const LEAST_NS: u64 = 100_000_000;
/// Intervals are regular if at least the first share of them is within the second share (a tenth) of the median.
const REGULAR: (f64, f64) = (0.75, 0.1);
/// Most calls in a report, and the smallest share of the time of all calls that each must have.
const TOLD: (usize, f64) = (3, 0.1);
/// Most intervals reported for one trace.
const INTERVALS: usize = 8;
/// Calls with a buffer, and the argument that is its size.
const BUFFERS: [(&str, usize); 8] = [
    ("getdents64", 2),
    ("getdents", 2),
    ("read", 2),
    ("write", 2),
    ("pread64", 2),
    ("pwrite64", 2),
    ("recvfrom", 2),
    ("sendto", 2),
];
/// Calls that read a directory.
const DIRECTORIES: [&str; 2] = ["getdents64", "getdents"];
/// Buffer size of glibc's readdir, in bytes.
const READDIR: u64 = 32 << 10;

/// A wake-up, and the time since the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wake {
    /// Nanoseconds since 1970.
    pub time_unix_ns: u64,
    pub interval_ns: u64,
}

/// A recurring activity of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Habit {
    pub sentence: String,
    /// Total time of its calls.
    pub weight_ns: u64,
}

/// Describes traced calls: the wake-ups, if they are regular, and the activities.
pub(super) fn of(seen: &SeenCalls) -> (Vec<Wake>, Vec<Habit>) {
    let mut work: Vec<&SeenCall> = seen.calls.iter().filter(|call| !waits(call)).collect();
    work.sort_by_key(|call| call.begin_ns);
    let quiet_ns = quiet(seen, &work);
    let mut bursts: Vec<&[&SeenCall]> =
        work.chunk_by(|one, next| next.begin_ns.saturating_sub(one.end_ns) < quiet_ns).collect();
    // The first burst may have begun before the trace.
    if bursts
        .first()
        .and_then(|burst| burst.first())
        .is_some_and(|call| call.begin_ns < seen.begin_ns + quiet_ns)
    {
        bursts.remove(0);
    }
    let begins: Vec<u64> = bursts.iter().filter_map(|burst| Some(burst.first()?.begin_ns)).collect();
    let wakes = begins.windows(2).map(|pair| Wake {
        time_unix_ns: pair[1].saturating_add(seen.to_unix_ns),
        interval_ns: pair[1].saturating_sub(pair[0]),
    });
    let mut wakes: Vec<Wake> = wakes.collect();
    if !is_regular(&wakes) {
        let length_ns = seen.end_ns.saturating_sub(seen.begin_ns);
        return (Vec::new(), told(&work, |calls| rate(calls.len(), length_ns)));
    }
    wakes.truncate(INTERVALS);
    // The last burst may not have ended.
    let is_over = |burst: &[&SeenCall]| burst.last().is_some_and(|call| call.end_ns + quiet_ns < seen.end_ns);
    bursts.pop_if(|burst| !is_over(burst));
    let all: Vec<&SeenCall> = bursts.concat();
    let habits = told(&all, |calls| {
        // Both are in time order.
        let of_burst = |burst: &&[&SeenCall]| {
            let (Some(first), Some(last)) = (burst.first(), burst.last()) else { return 0 };
            let until = calls.partition_point(|call| call.begin_ns <= last.begin_ns);
            until - calls.partition_point(|call| call.begin_ns < first.begin_ns)
        };
        let count = middle(bursts.iter().map(of_burst).collect()).filter(|&count| count > 0)?;
        Some(format!("Each wake-up: {count}"))
    });
    (wakes, habits)
}

fn waits(call: &SeenCall) -> bool {
    WAITS.contains(&call.name) || call.is_late || call.end_ns.saturating_sub(call.begin_ns) >= WAITED_NS
}

/// Shortest pause that separates wake-ups in this trace.
fn quiet(seen: &SeenCalls, work: &[&SeenCall]) -> u64 {
    let pauses = work.windows(2).map(|pair| pair[1].begin_ns.saturating_sub(pair[0].end_ns));
    let longest = pauses.max().unwrap_or(seen.end_ns.saturating_sub(seen.begin_ns));
    QUIET_NS.max((longest as f64 * QUIET) as u64)
}

fn is_regular(wakes: &[Wake]) -> bool {
    let Some(period) = middle(wakes.iter().map(|wake| wake.interval_ns).collect()) else { return false };
    let near =
        wakes.iter().filter(|wake| wake.interval_ns.abs_diff(period) as f64 <= REGULAR.1 * period as f64);
    wakes.len() >= 2 && period >= LEAST_NS && near.count() as f64 >= REGULAR.0 * wakes.len() as f64
}

/// A rate with one significant digit, so that several traces of a process yield the same sentence.
fn rate(count: usize, length_ns: u64) -> Option<String> {
    let each_second = count as f64 * 1e9 / length_ns.max(1) as f64;
    if each_second < 1.0 {
        return None;
    }
    let unit = 10_f64.powf(each_second.log10().floor());
    Some(format!("Each second: about {}", (each_second / unit).round() * unit))
}

/// Describes the calls that take the most time. `count` phrases how many there are.
fn told(calls: &[&SeenCall], count: impl Fn(&[&SeenCall]) -> Option<String>) -> Vec<Habit> {
    let mut groups: BTreeMap<(&str, Option<String>), Vec<&SeenCall>> = BTreeMap::new();
    for &call in calls {
        groups.entry((call.name, call.path.as_deref().map(folded))).or_default().push(call);
    }
    let time = |calls: &[&SeenCall]| -> u64 {
        calls.iter().map(|call| call.end_ns.saturating_sub(call.begin_ns)).sum()
    };
    let all = time(calls);
    let mut groups: Vec<_> = groups.into_iter().map(|(key, calls)| (time(&calls), key, calls)).collect();
    groups.sort_by(|one, other| (other.0, &other.1).cmp(&(one.0, &one.1)));
    let is_told = |ns: u64| ns > 0 && ns as f64 >= TOLD.1 * all as f64;
    let groups = groups.into_iter().filter(|(ns, ..)| is_told(*ns)).take(TOLD.0);
    let habit = |(weight_ns, (name, path), calls): (u64, (&str, Option<String>), Vec<&SeenCall>)| {
        let mut sentence = format!("{} {name}", count(&calls)?);
        if let Some(path) = path {
            sentence.push_str(&format!(" of {path}"));
        }
        if let Some(buffer) = buffer(name, &calls) {
            sentence.push_str(&format!(", buffer {}", size(buffer)));
            sentence.extend(larger(name, buffer, &calls));
        }
        Some(Habit { sentence, weight_ns })
    };
    groups.filter_map(habit).collect()
}

/// Size of the buffer, if it is the same in all calls.
fn buffer(name: &str, calls: &[&SeenCall]) -> Option<u64> {
    let argument = BUFFERS.iter().find(|(call, _)| *call == name)?.1;
    let first = calls.first()?.args[argument];
    calls.iter().all(|call| call.args[argument] == first).then_some(first)
}

/// The savings of a buffer as large as glibc's when reading directories.
fn larger(name: &str, buffer: u64, calls: &[&SeenCall]) -> Option<String> {
    let values = || calls.iter().filter_map(|call| u64::try_from(call.value?).ok());
    // Each directory ends with a call that returns nothing.
    let directories = values().filter(|&value| value == 0).count() as u64;
    if !DIRECTORIES.contains(&name) || buffer >= READDIR || directories == 0 {
        return None;
    }
    let (calls, bytes) = (calls.len() as u64, values().sum::<u64>());
    let now = (calls + directories / 2) / directories;
    let then = (bytes / directories).div_ceil(READDIR) + 1;
    (then < now)
        .then(|| format!("; a directory takes {now}, with glibc's {} it would take {then}", size(READDIR)))
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// A path with its numeric components replaced.
fn folded(path: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> =
        path.split('/').map(|part| if is_number(part) { "<number>" } else { part }).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn call(name: &'static str, at_ms: f64, took_ms: f64, count: u64, value: i64) -> SeenCall {
        let begin_ns = (at_ms * MS as f64) as u64;
        let end_ns = begin_ns + (took_ms * MS as f64) as u64;
        let path = (name == "getdents64").then(|| "/proc".to_owned());
        SeenCall {
            name,
            args: [9, 1, count, 0, 0, 0],
            value: Some(value),
            begin_ns,
            end_ns,
            path,
            ..SeenCall::default()
        }
    }

    /// The trace in the article: a daemon that lists /proc each second, with the former buffer size of Go's os.ReadDir.
    fn daemon(seconds: u32) -> SeenCalls {
        let mut seen = SeenCalls {
            begin_ns: 500 * MS,
            end_ns: u64::from(seconds) * 1000 * MS + 500 * MS,
            ..SeenCalls::default()
        };
        for second in 1..=seconds {
            let at = f64::from(second) * 1000.0;
            seen.calls.push(call("nanosleep", at - 995.0, 994.0, 0, 0));
            for (after, took, value) in [(0.0, 0.335, 8184), (0.397, 0.093, 688), (0.665, 0.187, 0)] {
                seen.calls.push(call("getdents64", at + after, took, 8192, value));
            }
            seen.calls.push(call("close", at + 1.0, 0.002, 0, 0));
        }
        seen
    }

    #[test]
    fn a_daemon_that_reads_proc_each_second_is_told_with_its_buffer() {
        let (wakes, habits) = of(&daemon(4));
        let intervals: Vec<u64> = wakes.iter().map(|wake| wake.interval_ns / MS).collect();
        assert_eq!(intervals, [1000, 1000, 1000]);
        let sentences: Vec<&str> = habits.iter().map(|habit| &habit.sentence[..]).collect();
        let expected = "Each wake-up: 3 getdents64 of /proc, buffer 8 KiB; a directory takes 3, with glibc's 32 KiB it would take 2";
        assert_eq!(sentences, [expected]);
        assert_eq!(habits[0].weight_ns, 4 * 615_000);
        // A larger buffer would save nothing.
        let mut large = daemon(4);
        large.calls.iter_mut().for_each(|call| call.args[2] = 32768);
        assert_eq!(of(&large).1[0].sentence, "Each wake-up: 3 getdents64 of /proc, buffer 32 KiB");
    }

    #[test]
    fn a_preempted_burst_is_one_wake_up() {
        let mut seen = daemon(4);
        for call in seen.calls.iter_mut().filter(|call| call.value == Some(0) && call.name != "nanosleep") {
            call.begin_ns += 80 * MS;
            call.end_ns += 80 * MS;
        }
        assert_eq!(of(&seen).0.len(), 3);
        assert!(of(&seen).1[0].sentence.starts_with("Each wake-up: 3 getdents64"));
    }

    #[test]
    fn what_comes_irregularly_has_a_rate() {
        let mut seen = SeenCalls { end_ns: 4000 * MS, ..SeenCalls::default() };
        for at in 0..1000_u32 {
            seen.calls.push(call("write", f64::from(at) * 4.0, 0.1, u64::from(at) + 1, 1));
        }
        let (wakes, habits) = of(&seen);
        assert_eq!(wakes, []);
        // The buffer sizes differ, so none is reported.
        assert_eq!(habits[0].sentence, "Each second: about 300 write");
        assert_eq!(of(&SeenCalls::default()).1, []);
        // Wake-ups at irregular times.
        let mut seen = SeenCalls { end_ns: 4000 * MS, ..SeenCalls::default() };
        seen.calls.extend([500.0, 800.0, 2500.0, 2700.0].map(|at| call("read", at, 1.0, 4096, 100)));
        assert_eq!(of(&seen).0, []);
    }

    #[test]
    fn numbers_in_paths_are_folded() {
        assert_eq!(folded("/proc/123/stat"), "/proc/<number>/stat");
        assert_eq!(folded("/proc"), "/proc");
        assert_eq!(rate(1, 2_000_000_000), None);
        assert_eq!(rate(4567, 1_000_000_000).as_deref(), Some("Each second: about 5000"));
    }
}
