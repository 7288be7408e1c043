//! The stack of a sample in a record: chooses what of the record its frames are made from.

use linux_perf_event_reader::constants as perf;
use plumb_capture_api::Script;
use plumb_profile::Truncation;
use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::x86_64::X86_64;
use plumb_unwind::{Isa, LinuxRegisters, RegisterSet};

use super::builder::StackBuilder;
use super::copied::CopiedStack;
use super::copy::StackCopy;
use super::draft::Ending;
use super::{callchain, kernel};
use crate::perf_records::{self, Stack};
use crate::sideband::SidebandQueue;
use crate::spaces::SpaceId;

/// The registers of a sample by DWARF number; `None` if the program counter or the stack pointer is missing.
pub(crate) fn registers<A: LinuxRegisters>(sampled: &perf_records::Registers<'_>) -> Option<RegisterSet<A>> {
    let mut registers = RegisterSet::unknown();
    sampled.by_dwarf_number::<A>().for_each(|(number, value)| registers.set(number, value));
    [A::PC, A::SP].iter().all(|&number| registers.get(number).is_some()).then_some(registers)
}

/// Appends the kernel frames of a record. `before`: how many of these, innermost first, belong to the sampling itself.
pub(crate) fn push_kernel(
    stack: &mut StackBuilder<'_>,
    sample: &perf_records::Sample<'_>,
    before: impl FnOnce(&mut dyn Iterator<Item = u64>) -> usize,
) {
    if let Some(callchain) = sample.callchain {
        let links = || kernel::links(callchain).filter(|link| link.in_kernel);
        let before = before(&mut links().map(|link| link.address));
        stack.push_kernel(links().skip(before).map(|link| (link.address, link.is_return)));
    }
    if let (true, true, Some(ip)) = (stack.draft.leaf_first.is_empty(), sample.in_kernel, sample.ip) {
        stack.push_kernel(std::iter::once((ip, false)));
    }
}

/// Appends the user frames of a record's sample, innermost first, and returns how they end. `scripts`: reported frames of
/// interpreted programs.
pub(crate) fn push_user(
    stack: &mut StackBuilder<'_>,
    sample: &perf_records::Sample<'_>,
    scripts: &mut SidebandQueue<Script>,
) -> Ending {
    let space = stack.space();
    if !sample.asked_registers {
        return callchain::push_user(stack, sample, space);
    }
    let Some(sampled) = sample.registers else { return Ending::Absent };
    let (bytes, full) = match sample.stack {
        Stack::Copied { bytes, full } => (bytes, full),
        // The kernel copies nothing for a task without memory: it is exiting.
        Stack::None if sample.in_kernel => return Ending::Absent,
        Stack::None => (&[][..], false),
        Stack::NotAsked => return callchain::push_user(stack, sample, space),
    };
    let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
    let copied = RecordedStack { space, sampled, bytes, full };
    match stack.processes.spaces.isa() {
        Some(Isa::X86_64) => copied.push::<X86_64>(stack, sample, scripts),
        Some(Isa::Aarch64) => copied.push::<Aarch64>(stack, sample, scripts),
        Some(Isa::Arm) | None => callchain::other_architecture(stack, sample, space),
    }
}

/// The registers and the copy of the stack in a record, of a process with a known address space.
struct RecordedStack<'r> {
    space: SpaceId,
    sampled: perf_records::Registers<'r>,
    bytes: &'r [u8],
    /// Whether the full requested size was copied.
    full: bool,
}

impl RecordedStack<'_> {
    /// Unwinds the stack by the rules of an architecture and appends its frames.
    fn push<A: LinuxRegisters>(
        self,
        stack: &mut StackBuilder<'_>,
        sample: &perf_records::Sample<'_>,
        scripts: &mut SidebandQueue<Script>,
    ) -> Ending {
        let Self { space, sampled, bytes, full } = self;
        if sampled.abi == perf::PERF_SAMPLE_REGS_ABI_32 {
            return callchain::only_pc::<A>(stack, &sampled, space);
        }
        let Some(mut registers) = registers::<A>(&sampled) else {
            return Ending::Truncation(Truncation::NoUserStack, None);
        };
        if let (Some(number), Some(bytes)) = (A::VECTOR_GRANULES, stack.stacks.vector_bytes)
            && registers.get(number).is_none()
        {
            registers.set(number, bytes / 8);
        }
        let running = stack.processes.scope.is_live().then_some(stack.pid);
        let copy = StackCopy::new(registers.sp(), bytes, full, running);
        let mut copied = CopiedStack::new(registers, copy, std::mem::take(&mut stack.stacks.walked));
        let (space, end) = copied.walk(stack, space, (sample.time, sample.in_kernel));
        let script = scripts.of(stack.tid, sample.time);
        let ending = copied.append_to(stack, space, end, script.as_ref());
        stack.stacks.walked = copied.into_walked();
        ending
    }
}
