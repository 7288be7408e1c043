//! Uses the unwinder without the standard library and with its own panic handler. Compiling is the test: if a
//! dependency linked the standard library, there would be two panic handlers.

#![no_std]

use core::panic::PanicInfo;

use plumb_unwind::{Avma, Cache, CodeMap, Located, Memory, ReadError, Registers, walk};

extern crate alloc;

struct Nothing;

impl CodeMap for Nothing {
    type Bytes = &'static [u8];

    fn locate(&self, _: Avma) -> Located<'_, &'static [u8]> {
        Located::Unmapped
    }
}

impl Memory for Nothing {
    fn read_u64(&mut self, _: Avma) -> Result<u64, ReadError> {
        Err(ReadError::Unreadable)
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Returns the number of frames that the walk from `ip` and `sp` yields.
pub fn plumb_frames(ip: u64, sp: u64) -> usize {
    let mut frames = alloc::vec::Vec::new();
    walk(&Nothing, &mut Nothing, &mut Cache::default(), &Registers::new(ip, sp), 10, &mut frames);
    frames.len()
}
