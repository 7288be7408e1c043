//! Checks a candidate return address by the frames further out: whether rules lead from it to the root, and whether
//! the calls on the way agree.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::method::Method;
use crate::registers::RegisterSet;
use crate::walker::Walker;

use super::called::{Callee, Came, came, may_follow_call};
use super::places::{ReadCode, has_rules};

/// Maximum number of frames that rules may take to reach the root.
const MAX_OUTWARDS: u32 = 4096;
/// Number of frames that suffice if rules cannot be followed to the root.
const ENOUGH_OUTWARDS: u32 = 3;

/// Number of frames further out whose calls are compared with their callees.
const COMPARED_OUTWARDS: u32 = 16;

/// Returns the nearest frame further out than a candidate whose call names another function than the one from which
/// rules led to it: the address of that return address, and how the function may have come to run all the same.
pub(super) fn contradiction<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    caller: &RegisterSet<A>,
) -> Option<(Avma, Came)> {
    let code = walker.code;
    let mut trial = walker.trial(caller);
    let mut pc = Avma(caller.ip());
    for _ in 0..COMPARED_OUTWARDS {
        let next = trial.caller(pc, true, true).ok()?;
        if next.found != Method::Cfi || next.pc == Avma(0) {
            return None;
        }
        let call = pc.offset(-1);
        if has_rules(code, call) {
            let came = came::<A, C>(code, text, next.pc, Callee::at(code, call, Avma(0)));
            if came != Came::Here {
                return Some((next.slot, came));
            }
        }
        pc = next.pc;
    }
    None
}

/// Returns whether rules lead from a caller to the root, or to further code that is not in a file, through return
/// addresses that follow calls.
pub(crate) fn reaches_root<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    caller: &RegisterSet<A>,
) -> bool {
    let code = walker.code;
    let mut trial = walker.trial(caller);
    let (mut pc, mut is_return) = (Avma(caller.ip()), true);
    for outwards in 0..MAX_OUTWARDS {
        if outwards >= ENOUGH_OUTWARDS && matches!(code.locate(pc.offset(-1)), Located::NoInfo) {
            return true;
        }
        match trial.caller(pc, is_return, true) {
            // A zero word can be anywhere on a stack.
            Ok(Walked { pc: Avma(0), .. }) => return outwards >= ENOUGH_OUTWARDS,
            Err(End::Root) => return true,
            Ok(next) if next.is_return && !may_follow_call::<A, M>(trial.memory, next.pc) => {
                return A::ends_thread(next.pc, trial.memory);
            }
            Ok(next) => (pc, is_return) = (next.pc, next.is_return),
            Err(End::BeyondCopy) => return outwards >= ENOUGH_OUTWARDS,
            Err(_) => return false,
        }
    }
    false
}
