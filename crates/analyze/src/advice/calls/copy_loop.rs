//! Rule: bytes are copied from one descriptor to another through user space.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, percent, text, word};

/// Minimum share of a thread's reads that are followed by a matching write.
const LEAST_SHARE: f64 = 0.9;
/// Minimum number of such pairs.
const LEAST_PAIRS: u64 = 100;
/// Minimum average number of bytes per pair. Smaller pairs are messages, not copies.
const LEAST_BYTES: f64 = 512.0;
/// Maximum user time of threads that only copy, as a part of the time of their reads and writes. Threads that inspect
/// or change the bytes take more.
const MOST_IN_USER: f64 = 0.15;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "copy-loop",
        claim: "copies a file through its own memory",
        pattern: "what is read from one descriptor is written to another: a copy through user space",
        threshold: text(format!(
            "{} of ten reads are followed by a write of as many bytes elsewhere, {LEAST_PAIRS} times, of {LEAST_BYTES} bytes on average; such threads hardly do \
             anything else",
            word((LEAST_SHARE * 10.0) as u64)
        )),
        remedy: "if the bytes stay as they are: copy_file_range between files, sendfile to a socket, splice with a pipe",
        bound: "the reads and writes of such pairs; the kernel's own copy is still to be paid where blocks can't be shared",
        source: "copy_file_range(2): spares the way through user space",
    };
    CallRule::new(rule, &["read", "write"], || Box::<Copies>::default())
}

#[derive(Default)]
struct Thread {
    /// Descriptor and bytes of the last read, if no write has followed it.
    last: Option<(u64, i64)>,
    reads: u64,
    pairs: u64,
    /// Total bytes of the pairs.
    bytes: u64,
}

impl Thread {
    fn copies(&self) -> bool {
        self.pairs as f64 >= LEAST_SHARE * self.reads as f64
            && self.bytes as f64 >= LEAST_BYTES * self.pairs as f64
    }
}

#[derive(Default)]
struct Copies {
    calls: u64,
    threads: FxHashMap<u32, Thread>,
}

impl Watch for Copies {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        if self.threads.len() >= MOST && !self.threads.contains_key(&call.tid) {
            return;
        }
        let thread = self.threads.entry(call.tid).or_default();
        let descriptor = call.arguments[0];
        if call.name == "read" {
            thread.reads += 1;
            thread.last = (call.result > 0).then_some((descriptor, call.result));
        } else if let Some((from, bytes)) = thread.last.take()
            && from != descriptor
            && bytes == call.result
        {
            thread.pairs += 1;
            thread.bytes = thread.bytes.saturating_add(bytes.unsigned_abs());
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let copying = || self.threads.iter().filter(|(_, thread)| thread.copies());
        let sum = |sum: (u64, u64), (_, one): (&u32, &Thread)| (sum.0 + one.pairs, sum.1 + one.reads);
        let (pairs, reads) = copying().fold((0, 0), sum);
        let cpu_ns = basis.part(&["read", "write"], 2 * pairs, self.calls);
        let user_ns: f64 = copying().filter_map(|(tid, _)| basis.user_of_thread.get(tid)).sum();
        // Entering and leaving the kernel is not included in the samples of calls, and sometimes counts as user code.
        let only_copies = user_ns <= MOST_IN_USER * cpu_ns + 2.0 * pairs as f64 * basis.costs.call;
        (pairs >= LEAST_PAIRS && only_copies).then(|| Found {
            measured: vec![
                count("pairs of read and write", pairs),
                percent("of these reads", pairs as f64, reads as f64),
                percent("read and write of them", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
