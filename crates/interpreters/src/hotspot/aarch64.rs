//! Instructions of aarch64 by which HotSpot enters and leaves functions (Arm architecture reference manual, C6.2).

/// Most instructions from the removed frame to the return: whether a safepoint is requested is asked in between.
pub(super) const MOST_LEAVING: usize = 6;

/// `ret`
const RETURN: u32 = 0xd65f_03c0;
/// `stp x29, x30, [sp, #n]`, without `n`
const SAVE: u32 = 0xa900_7bfd;

fn words(code: &[u8]) -> impl Iterator<Item = u32> {
    code.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

/// Whether code returns within some instructions that leave the stack pointer and the link register alone: it has no frame any more.
pub(super) fn leaves(code: &[u8]) -> bool {
    let mut before = words(code).take_while(|&word| !restores(word));
    before.any(|word| word == RETURN)
}

/// Whether an instruction removes a frame, or ends the way to a return: `add sp, sp, …`, `ldp …, [sp, …]`, `ldr x30, …`, `b`, `br`, calls.
fn restores(word: u32) -> bool {
    let adds = word & 0xff80_03ff == 0x9100_03ff || word & 0xffe0_ffff == 0x8b20_63ff;
    let loads = word & 0xfe40_03e0 == 0xa840_03e0
        || word & 0xffc0_001f == 0xf940_001e
        || word & 0xffe0_0c1f == 0xf840_041e;
    let jumps = word >> 26 == 0b00_0101 || word & 0xffff_fc1f == 0xd61f_0000;
    adds || loads || jumps || is_call(word.to_le_bytes())
}

/// Offset of the instruction that saves the frame pointer and the link register.
pub(super) fn saves_pointer(code: &[u8]) -> Option<usize> {
    words(code).position(|word| word & 0xffc0_7fff == SAVE).map(|index| 4 * index)
}

/// Whether an instruction is a call: `bl`, `blr`.
pub(super) fn is_call(word: [u8; 4]) -> bool {
    let word = u32::from_le_bytes(word);
    word >> 26 == 0b10_0101 || word & 0xffff_fc1f == 0xd63f_0000
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
        let poll = [0xf941_a788, 0xeb28_63ff, 0x5400_00a8, RETURN];
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
        assert!(is_call(0x9400_0010_u32.to_le_bytes()) && is_call(0xd63f_0100_u32.to_le_bytes()));
        assert!(!is_call(RETURN.to_le_bytes()));
    }
}
