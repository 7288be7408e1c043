//! User registers of samples in user code, kept for questions about the data that an instruction worked on.
//!
//! Elsewhere: registers for unwinding, which are dropped with their sample.

use plumb_profile::{EventId, Found, Profile, REGISTERS, RegisterSample, Sample};
use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::x86_64::X86_64;
use plumb_unwind::{Architecture, Isa, LinuxRegisters, RegisterSet};

use crate::stacks::registers;
use crate::{Ingest, perf_records};

impl Ingest {
    /// Adds the registers of a sample at `time_ns` that interrupted this thread's user code at `ip`, by DWARF number. They are dropped if
    /// the mapping at `ip` is unknown.
    pub fn registers(
        &mut self,
        event: EventId,
        (pid, tid): (u32, u32),
        (time_ns, ip): (u64, u64),
        values: [u64; REGISTERS],
    ) {
        let Self { processes, out, .. } = self;
        offer(&mut out.profile, |profile| {
            let space = processes.tasks.space(pid)?;
            let frame = processes.spaces.user_frame(profile, space, (ip, false, Found::Sampled));
            let thread = processes.note_sample(profile, pid, tid);
            Some(RegisterSample { time_ns, thread, event, frame, ip, values })
        });
    }

    /// Adds the registers in the record of a sample.
    pub(crate) fn registers_of_record(
        &mut self,
        pid: u32,
        sample: &Sample,
        recorded: &perf_records::Registers<'_>,
    ) {
        let &Sample { time_ns, thread, event, .. } = sample;
        let spaces = &mut self.processes.spaces;
        let Some(space) = self.processes.tasks.space(pid) else { return };
        offer(&mut self.out.profile, |profile| {
            let (ip, values) = match spaces.isa()? {
                Isa::X86_64 => recorded_values::<X86_64>(recorded),
                Isa::Aarch64 => recorded_values::<Aarch64>(recorded),
                Isa::Arm => None,
            }?;
            let frame = spaces.user_frame(profile, space, (ip, false, Found::Sampled));
            Some(RegisterSample { time_ns, thread, event, frame, ip, values })
        });
    }
}

/// The program counter and the other registers of a record.
fn recorded_values<A: LinuxRegisters>(
    recorded: &perf_records::Registers<'_>,
) -> Option<(u64, [u64; REGISTERS])> {
    let registers = registers::<A>(recorded)?;
    Some((registers.ip(), register_values(&registers)))
}

/// Adds registers to a profile, if they are to be kept; `make` looks up the rows they refer to.
fn offer(profile: &mut Profile, make: impl FnOnce(&mut Profile) -> Option<RegisterSample>) {
    let mut kept = std::mem::take(&mut profile.registers);
    kept.offer(|| make(profile));
    profile.registers = kept;
}

/// All registers of a sample but the program counter; unknown ones are 0.
fn register_values<A: Architecture>(registers: &RegisterSet<A>) -> [u64; REGISTERS] {
    let value = |number: usize| registers.get(number as u16).filter(|_| number < usize::from(A::PC));
    std::array::from_fn(|number| value(number).unwrap_or(0))
}
