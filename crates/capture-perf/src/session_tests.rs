//! Tests of [`super`]: what is counted meets the first sample of its stack, however the recording is taken apart.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use plumb_capture_api::{
    FallbackEvents, ProbeCounts, ProbeSpec, UnwindFallbackStats, UnwindInfoRef, WalkedSample,
};
use plumb_ingest::{Filter, Source};

use super::*;

/// What waits in the kernel.
#[derive(Default)]
struct Waiting {
    messages: Vec<WalkedSample>,
    counts: Vec<Counted>,
}

/// Something that walks stacks, of which the test decides what it says.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Waiting>>);

impl Scripted {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().expect("no test panics with it")
    }

    /// A stack is sampled for the first time, and then a few times more.
    fn sample(&self, key: u64, time_ns: u64, again: u64) {
        let (pid, tid) = (7, 7);
        let mut waiting = self.waiting();
        waiting.messages.push(WalkedSample {
            time_ns,
            cpu: 0,
            pid,
            tid,
            event: 0,
            syscall: None,
            period: 1,
            key,
            is_stack_only: false,
            in_kernel: true,
            has_user: false,
            user: 0..0,
            kernel: 0..0,
            script: 0..0,
            script_is_cut: false,
        });
        waiting.counts.push(Counted { key, pid, tid, samples: again, period: again, time_ns });
    }
}

impl KernelUnwinder for Scripted {
    fn program(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn wakes(&self) -> BorrowedFd<'_> {
        unreachable!("nobody waits for it")
    }
    fn follow(&mut self, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn await_comm(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn watch(&mut self, _: &ProbeSpec<'_>) -> io::Result<FallbackEvents> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn at_function(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn unwatch(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn passed(&self, _: usize) -> Option<ProbeCounts> {
        None
    }
    fn take(&mut self, into: &mut Messages) {
        into.list.extend(self.waiting().messages.drain(..).map(Message::Sample));
    }
    fn take_counts(&mut self, each: &mut dyn FnMut(Counted)) {
        self.waiting().counts.drain(..).for_each(each);
    }
    fn supply(&mut self, _: u32, _: Option<UnwindInfoRef<'_>>) {}
    fn has_interpreter(&mut self, _: u32, _: u64) {}
    fn forget(&mut self, _: u32) {}
    fn handed_over(&self) -> UnwindFallbackStats {
        UnwindFallbackStats::default()
    }
    fn off_cpu(&mut self) -> Option<&mut dyn OffCpu> {
        None
    }
}

/// As a recorder reads: what has come by `until_ns` is handed out. `taken`: while the messages are taken.
fn read(assisted: &mut UnwinderSession, ingest: &mut Ingest, until_ns: u64, taken: impl FnOnce()) {
    assisted.take(ingest);
    taken();
    let mut between = assisted.begin();
    between.hand_out(ingest, until_ns);
    between.end(ingest);
    assisted.add_counts(ingest, until_ns);
}

#[test]
fn what_is_counted_while_a_part_ends_is_in_the_next_one() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let kernel = Scripted::default();
    let mut assisted = UnwinderSession::new(Box::new(kernel.clone()), vec![event]);
    let second = COUNTS_NS;
    kernel.sample(3, second, 10);
    // These begin after messages were looked at, and are counted before they are looked at again: by the clock and by the part's end.
    read(&mut assisted, &mut ingest, second, || kernel.sample(5, second + 1, 100));
    kernel.sample(9, second + 2, 1000);
    assisted.add_counts_now(&mut ingest);
    assert_eq!(ingest.profile().samples.len(), 1 + 10, "the others are not known yet");
    kernel.sample(5, second + 3, 10_000);
    assisted.add_counts_now(&mut ingest);
    read(&mut assisted, &mut ingest, 3 * second, || {});
    read(&mut assisted, &mut ingest, 5 * second, || {});
    assert_eq!(ingest.statistics().lost_samples, 0);
    assert_eq!(ingest.profile().samples.len(), 1 + 10 + 1 + 100 + 1 + 1000 + 1 + 10_000, "each, once");
}

#[test]
fn what_is_counted_of_a_stack_that_nobody_knows_is_lost() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let kernel = Scripted::default();
    let mut assisted = UnwinderSession::new(Box::new(kernel.clone()), vec![event]);
    kernel.sample(3, COUNTS_NS, 10);
    kernel.waiting().messages.clear();
    read(&mut assisted, &mut ingest, COUNTS_NS, || {});
    read(&mut assisted, &mut ingest, 3 * COUNTS_NS, || {});
    assert_eq!((ingest.statistics().lost_samples, ingest.profile().samples.len()), (10, 0));
}

/// Messages may come while something else is done, and wait in memory until records are read.
#[test]
fn what_is_fetched_meanwhile_is_handed_out_with_what_came_before_and_after() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let kernel = Scripted::default();
    let mut assisted = UnwinderSession::new(Box::new(kernel.clone()), vec![event]);
    for (key, time_ns) in [(3, 10), (5, 30), (7, 20)] {
        kernel.sample(key, time_ns, 0);
        assisted.fetch();
        assert!(kernel.waiting().messages.is_empty(), "none waits in the kernel");
    }
    // The newest waits, and more is fetched before it is its turn.
    read(&mut assisted, &mut ingest, 25, || {});
    assert_eq!(ingest.profile().samples.len(), 2);
    kernel.sample(9, 28, 0);
    assisted.fetch();
    read(&mut assisted, &mut ingest, 40, || {});
    let times: Vec<u64> = ingest.profile().samples.iter().map(|sample| sample.time_ns).collect();
    assert_eq!(times, [10, 20, 28, 30]);
}
