//! Bookkeeping of the sums that are read from the kernel: what is new in each reading. Pure.
//!
//! Sums of a running process stay in the kernel; the part that earlier windows reported is remembered here. Sums of a process that had ended before a
//! reading began are final: they are removed from the kernel once. Invariant: only processes with sums in the kernel are remembered.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use plumb_capture_bpf::{ProcessCall, ProcessSum};

/// Calls of one system call, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallSum {
    pub number: u32,
    pub calls: u64,
    pub cpu_ns: u64,
}

/// A process: its id and its start time.
type Process = (u32, u64);

fn process_of(key: &ProcessCall) -> Process {
    (key.pid, key.start_ns)
}

/// State of the sums in the kernel.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Processes that had sums at the last reading.
    processes: HashSet<Process>,
    /// The part of each sum that earlier windows reported.
    before: HashMap<ProcessCall, ProcessSum>,
    /// All calls in sums that are still there, as of the last reading, and the number of sums.
    calls: u64,
    kept: usize,
}

/// A reading in progress.
#[derive(Debug)]
pub(super) struct Reading {
    has_ended: HashSet<Process>,
    ends_window: bool,
    processes: HashSet<Process>,
    running: HashMap<Process, Vec<CallSum>>,
    ended: HashMap<Process, Vec<CallSum>>,
    to_forget: Vec<ProcessCall>,
    sums: usize,
    calls: u64,
    final_calls: u64,
}

/// Result of a reading.
#[derive(Debug, Default)]
pub(super) struct ClosedReading {
    /// Calls of running processes since the last window, by process id, if this reading ends a window.
    pub running: Vec<(u32, Vec<CallSum>)>,
    /// Calls of ended processes since the last window, by process id.
    pub ended: Vec<(u32, Vec<CallSum>)>,
    /// Processes seen for the first time.
    pub met: Vec<u32>,
    /// Calls since the last reading.
    pub new_calls: u64,
    /// Sums that stay in the kernel, and those that are new since the last reading.
    pub kept: usize,
    pub new_sums: usize,
}

impl Reading {
    /// `has_ended`: processes that had ended before the reading ([`Books::ended`]).
    pub fn begin(has_ended: HashSet<Process>, ends_window: bool) -> Self {
        let (processes, running, ended, to_forget) = Default::default();
        Self {
            has_ended,
            ends_window,
            processes,
            running,
            ended,
            to_forget,
            sums: 0,
            calls: 0,
            final_calls: 0,
        }
    }

    /// Keys of final sums, to be removed from the kernel.
    pub fn to_forget(&self) -> &[ProcessCall] {
        &self.to_forget
    }
}

impl Books {
    /// Processes of the last reading that have ended, including those whose id was reused since.
    pub fn ended(&self, is_there: impl Fn(u32) -> bool) -> HashSet<Process> {
        let mut last: HashMap<u32, u64> = HashMap::new();
        for &(pid, start) in &self.processes {
            let known = last.entry(pid).or_default();
            *known = start.max(*known);
        }
        last.retain(|&pid, _| is_there(pid));
        self.processes.iter().copied().filter(|(pid, start)| last.get(pid) != Some(start)).collect()
    }

    /// Ids of processes with sums in the kernel.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|&(pid, _)| pid)
    }

    /// Adds a sum to a reading.
    pub fn note(&mut self, reading: &mut Reading, key: ProcessCall, sum: ProcessSum) {
        let process = process_of(&key);
        let has_ended = reading.has_ended.contains(&process);
        reading.sums += 1;
        reading.calls += sum.calls;
        reading.processes.insert(process);
        if has_ended {
            reading.final_calls += sum.calls;
            reading.to_forget.push(key);
        } else if !reading.ends_window {
            return;
        }
        let before = self.before.insert(key, sum).unwrap_or_default();
        let new = CallSum {
            number: key.number,
            calls: sum.calls.saturating_sub(before.calls),
            cpu_ns: sum.cpu_ns.saturating_sub(before.cpu_ns),
        };
        if new.calls > 0 || new.cpu_ns > 0 {
            let of = if has_ended { &mut reading.ended } else { &mut reading.running };
            of.entry(process).or_default().push(new);
        }
    }

    /// Ends a reading. `forgotten`: the final sums were removed from the kernel.
    pub fn close(&mut self, reading: Reading, forgotten: bool) -> ClosedReading {
        let Reading { has_ended, processes, running, ended, to_forget, sums, calls, final_calls, .. } =
            reading;
        let new_calls = calls.saturating_sub(self.calls);
        let new_sums = sums.saturating_sub(self.kept);
        let met = processes.difference(&self.processes).map(|&(pid, _)| pid).collect();
        if forgotten {
            to_forget.iter().for_each(|key| _ = self.before.remove(key));
            self.processes = processes;
            self.processes.retain(|process| !has_ended.contains(process));
            self.calls = calls - final_calls;
            self.kept = sums - to_forget.len();
        } else {
            // The reading may be incomplete.
            self.processes.extend(processes);
            self.calls = self.calls.max(calls);
            self.kept = self.kept.max(sums);
        }
        let by_pid = |of: HashMap<Process, Vec<CallSum>>| {
            of.into_iter().map(|((pid, _), calls)| (pid, calls)).collect()
        };
        ClosedReading {
            running: by_pid(running),
            ended: by_pid(ended),
            met,
            new_calls,
            kept: self.kept,
            new_sums,
        }
    }
}

/// Longest and shortest pause between two readings.
const PACE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(50));
/// New sums may take one part in this many of the free room between two readings: sums of an ended process stay for two.
const PART: f64 = 8.0;

