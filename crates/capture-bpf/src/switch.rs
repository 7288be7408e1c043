//! Turns programs off and on while another thread reads their output.
//!
//! A program that is told not to record still runs at each event, and with any program attached, a system call takes the kernel's slow path: so they
//! are detached as well. The start and end of events in between are not recorded.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use aya::maps::{MapData, PerCpuArray};
use plumb_process::usage::monotonic_ns;

use crate::follow::Teller;
use crate::object::{skipped, sum};
use crate::sys;

/// Attached programs.
#[derive(Default)]
pub(crate) struct Probes(Vec<Probe>);

/// A program, and what keeps it attached.
struct Probe {
    program: OwnedFd,
    at: At,
    link: Option<OwnedFd>,
}

/// A place where a program is attached.
#[derive(Clone, Copy)]
enum At {
    /// At the tracepoint that it was loaded for.
    Tracepoint,
    /// At the page faults of a CPU.
    PageFaults(u32),
}

impl Probe {
    fn put_on(&mut self) -> io::Result<()> {
        if self.link.is_none() {
            self.link = Some(match self.at {
                At::Tracepoint => sys::attach(self.program.as_fd())?,
                At::PageFaults(cpu) => sys::attach_to_page_faults(self.program.as_fd(), cpu)?,
            });
        }
        Ok(())
    }
}

impl Probes {
    /// Attaches a program to its tracepoint.
    pub fn add(&mut self, program: OwnedFd) -> io::Result<()> {
        self.attach(program, At::Tracepoint)
    }

    /// Attaches a program to the page faults of these CPUs.
    pub fn add_at_page_faults(&mut self, program: &OwnedFd, cpus: &[u32]) -> io::Result<()> {
        cpus.iter().try_for_each(|&cpu| self.attach(program.try_clone()?, At::PageFaults(cpu)))
    }

    fn attach(&mut self, program: OwnedFd, at: At) -> io::Result<()> {
        let mut probe = Probe { program, at, link: None };
        probe.put_on()?;
        self.0.push(probe);
        Ok(())
    }

    /// Number of times that the kernel skipped each program, in the order in which they were added.
    pub fn skipped(&self) -> Vec<u64> {
        self.0.iter().map(|probe| skipped(probe.program.as_fd()).unwrap_or(0)).collect()
    }

    fn put_on(&mut self) -> io::Result<()> {
        self.0.iter_mut().try_for_each(Probe::put_on)
    }

    fn take_off(&mut self) {
        self.0.iter_mut().for_each(|probe| probe.link = None);
    }
}

/// Turns programs off and on while another thread reads their output.
#[derive(Clone)]
pub struct Switch {
    teller: Teller,
    probes: Arc<Mutex<Probes>>,
    /// Counters of the programs, and the index of the event counter.
    counters: (Arc<PerCpuArray<MapData, u64>>, u32),
}

impl Switch {
    pub(crate) fn new(
        teller: Teller,
        probes: Arc<Mutex<Probes>>,
        counters: (Arc<PerCpuArray<MapData, u64>>, u32),
    ) -> Self {
        Self { teller, probes, counters }
    }

    /// Number of events that the programs have recorded so far.
    pub fn seen(&self) -> u64 {
        sum(&self.counters.0, self.counters.1)
    }

    /// Stops recording new events.
    pub fn turn_off(&self) -> io::Result<()> {
        self.teller.tell(|control| control.began = 0)
    }

    /// Detaches the programs as well, so that ends of earlier events are not recorded either. May take tens of milliseconds.
    pub fn take_off(&self) {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).take_off();
    }

    /// Records new events, attaching detached programs again.
    pub fn turn_on(&self) -> io::Result<()> {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_off = probes.0.iter().any(|probe| probe.link.is_none());
        let since_ns = monotonic_ns();
        self.teller.tell(|control| {
            control.began = 1;
            control.since_ns = if is_off { since_ns } else { control.since_ns };
        })?;
        probes.put_on()
    }
}
