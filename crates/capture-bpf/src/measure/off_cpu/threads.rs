//! Decodes the programs' output for a thread that is off the CPU.

use std::mem::offset_of;

use plumb_capture_api::{OffThread, OffUser};
use plumb_unwind::{Architecture, Native, Registers};

use crate::wire::{self, NO_CALL, OFF_HAS_USER, OFF_HAS_USER_32, OFF_SINCE_BEGIN, USER_REGISTERS};

/// Decodes one; `None` if it is too short.
pub(super) fn read(bytes: &[u8]) -> Option<OffThread> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let flags = u32_at(offset_of!(wire::OffThread, flags))?;
    let user = if flags & OFF_HAS_USER != 0 {
        let mut registers = Registers::unknown();
        registers.set(Native::PC, u64_at(offset_of!(wire::OffThread, ip))?);
        for number in 0..u32::from(Native::PC).min(USER_REGISTERS) {
            let at = offset_of!(wire::OffThread, registers) + 8 * number as usize;
            registers.set(number as u16, u64_at(at)?);
        }
        registers.get(Native::SP)?;
        OffUser::At(registers)
    } else if flags & OFF_HAS_USER_32 != 0 {
        OffUser::Compat
    } else {
        OffUser::Absent
    };
    let kernel = bytes.get(offset_of!(wire::OffThread, kernel)..)?.as_chunks::<8>().0;
    let frames = usize::try_from(u32_at(offset_of!(wire::OffThread, kernel_frames))?).ok()?;
    let time_ns = u64_at(offset_of!(wire::OffThread, time_ns))?;
    let call = u32_at(offset_of!(wire::OffThread, call))?;
    Some(OffThread {
        pid: u32_at(offset_of!(wire::OffThread, pid))?,
        tid: u32_at(offset_of!(wire::OffThread, tid))?,
        time_ns,
        // A different key for each read.
        key: time_ns << 2 | OFF_SINCE_BEGIN,
        kernel: kernel.iter().take(frames).map(|word| u64::from_ne_bytes(*word)).collect(),
        user,
        thread_pointer: u64_at(offset_of!(wire::OffThread, thread_pointer))?,
        syscall: (call != NO_CALL).then_some(call),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_their_numbers_and_kernel_frames_their_count() {
        let mut bytes = vec![0; size_of::<wire::OffThread>()];
        let mut put = |at: usize, word: &[u8]| bytes[at..at + word.len()].copy_from_slice(word);
        put(offset_of!(wire::OffThread, flags), &OFF_HAS_USER.to_ne_bytes());
        put(offset_of!(wire::OffThread, kernel_frames), &2_u32.to_ne_bytes());
        put(offset_of!(wire::OffThread, call), &61_u32.to_ne_bytes());
        put(offset_of!(wire::OffThread, ip), &1000_u64.to_ne_bytes());
        put(offset_of!(wire::OffThread, thread_pointer), &2000_u64.to_ne_bytes());
        for number in 0..16_usize {
            put(offset_of!(wire::OffThread, registers) + 8 * number, &(number as u64).to_ne_bytes());
        }
        put(offset_of!(wire::OffThread, kernel), &77_u64.to_ne_bytes());
        let thread = read(&bytes).expect("it is whole");
        let OffUser::At(registers) = thread.user else { panic!("it has a user part") };
        assert_eq!((registers.ip(), registers.sp(), registers.get(12)), (1000, 7, Some(12)));
        assert_eq!((thread.thread_pointer, thread.syscall), (2000, Some(61)));
        assert_eq!(thread.kernel, [77, 0]);
        assert!(read(&bytes[..100]).is_none(), "cut");
        // Counts beyond the available space are rejected.
        bytes[offset_of!(wire::OffThread, kernel_frames)..][..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(read(&bytes).map(|thread| thread.kernel.len()), Some(64));
    }
}
