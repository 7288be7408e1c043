//! Instructions of aarch64 by which HotSpot enters and leaves functions (Arm architecture reference manual, C6.2).

use plumb_unwind::aarch64::{Access, Effect, SP, X29, X30, effect};

/// Most instructions from the removed frame to the return: whether a safepoint is requested is asked in between.
pub(super) const MOST_LEAVING: usize = 6;

fn effects(code: &[u8]) -> impl Iterator<Item = Effect> {
    code.as_chunks().0.iter().map(|word| effect(u32::from_le_bytes(*word)))
}

/// Whether code returns within some instructions that leave the stack pointer and the link register alone: it has no frame any more.
pub(super) fn leaves(code: &[u8]) -> bool {
    let mut before = effects(code).take_while(|&effect| !restores(effect));
    before.any(|effect| effect == Effect::Return)
}

/// Whether an instruction removes a frame, or ends the way to a return: `add sp, sp, …`, `ldp …, [sp, …]`, `ldr x30, …`, `b`, `br`, calls.
fn restores(effect: Effect) -> bool {
    match effect {
        Effect::Add { to: SP, from: SP, offset } => offset > 0,
        Effect::Access(Access { loads, registers: [first, second], .. }) => {
            loads && (second.is_some() || first == Some(X30))
        }
        Effect::Loads([first, _]) => first == Some(X30),
        Effect::Writes(SP) | Effect::Branch(_) | Effect::Jump(_) | Effect::Call => true,
        _ => false,
    }
}

/// Offset of the instruction that saves the frame pointer and the link register.
pub(super) fn saves_pointer(code: &[u8]) -> Option<usize> {
    let saves = |effect| match effect {
        Effect::Access(Access { loads, moved, registers, .. }) => {
            !loads && moved == 0 && registers == [Some(X29), Some(X30)]
        }
        _ => false,
    };
    effects(code).position(saves).map(|index| 4 * index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_function_that_has_no_frame_any_more_is_recognized() {
        // ldr x8, [x28, #n]; cmp sp, x8; b.hi; ret
        let ret = 0xd65f_03c0;
        let poll = [0xf941_a788, 0xeb28_63ff, 0x5400_00a8, ret];
        assert!(leaves(&code(&poll)));
        let add = 0x9100_83ff;
        assert!(!leaves(&code(&[&[add][..], &poll].concat())), "its frame is still there");
        let load = 0xa941_7bfd;
        assert!(
            !leaves(&code(&[&[load, add][..], &poll].concat())),
            "nor is it before the registers are loaded"
        );
    }

    #[test]
    fn the_frame_pointer_is_saved_by_a_pair() {
        // sub sp, sp, #0x20; stp x29, x30, [sp, #0x10]
        assert_eq!(saves_pointer(&code(&[0xd100_83ff, 0xa901_7bfd])), Some(4));
    }
}
