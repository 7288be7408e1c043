//! A little fuzzing with every test run: real `.eh_frame` with bytes changed, and stacks of random words, must neither
//! panic nor take long. The real fuzzing is in fuzz/.

mod elf;

use std::time::{Duration, Instant};

use plumb_unwind::{
    Avma, Cache, CodeMap, Located, Memory, Module, ReadError, Registers, Section, Sections, Svma, walk,
};

const LIMIT: usize = 200;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }
}

/// A module without bias; every address below 2^32 is its code.
struct Process(Module<Vec<u8>>);

impl CodeMap for Process {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match pc.0 >> 32 {
            0 => Located::Module { module: &self.0, bias: 0 },
            1 => Located::NoInfo,
            _ => Located::Unmapped,
        }
    }
}

/// Random words, the same at every reading, that are often code or stack addresses. Counts how often it is read.
struct Words {
    seed: u64,
    code: u64,
    reads: usize,
}

const STACK: u64 = 0x7ffd_0000_0000;

impl Memory for Words {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.reads += 1;
        let mut random = Random((at.0 ^ self.seed) | 1);
        let word = random.next();
        Ok(match word % 16 {
            0..=12 => random.next() % self.code,
            13 => STACK + word % 65536,
            14 => return Err(ReadError::Unreadable),
            _ => word,
        })
    }
}

/// Random places changed to random or to telling values.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(60) {
        let at = random.below(bytes.len());
        let telling = [0, 0x0f, 0x10, 0x16, 0x0a, 0x0b, 0x7f, 0x80, 0xff];
        bytes[at] = match random.below(3) {
            0 => telling[random.below(telling.len())],
            1 => bytes[at].wrapping_add(1),
            _ => random.next() as u8,
        };
    }
}

/// `.eh_frame_hdr`, if there is one.
type Table = Option<Section<Vec<u8>>>;

/// At most 16 KiB of a file's `.eh_frame`, so that changes hit what is used.
fn seed_section(path: &str) -> Option<(Section<Vec<u8>>, Table)> {
    let mut sections = elf::sections(&std::fs::read(path).ok()?)?;
    let mut section = sections.eh_frame.take()?;
    section.bytes.truncate(16 << 10);
    Some((section, sections.eh_frame_hdr))
}

#[test]
fn changed_sections_and_random_stacks() {
    let paths = ["/bin/ls", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
    let seeds: Vec<_> = paths.iter().filter_map(|path| seed_section(path)).collect();
    if seeds.is_empty() {
        println!("skipped: none of {paths:?} is on this machine");
        return;
    }
    let mut random = Random(0x1234_5678_9abc_def1);
    let began = Instant::now();
    let (mut rounds, mut deep, mut slowest) = (0, 0, Duration::ZERO);
    while began.elapsed() < Duration::from_secs(3) {
        let (section, table) = &seeds[random.below(seeds.len())];
        let mut section = section.clone();
        mutate(&mut section.bytes, &mut random);
        let mut sections =
            Sections { text: Some(Svma(0x1000)), got: Some(Svma(0x2000)), ..Sections::default() };
        match random.below(3) {
            0 => sections.debug_frame = Some(section),
            1 => sections.eh_frame = Some(section),
            _ => {
                sections.eh_frame = Some(section);
                sections.eh_frame_hdr = table.clone();
            }
        }
        let process = Process(Module::new(sections));
        let mut cache = Cache::default();
        for _ in 0..20 {
            let code = 0x1_8000;
            let mut registers = Registers::new(random.next() % code, STACK + random.next() % 4096);
            for register in 0..16 {
                registers.set(register, STACK + random.next() % 4096);
            }
            let mut memory = Words { seed: random.next(), code, reads: 0 };
            let mut frames = Vec::new();
            let walked = Instant::now();
            walk(&process, &mut memory, &mut cache, &registers, LIMIT, &mut frames);
            slowest = slowest.max(walked.elapsed());
            assert!(frames.len() <= LIMIT);
            // A frame reads each register at most, through an expression of bounded length; walks start again rarely.
            assert!(memory.reads <= LIMIT * 17 * 512, "{} reads", memory.reads);
            deep += usize::from(frames.len() > 3);
        }
        rounds += 1;
    }
    println!("{rounds} modules, {deep} walks of more than three frames, the slowest walk took {slowest:?}");
    assert!(deep > rounds, "walks get somewhere: {deep} in {rounds} rounds");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}
