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

/// Programs at tracepoints, each with the link that keeps it attached.
#[derive(Default)]
pub(crate) struct Probes(Vec<(OwnedFd, Option<OwnedFd>)>);

impl Probes {
    /// Attaches a program.
    pub fn add(&mut self, program: OwnedFd) -> io::Result<()> {
        let link = sys::attach(program.as_fd())?;
        self.0.push((program, Some(link)));
        Ok(())
    }

    /// Number of times that the kernel skipped each program, in the order in which they were added.
    pub fn skipped(&self) -> Vec<u64> {
        self.0.iter().map(|(program, _)| skipped(program.as_fd()).unwrap_or(0)).collect()
    }

    fn put_on(&mut self) -> io::Result<()> {
        for (program, link) in self.0.iter_mut().filter(|(_, link)| link.is_none()) {
            *link = Some(sys::attach(program.as_fd())?);
        }
        Ok(())
    }

    fn take_off(&mut self) {
        self.0.iter_mut().for_each(|(_, link)| *link = None);
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
        let is_off = probes.0.iter().any(|(_, link)| link.is_none());
        let since_ns = monotonic_ns();
        self.teller.tell(|control| {
            control.began = 1;
            control.since_ns = if is_off { since_ns } else { control.since_ns };
        })?;
        probes.put_on()
    }
}
