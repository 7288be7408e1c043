//! Whether rules lead from a word on the stack to the root.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::registers::RegisterSet;
use crate::walker::Walker;

use super::called::may_follow_call;

/// So many frames outwards rules may take to the root.
const MAX_OUTWARDS: u32 = 4096;
/// So many are enough where they can't be followed to the root.
const ENOUGH_OUTWARDS: u32 = 3;

/// Whether rules lead from a caller to the root, or to code that is in no file again, over return addresses behind calls.
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
            // A zero may lie anywhere on a stack.
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
