//! The open events of a recording, one ring per CPU, and their replacement when more of each stack has to be
//! copied.
//!
//! A ring belongs to an event that never fires ([`crate::attr::ring_owner`]), so that the events that write to it
//! can be opened and closed independently.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use plumb_capture_api::{FallbackEvents, SamplingRate};
use plumb_process::procfs;
use plumb_process::usage::{monotonic_ns, page_size};
use plumb_target::{Cgroup, TargetError};

use crate::attr::{Sampling, ring_owner};
use crate::error::{Asked, Error};
use crate::ring::Ring;
use crate::sys::perf::{Event, Whom};

/// Limit for all rings together, in bytes.
const ALL_RINGS: usize = 256 << 20;
/// Limits for all rings and for one ring, in bytes, if each occurrence is a sample: thousands come at once, while the recorder waits for a
/// CPU. The third bounds all rings to 1/16 of the available memory.
const ALL_FOR_BURSTS: usize = 1 << 30;
const RING_FOR_BURSTS: usize = 64 << 20;
const PART_FOR_BURSTS: u64 = 16;
/// Smallest and largest ring, in bytes. With 64 KiB per sample and 1000 samples per second, the largest is full after a quarter of a
/// second.
const RING: (usize, usize) = (64 << 10, 16 << 20);

/// The tasks that the events count.
#[derive(Debug)]
pub(crate) enum Attachment {
    /// Tasks in the cgroup.
    Cgroup(Cgroup),
    /// All tasks.
    Everyone,
    /// These processes and their descendants, by inheritance.
    Processes(Vec<u32>),
}

/// The rings of all CPUs, and the events that own them.
pub(crate) struct Rings {
    owners: Vec<(u32, Event)>,
    /// Size of each ring in bytes.
    pub bytes: usize,
}

impl Rings {
    /// Maps a ring per online CPU, as large as this user may. `bursts`: for thousands of samples at once.
    pub fn map(cpus: &[u32], bursts: bool) -> Result<(Self, Vec<Ring>), Error> {
        let page = page_size();
        let available = plumb_process::available_memory().filter(|_| bursts).unwrap_or(0);
        let mut bytes = ring_bytes(cpus.len(), available).max(page);
        loop {
            match Self::map_of(cpus, bytes, page) {
                Err(Error::NoRing(_)) if bytes / 2 >= RING.0.max(page) => bytes /= 2,
                result => return result,
            }
        }
    }

    fn map_of(cpus: &[u32], bytes: usize, page: usize) -> Result<(Self, Vec<Ring>), Error> {
        let attr = ring_owner(bytes / 4);
        let mut owners = Vec::new();
        let mut rings = Vec::new();
        for &cpu in cpus {
            let owner = match Event::open(&attr, Whom::Thread(0), cpu) {
                Ok(owner) => owner,
                // The CPU went offline since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(error) => return Err(classify(error, Asked::Own)),
            };
            rings.push(Ring::map(owner.file(), bytes, page).map_err(Error::NoRing)?);
            owners.push((cpu, owner));
        }
        Ok((Self { owners, bytes }, rings))
    }

    /// The CPUs that have a ring.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.owners.iter().map(|(cpu, _)| *cpu)
    }

    /// The descriptors to poll.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.owners.iter().map(|(_, owner)| owner.file().as_fd())
    }
}

/// The rings and target for opening events.
pub(crate) struct EventContext {
    /// The rings that the events write to.
    pub rings: Rings,
    /// The tasks that they count.
    pub attachment: Attachment,
}

/// The role of a BPF program in an event's samples.
pub(crate) enum Program {
    /// None.
    Absent,
    /// The program decides on each sample, and knows the event by this number. The first event needs none.
    Decides(OwnedFd, usize),
    /// The program takes the samples itself.
    Takes {
        /// Events through which it writes samples that it can't unwind.
        copiers: FallbackEvents,
        /// The event that calls the program, if any.
        #[expect(dead_code, reason = "it calls as long as it is open")]
        event: Option<Event>,
    },
}

