//! The stack of a sample in a record: chooses what of the record its frames are made from.

use linux_perf_event_reader::constants as perf;
use plumb_capture_api::Script;
use plumb_profile::Truncation;
use plumb_unwind::{Architecture, LinuxRegisters, Native, Registers};

use super::builder::StackBuilder;
use super::copied::CopiedStack;
use super::copy::StackCopy;
use super::draft::Ending;
use super::{callchain, kernel};
use crate::perf_records::{self, Stack};
use crate::sideband::SidebandQueue;

/// The registers of a sample by DWARF number; `None` if the program counter or the stack pointer is missing.
pub(crate) fn registers(sampled: &perf_records::Registers<'_>) -> Option<Registers> {
    let mut registers = Registers::unknown();
    sampled.by_dwarf_number().for_each(|(number, value)| registers.set(number, value));
    [Native::PC, Native::SP].iter().all(|&number| registers.get(number).is_some()).then_some(registers)
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
    if ![Native::NAME, ""].contains(&stack.out.profile.meta.arch.as_str()) {
        return callchain::other_architecture(stack, sample, space);
    }
    if sampled.abi == perf::PERF_SAMPLE_REGS_ABI_32 {
        return callchain::only_pc(stack, &sampled, space);
    }
    let Some(registers) = registers(&sampled) else {
        return Ending::Truncation(Truncation::NoUserStack, None);
    };
    let running = stack.processes.scope.is_live().then_some(stack.pid);
    let copy = StackCopy::new(registers.sp(), bytes, full, running);
    let mut copied = CopiedStack::new(registers, copy, std::mem::take(&mut stack.stacks.walked));
    let (space, end) = copied.walk(stack, space, (sample.time, sample.in_kernel));
    let script = scripts.of(stack.tid, sample.time);
    let ending = copied.append_to(stack, space, end, script.as_ref());
    stack.stacks.walked = copied.into_walked();
    ending
}
