//! Quantities that the kernel side measures at moments of its own choice, instead of at the overflow of a perf event: off-CPU time.
//!
//! A [`Measure`] has events of its own in a recording, which [`Measure::events`] lists; the numbers of all other events follow theirs. For each
//! moment it sends a stack as any other sample, under a key, and later the weight that the stack got, by that key ([`Counted`](crate::Counted)),
//! or one by one ([`TimeOff`]). A stack that it cannot unwind is copied through one of the events in [`Measure::copiers`]. What was
//! measured and is in no sample, it reports as totals ([`Measure::unmeasured`]), so that the sum is known.
//!
//! [`Accumulation`] says how weights add up in a recording (`ingest`). The kernel side of each quantity is a module of `capture-bpf`
//! (`measure/`), which is also where the trait is implemented; recorders know none of them by name.

use std::io;

use plumb_unwind::Registers;

use crate::FallbackEvents;

/// A quantity that a [`KernelUnwinder`](crate::KernelUnwinder) measures.
///
/// # Order of calls
/// [`events`](Self::events) and [`accumulation`](Self::accumulation) before events are opened; [`copiers`](Self::copiers) once, which starts
/// measuring;
/// [`off_now`](Self::off_now) right after [`KernelUnwinder::begin`](crate::KernelUnwinder::begin) for a target that runs already, and at the end of
/// each
/// window; [`pending`](Self::pending) and [`unmeasured`](Self::unmeasured) at any time after that; [`stop`](Self::stop) at the end. All calls come
/// from the recorder's thread.
///
/// # What the implementor owes
/// - **The sum is exact**: what is in no sample is in `unmeasured` or lost with its total. Stacks may be fewer than moments; weights may not.
/// - **Bounded**: maps in the kernel have a fixed size. What finds no room is counted.
/// - **A key belongs to one stack** of one process and thread as long as its weights may arrive.
/// - An error of `off_now` is not fatal: times are then reported as they end.
///
/// Example: `measure/off_cpu` in `plumb-capture-bpf`.
pub trait Measure {
    /// The events of its samples, in the order of their numbers, from 0 on.
    fn events(&self) -> &'static [MeasuredEvent];
    /// Rule by which the weights of its samples add up.
    fn accumulation(&self) -> Accumulation;
    /// Starts measuring, and returns the events that copy the stacks it cannot unwind.
    fn copiers(&mut self) -> io::Result<FallbackEvents>;
    /// Stops measuring: what has begun and not ended is ignored from now on.
    fn stop(&mut self) -> io::Result<()>;
    /// Returns the threads that are off-CPU and whose stacks were not reported yet, with their stacks: at the first call, right after
    /// [`KernelUnwinder::begin`](crate::KernelUnwinder::begin), those off-CPU since before; later, those that went off-CPU without a stack.
    /// The off-CPU time of each is reported under [`OffThread::key`]. Times of threads already reported are counted up to now, and restart. Fails
    /// if this kernel does not support it; then times are reported as they end. `ends`: nothing is reported later, so waits that have just begun are
    /// included too.
    fn off_now(&mut self, ends: bool) -> io::Result<Vec<OffThread>>;
    /// Returns the times of threads that are off-CPU now, up to `now_ns` on the monotonic clock.
    fn pending(&self, now_ns: u64) -> Vec<TimeOff>;
    /// Returns the totals missing from these times and counts.
    fn unmeasured(&self) -> Unmeasured;
}

/// An event of a [`Measure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredEvent {
    /// Name of the event in a recording.
    pub name: &'static str,
    /// Unit of a sample's weight.
    pub unit: &'static str,
}

/// Rule by which weights of samples add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulation {
    /// Intervals of threads, each in at most one at a time. The first event has the time from the beginning to the wake-up, the second the
    /// rest. An interval that has not ended counts up to now.
    Intervals,
}

/// A period that a thread was off-CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeOff {
    /// Start, on the monotonic clock.
    pub out_ns: u64,
    /// Duration for which it could not run: it slept, or waited for something.
    pub blocked_ns: u64,
    /// Run-queue wait after that. For a thread that was preempted, the whole period.
    pub waited_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Key of its stack; 0: none was sent.
    pub key: u64,
}

/// A thread that is off-CPU, with its stack.
#[derive(Clone, Debug)]
pub struct OffThread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Time of the observation, on the monotonic clock.
    pub time_ns: u64,
    /// Key of its blocked time; the next key is that of its run-queue wait.
    pub key: u64,
    /// Kernel frames, innermost first.
    pub kernel: Vec<u64>,
    /// User part of its stack.
    pub user: OffUser,
    /// Address of its thread control block, by which interpreters identify it.
    pub thread_pointer: u64,
    /// Number of the system call that it is in, if any.
    pub syscall: Option<u32>,
}

/// The location in user code where an off-CPU thread left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffUser {
    /// None: a kernel thread.
    Absent,
    /// 32-bit code, whose stacks are not unwound.
    Compat,
    /// The registers at that location.
    At(Registers),
}

/// Times that are only reported as totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// Number of waits shorter than requested.
    pub short: u64,
    /// Total of these.
    pub short_ns: u64,
    /// Number of waits dropped for lack of room.
    pub lost: u64,
    /// Total of these.
    pub lost_ns: u64,
    /// Total of the waits after the last stack of their CPU, if not every wait got a stack.
    pub rest_ns: u64,
}
