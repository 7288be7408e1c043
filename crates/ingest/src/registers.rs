//! User registers of samples that interrupted user code, for who asks later what data an instruction worked on.
//!
//! Not here: registers to unwind with, which are forgotten with their sample.

use plumb_profile::{EventId, Found, REGISTERS, RegisterSample};
use plumb_unwind::Registers;

use super::Ingest;

impl Ingest {
    /// Offers the registers of a sample at `time_ns` that interrupted this thread's user code at `ip`, by DWARF number. They are dropped if
    /// it is not known what is mapped there.
    pub fn registers(
        &mut self,
        event: EventId,
        (pid, tid): (u32, u32),
        (time_ns, ip): (u64, u64),
        values: [u64; REGISTERS],
    ) {
        let Some(space) = self.processes.tasks.space(pid) else { return };
        let profile = &mut self.out.profile;
        let frame = self.processes.spaces.user_frame(profile, space, (ip, false, Found::Sampled));
        let thread = self.processes.note_sample(profile, pid, tid);
        profile.registers.offer(RegisterSample { time_ns, thread, event, frame, ip, values });
    }
}

/// All registers, those that are not known as 0.
pub(crate) fn register_values(registers: &Registers) -> [u64; REGISTERS] {
    let mut values = [0; REGISTERS];
    for (value, number) in values.iter_mut().zip(0..) {
        *value = if number == 7 { registers.sp() } else { registers.get(number).unwrap_or(0) };
    }
    values
}