/// The open perf events that make up one event of a recording.
pub(crate) struct Events {
    context: Arc<EventContext>,
    sampling: Sampling,
    program: Program,
    open: Vec<Event>,
    /// Records lost by closed events.
    lost_before: u64,
    /// Count of closed events.
    counted_before: Option<u64>,
    /// Times since which not each occurrence is a sample, or one of another number of them, with the count until then.
    paced: Vec<(u64, u64)>,
    /// Events with another sampling rate, opened but not started.
    spare: Option<(Sampling, Vec<Event>)>,
}

impl Events {
    /// Opens the events.
    pub fn new(context: Arc<EventContext>, sampling: Sampling, program: Program) -> Result<Self, Error> {
        let inherit = matches!(context.attachment, Attachment::Processes(_));
        let sampling = Sampling { inherit, ..sampling };
        let mut events = Self {
            context,
            sampling,
            program,
            open: Vec::new(),
            lost_before: 0,
            counted_before: Some(0),
            paced: Vec::new(),
            spare: None,
        };
        if matches!(events.sampling.pace, SamplingRate::Frequency(_)) {
            events.paced.push((0, 0));
        }
        events.open = events.open_all(&events.sampling)?;
        Ok(events)
    }

    /// Starts the events.
    pub fn start(&self) -> Result<(), Error> {
        self.open.iter().try_for_each(|event| self.enable(event))
    }

    fn enable(&self, event: &Event) -> Result<(), Error> {
        event.enable().map_err(Error::system("starting the events"))?;
        let Program::Takes { copiers, .. } = &self.program else { return Ok(()) };
        event.enter_in(copiers.map.as_fd()).map_err(Error::system("telling a program of an event"))
    }

    /// Whether a BPF program handles their samples.
    pub fn is_walked_in_kernel(&self) -> bool {
        !matches!(self.program, Program::Absent)
    }

    /// Whether a program is called for each of their samples, and decides on it.
    pub fn is_decided(&self) -> bool {
        matches!(self.program, Program::Decides(..))
    }

    /// Whether a program takes their samples itself.
    pub fn is_taken(&self) -> bool {
        matches!(self.program, Program::Takes { .. })
    }

