//! User stacks that the kernel unwound by frame pointers, and samples with nothing but the program counter.

use plumb_profile::{Found, FrameId, Truncation};
use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::x86_64::X86_64;
use plumb_unwind::{Avma, End, Isa, LinuxRegisters, Memory, ReadError, RegisterSet};

use super::builder::StackBuilder;
use super::draft::Ending;
use super::kernel;
use crate::perf_records;
use crate::spaces::SpaceId;

/// A sample of another architecture: only its kernel's callchain is known.
pub(super) fn other_architecture(
    stack: &mut StackBuilder<'_>,
    sample: &perf_records::Sample<'_>,
    space: SpaceId,
) -> Ending {
    match push_user(stack, sample, Some(space)) {
        Ending::Truncation(Truncation::NoUserStack, dso) => {
            Ending::Truncation(Truncation::OtherArchitecture, dso)
        }
        ending => ending,
    }
}

/// A sample of a 32-bit process: only its program counter is known.
pub(super) fn only_pc<A: LinuxRegisters>(
    stack: &mut StackBuilder<'_>,
    sampled: &perf_records::Registers<'_>,
    space: SpaceId,
) -> Ending {
    let ip = sampled.by_dwarf_number::<A>().find(|(number, _)| *number == A::PC);
    let cut = Truncation::OtherArchitecture;
    ip.map_or(Ending::Truncation(cut, None), |(_, ip)| push_pc(stack, space, ip, cut))
}

/// Appends the frame of a program counter. Its callers are unknown for a reason.
fn push_pc(stack: &mut StackBuilder<'_>, space: SpaceId, ip: u64, cut: Truncation) -> Ending {
    let (mut frames, draft) = stack.frames(space);
    let frame = frames.at(ip, false, Found::Sampled);
    draft.leaf_first.push(frame);
    Ending::Truncation(cut, frames.dso(frame))
}

/// Appends the user part of the kernel's own callchain, for recordings without registers.
pub(super) fn push_user(
    stack: &mut StackBuilder<'_>,
    sample: &perf_records::Sample<'_>,
    space: Option<SpaceId>,
) -> Ending {
    if space.is_none() && sample.in_kernel {
        return Ending::Absent;
    }
    let links = sample.callchain.into_iter().flat_map(kernel::links).filter(|link| !link.in_kernel);
    push_links(stack, links, space, sample.ip.filter(|_| !sample.in_kernel))
}

/// Appends user frames by their addresses; without any the program counter alone.
pub(super) fn push_links(
    stack: &mut StackBuilder<'_>,
    links: impl Iterator<Item = kernel::Link>,
    space: Option<SpaceId>,
    ip: Option<u64>,
) -> Ending {
    let Some(space) = space else { return Ending::Truncation(Truncation::NotMapped, None) };
    let (mut frames, draft) = stack.frames(space);
    let mut outermost = None;
    for link in links {
        let frame = frames.at(link.address, link.is_return, Found::Sampled);
        draft.leaf_first.push(frame);
        outermost = Some((link.address.saturating_sub(link.is_return.into()), frame));
    }
    match (outermost, ip) {
        (Some((call, frame)), _) => end_at(stack, space, call, frame),
        (None, Some(ip)) => push_pc(stack, space, ip, Truncation::NoUserStack),
        (None, None) => Ending::Truncation(Truncation::NoUserStack, None),
    }
}

/// Whether a callchain with its outermost call at `call` reaches the root: only if that function's rules say that it
/// has no caller. Code without frame pointers truncates such a chain silently.
fn end_at(stack: &mut StackBuilder<'_>, space: SpaceId, call: u64, outermost: FrameId) -> Ending {
    let walked = &mut stack.stacks.walked;
    let spaces = &mut stack.processes.spaces;
    let end = match spaces.isa() {
        Some(Isa::Aarch64) => {
            spaces.walk(space, &RegisterSet::<Aarch64>::new(call, 0), &mut NoMemory, walked)
        }
        Some(Isa::X86_64) => spaces.walk(space, &RegisterSet::<X86_64>::new(call, 0), &mut NoMemory, walked),
        Some(Isa::Arm) | None => End::NoUnwindInfo,
    };
    match end {
        End::Root => Ending::Root,
        End::NotMapped => Ending::Truncation(Truncation::NotMapped, None),
        _ => Ending::Truncation(Truncation::NoUserStack, stack.out.profile.frames[outermost].dso),
    }
}

/// No memory at all: unwinding then uses rules alone.
struct NoMemory;

impl Memory for NoMemory {
    fn read_u64(&mut self, _at: Avma) -> Result<u64, ReadError> {
        Err(ReadError::Unreadable)
    }
}
