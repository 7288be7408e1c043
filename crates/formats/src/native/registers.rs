//! Writes the table of user registers.
//!
//! The table exists only if registers were recorded: a recording without them looks as older versions wrote it.

use std::io::{Seek, Write};

use plumb_profile::{Profile, REGISTERS};
use zip::ZipWriter;

use super::column::Packing::{Delta, Dictionary, Plain};
use super::table::TableWriter;
use super::write::{self, WriteError, row};

/// A machine's table, and its register columns by DWARF number.
pub(super) struct Layout {
    pub table: &'static str,
    /// The table's entry in the archive.
    entry: &'static str,
    pub columns: &'static [&'static str],
}

/// The table of x86-64.
const X86_64: Layout = Layout { table: "registers", entry: "registers.parquet", columns: &X86_64_COLUMNS };
/// The table of aarch64, which older readers skip.
const AARCH64: Layout =
    Layout { table: "registers_aarch64", entry: "registers_aarch64.parquet", columns: &AARCH64_COLUMNS };

/// The tables that a recording may have.
pub(super) const LAYOUTS: [&Layout; 2] = [&X86_64, &AARCH64];

const AARCH64_COLUMNS: [&str; REGISTERS] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
    "sp",
];
const X86_64_COLUMNS: [&str; 16] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// Adds the table, unless it is empty.
pub(super) fn add<W: Write + Seek>(profile: &Profile, archive: &mut ZipWriter<W>) -> Result<(), WriteError> {
    let rows = profile.registers.rows();
    if rows.is_empty() {
        return Ok(());
    }
    let Layout { entry, columns, .. } = if profile.meta.arch == "aarch64" { AARCH64 } else { X86_64 };
    let mut table = TableWriter::default()
        .u64s("time_ns", Delta, rows.iter().map(|row| row.time_ns))
        .u32s("thread", Dictionary, rows.iter().map(|of| row(of.thread)))
        .u32s("event", Dictionary, rows.iter().map(|of| row(of.event)))
        .u32s("frame", Dictionary, rows.iter().map(|of| row(of.frame)))
        .u64s("ip", Dictionary, rows.iter().map(|row| row.ip));
    for (number, &name) in columns.iter().enumerate() {
        table = table.u64s(name, Plain, rows.iter().map(|row| row.values[number]));
    }
    write::add_table(archive, entry, table)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use plumb_profile::{
        Address, Event, EventId, Found, Frame, FrameKind, Id, Process, RegisterSample, Thread,
    };

    use super::*;

    /// A recording of one row of registers, written and read again.
    fn again(arch: &str) -> Profile {
        let mut profile = Profile::default();
        profile.meta.arch = arch.into();
        let empty = profile.strings.empty();
        let process = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        let thread = profile.threads.push(Thread { process, tid: 1, comm: empty });
        let event = profile.events.push(Event { name: empty, unit: empty });
        let (kind, found) = (FrameKind::User, Found::Sampled);
        let frame =
            profile.frames.add(Frame { kind, dso: None, address: Address(8), is_return: false, found });
        let values = std::array::from_fn(|number| number as u64 + 100);
        profile.registers.push(RegisterSample { time_ns: 7, thread, event, frame, ip: 8, values });
        assert_eq!(event, EventId::from_index(0));
        let mut bytes = Cursor::new(Vec::new());
        crate::native::write(&profile, &mut bytes).expect("it can be written");
        crate::native::read(bytes).expect("it can be read")
    }

    #[test]
    fn registers_are_those_of_the_machine() {
        let of = |arch| again(arch).registers.rows()[0].values;
        assert_eq!(of("aarch64"), std::array::from_fn(|number| number as u64 + 100));
        let x86 = of("x86_64");
        assert_eq!((x86[15], x86[16], x86[31]), (115, 0, 0));
    }
}
