//! Tests of [`super`]: counts are added to the first sample of their stack, however the recording is split.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use plumb_capture_api::{
    Accumulation, FallbackEvents, MeasuredEvent, OffThread, ProbeCounts, ProbeSpec, TimeOff, Unmeasured,
    UnwindFallbackStats, UnwindInfoRef, WalkedSample,
};
use plumb_ingest::{Filter, Source};

use super::*;

/// Data waiting in the kernel.
#[derive(Default)]
struct Waiting {
    messages: Vec<WalkedSample>,
    counts: Vec<Counted>,
    /// Set if off-CPU time is measured: the ongoing times.
    off: Option<Vec<TimeOff>>,
}

/// An unwinder whose output the test controls.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Waiting>>);

impl Scripted {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().expect("no test panics with it")
    }

    /// A stack is sampled for the first time, and then `again` times more.
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
    fn only_followed(&mut self) -> io::Result<()> {
        Ok(())
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
    fn probe_counts(&self, _: usize) -> Option<ProbeCounts> {
        None
    }
    fn take(&mut self, into: &mut Messages) {
        into.list.extend(self.waiting().messages.drain(..).map(Message::Sample));
    }
    fn take_counts(&mut self, each: &mut dyn FnMut(Counted)) {
        self.waiting().counts.drain(..).for_each(each);
    }
    fn can_load(&self) -> bool {
        true
    }
    fn supply(&mut self, _: u32, _: Option<UnwindInfoRef<'_>>) -> bool {
        true
    }
    fn mark_memory(&mut self, _: u32) {}
    fn add_interpreter(&mut self, _: u32, _: u64) {}
    fn add_copied_text(&mut self, _: u32, _: u64, _: usize, _: u64) {}
    fn forget(&mut self, _: u32) {}
    fn handed_over(&self) -> UnwindFallbackStats {
        UnwindFallbackStats::default()
    }
    fn measure(&mut self) -> Option<&mut dyn Measure> {
        let measures = self.waiting().off.is_some();
        if measures { Some(self) } else { None }
    }
}

impl Measure for Scripted {
    fn events(&self) -> &'static [MeasuredEvent] {
        &[]
    }
    fn accumulation(&self) -> Accumulation {
        Accumulation::Intervals
    }
    fn copiers(&mut self) -> io::Result<FallbackEvents> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn off_now(&mut self, _: bool) -> io::Result<Vec<OffThread>> {
        Ok(Vec::new())
    }
    fn pending(&self, _: u64) -> Vec<TimeOff> {
        self.waiting().off.clone().unwrap_or_default()
    }
    fn unmeasured(&self) -> Unmeasured {
        Unmeasured::default()
    }
}

/// Reads as a recorder does: hands out messages up to `until_ns`. `taken` is called while messages are taken.
fn read(unwinder: &mut AttachedUnwinder, ingest: &mut Ingest, until_ns: u64, taken: impl FnOnce()) {
    unwinder.take(ingest);
    taken();
    let mut between = unwinder.begin();
    between.hand_out(ingest, until_ns);
    between.end(ingest);
    unwinder.add_counts(ingest, until_ns);
}

#[test]
fn what_is_counted_while_a_part_ends_is_in_the_next_one() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let kernel = Scripted::default();
    let mut unwinder = AttachedUnwinder::new(Box::new(kernel.clone()), vec![event]);
    let second = COUNTS_NS;
    kernel.sample(3, second, 10);
    // These stacks start after messages were read, and are counted before the next read: by the clock and at the end of the part.
    read(&mut unwinder, &mut ingest, second, || kernel.sample(5, second + 1, 100));
    kernel.sample(9, second + 2, 1000);
    unwinder.add_counts_now(&mut ingest);
    assert_eq!(ingest.profile().samples.len(), 1 + 10, "the others are not known yet");
    kernel.sample(5, second + 3, 10_000);
    unwinder.add_counts_now(&mut ingest);
    read(&mut unwinder, &mut ingest, 3 * second, || {});
    read(&mut unwinder, &mut ingest, 5 * second, || {});
    assert_eq!(ingest.statistics().lost_samples, 0);
    assert_eq!(ingest.profile().samples.len(), 1 + 10 + 1 + 100 + 1 + 1000 + 1 + 10_000, "each, once");
}

