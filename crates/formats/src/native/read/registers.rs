//! Reads the table of user registers.

use plumb_profile::{EventId, FrameId, Profile, REGISTERS, RegisterSample, ThreadId};

use super::error::ReadError;
use super::values::TableReader;
use crate::native::registers::Layout;

pub(super) fn read(table: &TableReader<'_>, layout: &Layout, profile: &mut Profile) -> Result<(), ReadError> {
    let (times, ips) = (table.u64s("time_ns")?, table.u64s("ip")?);
    let (threads, events, frames) = (table.u32s("thread")?, table.u32s("event")?, table.u32s("frame")?);
    let mut columns = Vec::with_capacity(layout.columns.len());
    for &name in layout.columns {
        columns.push(table.u64s(name)?);
    }
    for (row, (time_ns, ip)) in times.into_iter().zip(ips).enumerate() {
        let thread: Option<ThreadId> = profile.threads.check(threads[row].into());
        let event: Option<EventId> = profile.events.check(events[row].into());
        let frame: Option<FrameId> = profile.frames.check(frames[row].into());
        let mut values = [0; REGISTERS];
        values.iter_mut().zip(&columns).for_each(|(value, column)| *value = column[row]);
        profile.registers.push(RegisterSample {
            time_ns,
            thread: thread.ok_or_else(|| table.bad("thread", row, "no row of the table of threads"))?,
            event: event.ok_or_else(|| table.bad("event", row, "no row of the table of events"))?,
            frame: frame.ok_or_else(|| table.bad("frame", row, "no row of the table of frames"))?,
            ip,
            values,
        });
    }
    Ok(())
}