/// Schedule of the readings.
#[derive(Debug)]
pub(super) struct SweepPace {
    room: usize,
    last: Instant,
    pause: Duration,
}

impl SweepPace {
    /// `room`: capacity of the kernel's table, in sums.
    pub fn begin(room: usize) -> Self {
        Self { room, last: Instant::now(), pause: PACE.0 }
    }

    /// Time until the next reading.
    pub fn left(&self) -> Duration {
        self.pause.saturating_sub(self.last.elapsed())
    }

    /// Schedules the next reading after one that kept `kept` sums and found `new` ones.
    pub fn note(&mut self, kept: usize, new: usize) {
        self.pause = pause(self.last.elapsed(), self.room.saturating_sub(kept), new);
        self.last = Instant::now();
    }
}

/// Time until a [`PART`]th of the room is full, if sums continue to arrive at the last rate.
fn pause(elapsed: Duration, room: usize, new: usize) -> Duration {
    let share = room as f64 / PART / new.max(1) as f64;
    let seconds = (elapsed.as_secs_f64() * share).clamp(PACE.1.as_secs_f64(), PACE.0.as_secs_f64());
    Duration::from_secs_f64(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Kernel = HashMap<ProcessCall, ProcessSum>;

    fn key(pid: u32, start_ns: u64) -> ProcessCall {
        ProcessCall { number: 110, pid, start_ns }
    }

    fn call(kernel: &mut Kernel, key: ProcessCall, calls: u64) {
        let sum = kernel.entry(key).or_default();
        sum.calls += calls;
        sum.cpu_ns += 100 * calls;
    }

    fn read(books: &mut Books, kernel: &mut Kernel, there: &[u32], ends_window: bool) -> ClosedReading {
        let mut reading = Reading::begin(books.ended(|pid| there.contains(&pid)), ends_window);
        kernel.iter().for_each(|(&key, &sum)| books.note(&mut reading, key, sum));
        reading.to_forget().iter().for_each(|key| _ = kernel.remove(key));
        books.close(reading, true)
    }

    fn sums(of: &[(u32, Vec<CallSum>)]) -> Vec<(u32, u64)> {
        of.iter().map(|(pid, calls)| (*pid, calls.iter().map(|call| call.calls).sum())).collect()
    }

    #[test]
    fn each_call_is_given_out_once_and_nothing_stays_of_who_has_ended() {
        let (mut books, mut kernel) = (Books::default(), Kernel::default());
        call(&mut kernel, key(1, 5), 10);
        call(&mut kernel, key(2, 6), 7);
        let first = read(&mut books, &mut kernel, &[1, 2], true);
        let mut running = sums(&first.running);
        running.sort_unstable();
        assert_eq!((running, first.new_calls, first.met.len()), (vec![(1, 10), (2, 7)], 17, 2));
        // The second process ends; its last calls are in the next reading.
        call(&mut kernel, key(1, 5), 1);
        call(&mut kernel, key(2, 6), 2);
        let second = read(&mut books, &mut kernel, &[1], false);
        assert_eq!((sums(&second.running), sums(&second.ended), second.new_calls), (vec![], vec![(2, 2)], 3));
        assert!(second.met.is_empty());
        let third = read(&mut books, &mut kernel, &[1], true);
        assert_eq!((sums(&third.running), sums(&third.ended), third.new_calls), (vec![(1, 1)], vec![], 0));
        assert_eq!((third.kept, kernel.len(), books.before.len(), books.processes.len()), (1, 1, 1, 1));
    }

    #[test]
    fn a_process_that_ended_before_it_was_met_is_taken_at_the_next_reading() {
        let (mut books, mut kernel) = (Books::default(), Kernel::default());
        call(&mut kernel, key(3, 5), 4);
        let first = read(&mut books, &mut kernel, &[], false);
        assert!(first.ended.is_empty(), "it may have gone on after it was looked for");
        assert_eq!(sums(&read(&mut books, &mut kernel, &[], false).ended), [(3, 4)]);
        assert!(kernel.is_empty() && books.before.is_empty() && books.processes.is_empty());
    }

    #[test]
    fn an_id_that_is_given_again_is_another_process() {
        let (mut books, mut kernel) = (Books::default(), Kernel::default());
        call(&mut kernel, key(4, 5), 4);
        read(&mut books, &mut kernel, &[4], true);
        call(&mut kernel, key(4, 9), 3);
        read(&mut books, &mut kernel, &[4], false);
        let last = read(&mut books, &mut kernel, &[4], true);
        assert_eq!((sums(&last.running), last.ended.len(), kernel.len()), (vec![(4, 3)], 0, 1));
    }

    #[test]
    fn what_could_not_be_forgotten_is_not_given_out_again() {
        let (mut books, mut kernel) = (Books::default(), Kernel::default());
        call(&mut kernel, key(5, 5), 4);
        read(&mut books, &mut kernel, &[], false);
        let mut reading = Reading::begin(books.ended(|_| false), false);
        kernel.iter().for_each(|(&key, &sum)| books.note(&mut reading, key, sum));
        assert_eq!(sums(&books.close(reading, false).ended), [(5, 4)]);
        assert!(read(&mut books, &mut kernel, &[], false).ended.is_empty());
        assert!(kernel.is_empty() && books.before.is_empty());
    }

    #[test]
    fn the_more_comes_the_sooner_it_is_read() {
        let second = Duration::from_secs(1);
        assert_eq!(pause(second, 64_000, 0), second);
        assert_eq!(pause(second, 64_000, 16_000), second / 2);
        assert_eq!(pause(second / 2, 64_000, 8_000), second / 2, "it stays where it is right");
        assert_eq!(pause(second, 0, 16_000), PACE.1);
    }
}
