//! Instructions of aarch64, decoded by the unwinder, which follows them in innermost frames.

use plumb_unwind::aarch64::{Access, Effect, FP, SP, X30, effect};

use super::effect::{After, FramePointer, Pointer, ReturnAddress, Saved, State};
use super::exit::Exit;

/// Length of an instruction in bytes.
pub(super) const LENGTH: usize = 4;
const NOP: u32 = 0xd503_201f;
const WORD: i32 = 8;

/// An instruction.
#[derive(Clone, Copy)]
pub(super) struct Instruction {
    at: u64,
    word: u32,
}

/// Decodes the instruction at this offset, whose address is `at`. `None` if there is none.
pub(super) fn decode(bytes: &[u8], offset: usize, at: u64) -> Option<Instruction> {
    let word = bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    at.is_multiple_of(LENGTH as u64).then_some(Instruction { at, word })
}

impl Instruction {
    /// Address of the first byte.
    pub(super) fn address(self) -> u64 {
        self.at
    }

    /// Returns whether the instruction is padding.
    pub(super) fn is_padding(self) -> bool {
        matches!(self.word, NOP | 0)
    }

    /// Returns the way on from the instruction.
    pub(super) fn exit(self) -> Exit {
        let to = |distance| Some(self.at.wrapping_add_signed(distance));
        match effect(self.word) {
            Effect::Call => Exit::Call(called(self.word, self.at)),
            Effect::Branch(distance) => Exit::Jump { to: to(distance), is_conditional: false },
            Effect::MayBranch(distance) => Exit::Jump { to: to(distance), is_conditional: true },
            Effect::Jump(_) => Exit::Indirect,
            Effect::Return => Exit::Return,
            Effect::Stops => Exit::Nowhere,
            _ => Exit::Next,
        }
    }

    /// Returns the state after the instruction, if it continues with the next one.
    pub(super) fn after(self, mut state: State) -> After {
        let is_known = match effect(self.word) {
            Effect::Access(one) => access(&mut state, one).is_some(),
            Effect::Add { to, from, offset } => {
                let base = pointer(from).and_then(|from| state.below(from));
                let below = base.zip(i32::try_from(offset).ok()).and_then(|(base, by)| base.checked_sub(by));
                match pointer(to) {
                    Some(to) => state.point(to, below),
                    None => write(&mut state, to),
                }
                true
            }
            Effect::Writes(to) | Effect::Move { to, .. } => {
                write(&mut state, to);
                true
            }
            Effect::Loads(registers) => {
                registers.into_iter().flatten().for_each(|register| write(&mut state, register));
                true
            }
            _ => true,
        };
        After::of(is_known.then_some(state))
    }
}

/// Returns whether an instruction is a call.
pub(super) fn is_call(word: u32) -> bool {
    effect(word) == Effect::Call
}

/// Returns the function that a call names.
pub(super) fn called(word: u32, at: u64) -> Option<u64> {
    let distance = i64::from((word << 6).cast_signed() >> 4);
    (word >> 26 == 0x25).then(|| at.wrapping_add_signed(distance))
}

/// Returns the address that two instructions compute: `adrp` and `add` of the same register.
pub(super) fn computed([page, add]: [u32; 2], at: u64) -> Option<u64> {
    let register = page & 31;
    let is_pair =
        page & 0x9f00_0000 == 0x9000_0000 && add & 0xffc0_03ff == 0x9100_0000 | register << 5 | register;
    let pages = i64::from(((page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3) << 11).wrapping_shl(32) >> 43;
    let base = (at & !0xfff).wrapping_add_signed(pages << 12);
    is_pair.then(|| base.wrapping_add(u64::from(add >> 10 & 0xfff)))
}

/// Returns the register that a frame is found by, if this is one.
fn pointer(register: u16) -> Option<Pointer> {
    match register {
        SP => Some(Pointer::Stack),
        FP => Some(Pointer::Frame),
        _ => None,
    }
}

/// Records that a register was overwritten.
fn write(state: &mut State, register: u16) {
    match register {
        SP => state.sp = None,
        FP => state.lose_fp(),
        X30 if state.ra == ReturnAddress::InLink => state.ra = ReturnAddress::Lost,
        _ => {}
    }
}

/// Records a load or store on the stack.
fn access(state: &mut State, access: Access) -> Option<()> {
    let first =
        i32::try_from(access.offset).ok().zip(state.sp).and_then(|(offset, sp)| offset.checked_sub(sp));
    for (register, index) in access.registers.into_iter().zip(0..) {
        let slot = first.and_then(|first| first.checked_add(WORD * index));
        match register {
            Some(FP) if access.loads && slot.map(Saved::At) == Some(state.saved) => {
                (state.saved, state.fp) = (Saved::Not, FramePointer::Other);
            }
            Some(X30) if access.loads && slot.map(ReturnAddress::At) == Some(state.ra) => {
                state.ra = ReturnAddress::InLink;
            }
            Some(register) if access.loads => write(state, register),
            Some(FP) if state.saved == Saved::Not => state.saved = slot.map_or(Saved::Lost, Saved::At),
            Some(X30) if state.ra == ReturnAddress::InLink => {
                state.ra = slot.map_or(ReturnAddress::Lost, ReturnAddress::At);
            }
            _ => {}
        }
    }
    state.go_down(i32::try_from(access.moved).ok()?.checked_neg()?)
}