#[test]
fn what_is_counted_of_a_stack_that_nobody_knows_is_lost() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let kernel = Scripted::default();
    let mut unwinder = AttachedUnwinder::new(Box::new(kernel.clone()), vec![event]);
    kernel.sample(3, COUNTS_NS, 10);
    kernel.waiting().messages.clear();
    read(&mut unwinder, &mut ingest, COUNTS_NS, || {});
    read(&mut unwinder, &mut ingest, 3 * COUNTS_NS, || {});
    assert_eq!((ingest.statistics().lost_samples, ingest.profile().samples.len()), (10, 0));
}

/// Messages may arrive during other work, and wait in memory until records are read.
#[test]
fn what_is_fetched_meanwhile_is_handed_out_with_what_came_before_and_after() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let event = ingest.add_event("cpu-clock", "ns");
    let kernel = Scripted::default();
    let mut unwinder = AttachedUnwinder::new(Box::new(kernel.clone()), vec![event]);
    for (key, time_ns) in [(3, 10), (5, 30), (7, 20)] {
        kernel.sample(key, time_ns, 0);
        unwinder.fetch();
        assert!(kernel.waiting().messages.is_empty(), "none waits in the kernel");
    }
    // The newest message waits, and more are fetched before its turn.
    read(&mut unwinder, &mut ingest, 25, || {});
    assert_eq!(ingest.profile().samples.len(), 2);
    kernel.sample(9, 28, 0);
    unwinder.fetch();
    read(&mut unwinder, &mut ingest, 40, || {});
    let times: Vec<u64> = ingest.profile().samples.iter().map(|sample| sample.time_ns).collect();
    assert_eq!(times, [10, 20, 28, 30]);
}

/// The weights of a profile's samples, by the address of the innermost frame.
fn weights(profile: &plumb_profile::Profile) -> Vec<(u64, u64)> {
    let innermost = |stack| profile.frames[profile.stacks.node(stack).frame].address.0;
    let weights = profile.samples.iter().map(|sample| (sample.stack.map_or(0, innermost), sample.weight));
    let mut weights: Vec<_> = weights.collect();
    weights.sort_unstable();
    weights
}

/// The stack of an ongoing time is sent once, however many windows it lasts; that of any other time is sent again.
#[test]
fn times_off_that_go_on_keep_their_stacks_from_window_to_window() {
    let mut ingest = Ingest::new(Source::File, Filter::All);
    let [blocked, waited] = ["off-cpu", "run-queue"].map(|name| ingest.add_event(name, "ns"));
    ingest.weights().weigh_by_time_off(blocked, waited);
    let kernel = Scripted::default();
    let time_off = |key| TimeOff { key, pid: 7, tid: 7, ..TimeOff::default() };
    kernel.waiting().off = Some(vec![time_off(8)]);
    let mut unwinder = AttachedUnwinder::new(Box::new(kernel.clone()), vec![blocked, waited]);
    let send = |key, time_ns| {
        kernel.sample(key, time_ns, 0);
        let mut waiting = kernel.waiting();
        let sample = waiting.messages.last_mut().expect("it was sent");
        sample.is_stack_only = true;
        waiting.counts.clear();
    };
    let count = |key, period| {
        let (pid, tid, samples, time_ns) = (7, 7, 1, COUNTS_NS);
        kernel.waiting().counts.push(Counted { key, pid, tid, samples, period, time_ns });
    };
    let close = |unwinder: &mut AttachedUnwinder, ingest: &mut Ingest| {
        let mut kept = unwinder.end_window(ingest);
        let taken = ingest.take(kept.samples()).profile;
        unwinder.keep(kept);
        weights(&taken).iter().map(|&(_, weight)| weight).collect::<Vec<_>>()
    };
    send(8, 10);
    send(10, 20);
    read(&mut unwinder, &mut ingest, 30, || {});
    count(8, 100);
    count(10, 1000);
    assert_eq!(close(&mut unwinder, &mut ingest), [100, 1000]);
    // Both were counted in that window. By the second key, only counts on their way can follow; by the first, which is ongoing, counts can always follow, also
    // as run-queue wait.
    count(8, 7);
    assert_eq!(close(&mut unwinder, &mut ingest), [7]);
    assert_eq!(close(&mut unwinder, &mut ingest), [] as [u64; 0]);
    count(9, 5);
    assert_eq!(close(&mut unwinder, &mut ingest), [5], "its sample has the rows of the fourth profile");
    count(10, 1);
    assert_eq!(close(&mut unwinder, &mut ingest), [] as [u64; 0]);
    read(&mut unwinder, &mut ingest, 3 * COUNTS_NS, || {});
    assert_eq!(ingest.statistics().lost_samples, 1, "nobody counts by a stack that was not sent again");
}