    /// The settings they were opened with.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The IDs in samples of these events, and of prepared ones.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        let spare = self.spare.iter().flat_map(|(_, events)| events);
        self.open.iter().chain(spare).filter_map(Event::id)
    }

    /// Replaces the events by ones that copy `bytes` of the stack. On failure the old ones stay.
    pub fn grow(&mut self, bytes: u32) -> Result<(), Error> {
        self.exchange(Sampling { stack_copy: bytes, ..self.sampling.clone() })
    }

    /// Replaces the events by clock events with another frequency. `PERF_EVENT_IOC_PERIOD` would change the interval, but
    /// not the period in samples: `hw.last_period` of a clock is set when it is opened (`perf_swevent_init_hrtimer` in kernel/events/core.c).
    pub fn set_frequency(&mut self, hz: u32) -> Result<(), Error> {
        self.exchange(Sampling { pace: SamplingRate::Frequency(hz), ..self.sampling.clone() })
    }

    /// Detaches the program that decides on samples: all stacks are copied from now on.
    pub fn go_on_without(&mut self) -> Result<(), Error> {
        let program = std::mem::replace(&mut self.program, Program::Absent);
        let result = self.exchange(self.sampling.clone());
        if result.is_err() {
            self.program = program;
        }
        result
    }

    /// Opens events with another sampling rate and the same record layout, for [`Events::change_period`].
    pub fn prepare(&mut self, pace: SamplingRate) -> Result<(), Error> {
        let sampling = Sampling { pace, ..self.sampling.clone() };
        let events = self.open_all(&sampling)?;
        self.spare = Some((sampling, events));
        Ok(())
    }

    /// Changes the period: switches to the prepared events, within microseconds, if there are any. Returns the time of the change; `None` if the
    /// events stay as they were.
    pub fn change_period(&mut self, period: u64) -> Option<u64> {
        let since = monotonic_ns();
        let changed = match self.spare.take() {
            Some((sampling, events)) => self.replace(sampling, events),
            None => self.set_period(period),
        };
        changed.ok()?;
        self.paced.extend(self.counted().map(|counted| (since, counted)));
        Some(since)
    }

    /// The count on each CPU, and the total running time in nanoseconds, of events opened with time fields.
    pub fn counted_for(&self) -> (BTreeMap<u32, u64>, u64) {
        let (mut counts, mut running_ns) = (BTreeMap::new(), 0_u64);
        for event in &self.open {
            let Some([count, _, running]) = event.counted_for() else { continue };
            let sum: &mut u64 = counts.entry(event.cpu()).or_default();
            *sum = sum.saturating_add(count);
            running_ns = running_ns.saturating_add(running);
        }
        (counts, running_ns)
    }

    /// Sets the period from now on; not of a clock.
    pub fn set_period(&mut self, period: u64) -> Result<(), Error> {
        let pace = match self.sampling.pace {
            SamplingRate::Period(_) => SamplingRate::Period(period),
            pace @ SamplingRate::Frequency(_) => pace,
        };
        let sampling = Sampling { period, pace, ..self.sampling.clone() };
        if sampling.inherit {
            // The kernel does not change inherited events.
            return self.exchange(sampling);
        }
        self.sampling = sampling;
        let set = |event: &Event| event.set_period(period).map_err(Error::system("changing a period"));
        self.open.iter().try_for_each(set)
    }

    fn exchange(&mut self, sampling: Sampling) -> Result<(), Error> {
        let new = self.open_all(&sampling)?;
        let pace = self.spare.take().map(|(spare, _)| spare.pace);
        self.replace(sampling, new)?;
        pace.map_or(Ok(()), |pace| self.prepare(pace))
    }

    fn replace(&mut self, sampling: Sampling, new: Vec<Event>) -> Result<(), Error> {
        // CPU by CPU, so that each is without an event, or has two, only for microseconds.
        let mut old = self.open.iter();
        for event in &new {
            self.enable(event)?;
            if let Some(event) = old.next() {
                let _ = event.disable();
            }
        }
        self.stop();
        self.lost_before += self.open.iter().filter_map(Event::lost).sum::<u64>();
        self.counted_before = self.counted();
        self.open = new;
        self.sampling = sampling;
        Ok(())
    }

    /// Stops all events.
    pub fn stop(&self) {
        for event in &self.open {
            let _ = event.disable();
        }
    }

    /// Number of records lost because a ring was full, as far as the kernel counts them per event.
    pub fn lost(&self) -> u64 {
        self.lost_before + self.open.iter().filter_map(Event::lost).sum::<u64>()
    }

    /// The kernel's count in each time range with one period; `None` if each occurrence is a sample, or it can't be read.
    pub fn parts(&self) -> Option<Vec<(Range<u64>, u64)>> {
        let &(first, before) = self.paced.first()?;
        let ends = self.paced.iter().copied().skip(1).chain([(u64::MAX, self.counted()?)]);
        let part = |(&(since, before), (until, counted)): (&(u64, u64), (u64, u64))| {
            (since..until, counted.saturating_sub(before))
        };
        Some([(0..first, before)].into_iter().chain(self.paced.iter().zip(ends).map(part)).collect())
    }

    /// The kernel's count, sampled or not; `None` if it can't be read.
    pub fn counted(&self) -> Option<u64> {
        self.open
            .iter()
            .try_fold(self.counted_before?, |sum, event| Some(sum.saturating_add(event.counted()?)))
    }

    fn open_all(&self, sampling: &Sampling) -> Result<Vec<Event>, Error> {
        match &self.context.attachment {
            Attachment::Cgroup(cgroup) => {
                self.open_on_each(sampling, Whom::Cgroup(cgroup.as_fd()), Asked::Machine)
            }
            Attachment::Everyone => self.open_on_each(sampling, Whom::Everyone, Asked::Machine),
            Attachment::Processes(pids) => self.open_for_tree(sampling, pids),
        }
    }

    fn open_on_each(&self, sampling: &Sampling, whom: Whom<'_>, what: Asked) -> Result<Vec<Event>, Error> {
        let attrs = sampling.attrs();
        let mut events = Vec::new();
        for (cpu, owner) in &self.context.rings.owners {
            for attr in &attrs {
                let mut event = match Event::open(attr, whom, *cpu) {
                    Ok(event) => event,
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                    Err(error) => return Err(classify_event(error, sampling, what)),
                };
                event.output_to(owner).map_err(Error::system("joining an event to its ring"))?;
                if let Program::Decides(program, number) = &self.program {
                    let attached = match number {
                        0 => event.attach(program.as_fd()),
                        &number => event.attach_as(program.as_fd(), number as u64),
                    };
                    attached.map_err(Error::system("attaching a program to an event"))?;
                }
                events.push(event);
            }
        }
        Ok(events)
    }

    /// Notes a new sampling rate that a program has chosen.
    pub fn note_pace(&mut self, pace: SamplingRate) {
        self.sampling.pace = pace;
    }

    /// Opens inherited events for every thread of the processes and of their descendants so far.
    fn open_for_tree(&self, sampling: &Sampling, pids: &[u32]) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        let mut known = HashSet::new();
        // A thread created while the threads are listed inherits nothing if its creator had no event yet: repeat
        // until no new thread is found.
        loop {
            let new: Vec<u32> =
                procfs::tree_threads(pids).into_iter().filter(|&tid| known.insert(tid)).collect();
            if new.is_empty() {
                return Ok(events);
            }
            for tid in new {
                match self.open_on_each(sampling, Whom::Thread(tid), Asked::Process(tid)) {
                    Ok(more) => events.extend(more),
                    Err(Error::Target(TargetError::System { error, .. }))
                        if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // A descendant that changed its user (setuid) can't be sampled; the others can.
                    Err(Error::NotPermitted { .. }) if !pids.contains(&tid) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// Size of a ring in bytes, a power of two. `available`: available memory in bytes; part of it may be used for bursts.
fn ring_bytes(cpus: usize, available: u64) -> usize {
    let floor = |bytes: usize| (bytes.max(1) + 1).next_power_of_two() / 2;
    let usual = floor(ALL_RINGS / cpus.max(1)).clamp(RING.0, RING.1);
    let spare = usize::try_from(available / PART_FOR_BURSTS).unwrap_or(usize::MAX);
    usual.max(floor(spare.min(ALL_FOR_BURSTS) / cpus.max(1)).min(RING_FOR_BURSTS))
}

/// Translates an error of perf_event_open.
pub(crate) fn classify(error: io::Error, what: Asked) -> Error {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            Error::NotPermitted { what, paranoid: plumb_process::Host::read().paranoid }
        }
        Some(libc::ENOSYS) => Error::Unsupported(error),
        _ => Error::system("perf_event_open")(error),
    }
}

/// Translates an error of an event that this machine may not support.
fn classify_event(error: io::Error, sampling: &Sampling, what: Asked) -> Error {
    let is_missing = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP));
    if is_missing && sampling.counter.is_hardware() {
        return Error::NoCounter(sampling.counter.name().into());
    }
    let Some(trigger) = sampling.counter.trigger() else { return classify(error, what) };
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if trigger.is_privileged() => {
            Error::Privileged(trigger.name().into())
        }
        Some(libc::EINVAL | libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EIO) => {
            Error::NoEvent { name: trigger.name().into(), error }
        }
        _ => classify(error, what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_for_bursts_take_a_part_of_the_memory_that_is_there() {
        const MIB: usize = 1 << 20;
        let bytes = |cpus, available: u64| ring_bytes(cpus, available << 30) / MIB;
        assert_eq!([bytes(2, 0), bytes(16, 0), bytes(64, 0), bytes(1024, 0)], [16, 16, 4, 0]);
        assert_eq!([bytes(2, 8), bytes(16, 64), bytes(64, 256), bytes(1024, 1024)], [64, 64, 16, 1]);
        assert_eq!(bytes(2, 1), 32, "128 MiB would be an eighth of it");
        assert_eq!(ring_bytes(2, 1), 16 * MIB, "never less than without");
    }
}
