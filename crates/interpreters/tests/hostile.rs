//! Memory that holds anything: reading it ends, and what it yields is bounded.

use std::cell::Cell;
use std::fs::File;

use plumb_interpreters::{Mapped, Memory, find};

/// What a process may look like. `seed` 0: every word points at itself, so that all lists are endless.
struct Odd {
    seed: u64,
    reads: Cell<u64>,
}

impl Memory for Odd {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = at.wrapping_add(index as u64);
            let word = at / 8 * 8;
            let value = match self.seed {
                0 => word,
                seed => (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (seed % 64),
            };
            *byte = value.to_le_bytes()[(at % 8) as usize];
        }
        !at.is_multiple_of(127) || self.seed.is_multiple_of(3)
    }
}

/// The version is that of an interpreter that is known, whatever else there is.
struct Versioned(Odd, Cell<bool>);

impl Memory for Versioned {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        if bytes.len() == 4 && !self.1.replace(true) {
            bytes.copy_from_slice(&0x030b_02f0_u32.to_le_bytes());
            return true;
        }
        self.0.read(at, bytes)
    }
}

#[test]
fn any_memory_is_read_to_an_end() {
    let Ok(file) = File::open("/usr/bin/python3.11") else {
        eprintln!("skipped: there is no /usr/bin/python3.11");
        return;
    };
    let code = (0..64).find_map(|page| {
        let mapped = Mapped { start: 0x40_0000 + page * 0x1_0000, offset: page * 0x1_0000 };
        let memory = Versioned(Odd { seed: 0, reads: Cell::new(0) }, Cell::new(false));
        find(&file, mapped, &memory)
    });
    let python = code.expect("it is found");
    for seed in 0..40 {
        let memory = Odd { seed, reads: Cell::new(0) };
        for thread in [0, 1, 1000] {
            if let Ok(frames) = python.frames(&memory, thread) {
                assert!(frames.len() <= 1 << 16);
            }
        }
        assert!(memory.reads.get() < 10_000_000, "seed {seed}: {} reads", memory.reads.get());
    }
}

#[test]
fn other_files_hold_no_interpreter() {
    let file = File::open("/proc/self/exe").expect("it is there");
    let memory = Odd { seed: 5, reads: Cell::new(0) };
    assert!(find(&file, Mapped { start: 0x40_0000, offset: 0 }, &memory).is_none());
}
