//! Short fuzzing of the walks for 64-bit and 32-bit ARM in every test run: random unwind information, registers and
//! stack must neither panic nor take long.

mod elf;

use std::time::{Duration, Instant};

use plumb_fixtures::random::Random;
use plumb_fixtures::{Requirement, skip};
use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::arm::Arm;
use plumb_unwind::{
    Architecture, Avma, Cache, CodeMap, Located, Memory, Module, ReadError, RegisterSet, Section, Sections,
    Svma, walk,
};

const LIMIT: usize = 200;
const CODE: u64 = 0x1_0800;
const STACK: u64 = 0x7f00_0000;

/// Address space with a module without bias, code without rules, and unmapped memory.
struct Process(Module<Vec<u8>>);

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 >> 16 {
            0 => Located::Module { module: &self.0, bias: 0 },
            1 => Located::NoInfo,
            _ => Located::Unmapped,
        }
    }
}

/// Random words that are the same on every read: often code or stack addresses, or the kernel's sigreturn code.
/// Counts the reads.
struct Words {
    seed: u64,
    reads: usize,
}

impl Memory for Words {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.reads += 1;
        let mut random = Random((at.0 ^ self.seed) | 1);
        let half = |random: &mut Random| match random.next() >> 8 & 15 {
            0..=11 => random.next() % CODE,
            12..=14 => STACK + random.next() % 65536,
            _ => random.next() & 0xffff_ffff,
        };
        Ok(match random.next() >> 8 & 15 {
            0 => return Err(ReadError::Unreadable),
            1 => 0xd400_0001_d280_1168,
            2 => 0xef00_0000_e3a0_70ad,
            3..=9 => half(&mut random),
            10 => random.next(),
            _ => half(&mut random) << 32 | half(&mut random),
        })
    }
}

/// Random words, many of which are short distances and simple instructions.
fn words(random: &mut Random, address: u64, count: u64) -> Section<Vec<u8>> {
    let word = |index: u64, random: &mut Random| match random.next() >> 8 & 7 {
        0 => random.next() as u32,
        1 => 0x8000_0000 | (random.next() as u32 & 0x00bf_bfbf),
        _ if index % 2 == 1 => 0x8000_0000 | (random.next() as u32 & 0x003f_afb0),
        _ => (index as u32).wrapping_mul(32).wrapping_sub(address as u32 + 4 * index as u32) & 0x7fff_ffff,
    };
    let bytes = (0..count).flat_map(|index| word(index, random).to_le_bytes()).collect();
    Section { address: Svma(address), bytes }
}

/// The call-frame information of a real file, at the address range of [`CODE`]. The 64-bit rules are used for 32 bits
/// too.
fn seed() -> Option<Section<Vec<u8>>> {
    elf::sections(&std::fs::read("/usr/aarch64-linux-gnu/lib/libgcc_s.so.1").ok()?)?.eh_frame
}

/// Returns that section with some random bytes changed.
fn frames(seed: &Section<Vec<u8>>, random: &mut Random) -> Option<Section<Vec<u8>>> {
    let mut section = seed.clone();
    section.bytes.truncate(16 << 10);
    for _ in 0..random.next() % 20 {
        let at = random.next() as usize % section.bytes.len();
        section.bytes[at] = (random.next() >> 8) as u8;
    }
    Some(section)
}

fn fuzz<A: Architecture>(number: u64) {
    let Some(seed) = seed() else {
        skip(Requirement::Cross, "the C compiler's library for aarch64 is not on this machine");
        return;
    };
    let mut random = Random(number);
    let began = Instant::now();
    let (mut rounds, mut deep) = (0, 0);
    while began.elapsed() < Duration::from_secs(2) {
        let mut sections = Sections { isa: A::ISA, ..Sections::default() };
        match random.next() >> 8 & 3 {
            0 => sections.debug_frame = frames(&seed, &mut random),
            _ if A::WORD == 8 => sections.eh_frame = frames(&seed, &mut random),
            _ => {
                sections.exidx = Some(words(&mut random, 0x1_0000, 1000));
                sections.extab = Some(words(&mut random, 0x2_0000, 100));
            }
        }
        let process = Process(Module::new(sections));
        let mut cache = Cache::default();
        for _ in 0..20 {
            let mut registers = RegisterSet::<A>::new(random.next() % CODE, STACK + random.next() % 4096);
            for register in 0..A::COUNT {
                match random.next() >> 8 & 15 {
                    0 => registers.set(register, random.next()),
                    1 => registers.forget(register),
                    2 if Some(register) != A::LR => registers.set(register, random.next() % CODE),
                    _ if Some(register) == A::LR => registers.set(register, random.next() % CODE),
                    _ if register != A::PC => registers.set(register, STACK + (random.next() % 512) * 8),
                    _ => {}
                }
            }
            let mut memory = Words { seed: random.next(), reads: 0 };
            let mut frames = Vec::new();
            walk(&process, &mut memory, &mut cache, &registers, LIMIT, &mut frames);
            assert!(frames.len() <= LIMIT);
            assert!(memory.reads <= LIMIT * 40 * 512, "{} reads", memory.reads);
            deep += usize::from(frames.len() > 3);
        }
        rounds += 1;
    }
    println!("{:?}: {rounds} modules, {deep} walks of more than three frames", A::ISA);
    assert!(deep > rounds / 20, "walks get somewhere: {deep} in {rounds} rounds");
}

#[test]
fn random_words_for_64_bits() {
    fuzz::<Aarch64>(0x1234_5678_9abc_def1);
}

#[test]
fn random_words_for_32_bits() {
    fuzz::<Arm>(0x1234_5678_9abc_def3);
}
