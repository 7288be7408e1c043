//! Unwinds stacks that programs for aarch64 have written of themselves (crates/unwind/tests/programs/depths.c), by plumb or by framehop.
//!
//! `plumb-bench-unwind-arm64 ENGINE ORDER TIMES PROGRAM SNAPSHOTS`: walks each stack so many times, in succession (`warm`), or all of them in
//! order (`stream`). Stacks count of which both find what the program's own unwinder found. Prints the number of their frames, of all stacks, and of
//! those that the engine and the other one found whole.

mod moments;

use std::hint::black_box;

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::{ExplicitModuleSectionInfo, Unwinder};
use moments::{Moment, moments};
use object::{Object, ObjectSection};
use plumb_unwind::aarch64::{FP, PC, SP, X30};
use plumb_unwind::{
    Avma, Cache, CodeMap, Isa, Located, Memory, Module, ReadError, Section, Sections, Svma, Walked, Window,
    walk,
};

/// Maximum number of frames.
const LIMIT: usize = 1000;

/// A static program, at its stated addresses.
struct Program(Module<Vec<u8>>, std::ops::Range<u64>);

impl CodeMap for Program {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match self.1.contains(&pc.0) {
            true => Located::Module { module: &self.0, bias: 0 },
            false => Located::Unmapped,
        }
    }
}

/// A copy of the stack, and the program's code, as a recorder has them.
struct Copy<'a> {
    base: u64,
    words: &'a [u64],
    text: &'a [u8],
    text_at: u64,
}

impl Memory for Copy<'_> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        word(self.base, self.words, at.0).ok_or(ReadError::Unreadable)
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let start = usize::try_from(at.0.wrapping_sub(self.text_at)).unwrap_or(usize::MAX);
        let bytes = self.text.get(start..).and_then(|rest| rest.get(..to.len()));
        bytes.is_some_and(|bytes| {
            to.copy_from_slice(bytes);
            true
        })
    }

    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        Some(Window { base: Avma(self.base), words: self.words })
    }
}

#[inline]
fn word(base: u64, words: &[u64], at: u64) -> Option<u64> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let start = usize::try_from(at.wrapping_sub(base)).ok()?;
    bytes.get(start..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// An unwinder at work.
trait Engine {
    fn walk(&mut self, moment: &Moment);
    /// Program counters that were found last.
    fn found(&self) -> Vec<u64>;
}

struct Plumb {
    program: Program,
    text: Vec<u8>,
    text_at: u64,
    cache: Cache,
    frames: Vec<Walked>,
}

impl Engine for Plumb {
    fn walk(&mut self, moment: &Moment) {
        let mut memory =
            Copy { base: moment.base, words: &moment.words, text: &self.text, text_at: self.text_at };
        black_box(walk(&self.program, &mut memory, &mut self.cache, &moment.start, LIMIT, &mut self.frames));
    }

    fn found(&self) -> Vec<u64> {
        self.frames.iter().map(|frame| frame.pc.0).collect()
    }
}

struct Framehop {
    unwinder: UnwinderAarch64<Vec<u8>>,
    cache: CacheAarch64,
    found: Vec<u64>,
}

impl Engine for Framehop {
    fn walk(&mut self, moment: &Moment) {
        let register = |number: u16| moment.registers[usize::from(number)];
        let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(
            PtrAuthMask::new_24_40(),
            register(X30),
            register(SP),
            register(FP),
        );
        let mut read = |at| word(moment.base, &moment.words, at).ok_or(());
        self.found.clear();
        let mut frames = self.unwinder.iter_frames(register(PC), registers, &mut self.cache, &mut read);
        while let Ok(Some(frame)) = frames.next() {
            self.found.push(frame.address());
        }
    }

    fn found(&self) -> Vec<u64> {
        self.found.clone()
    }
}

fn engine(name: &str, data: &[u8]) -> Box<dyn Engine> {
    let file = object::File::parse(data).expect("an ELF file");
    let take = |name| {
        file.section_by_name(name).map(|one| (one.address(), one.data().expect("it is there").to_vec()))
    };
    let (text_at, text) = take(".text").expect("it has code");
    let range =
        |section: &Option<(u64, Vec<u8>)>| section.as_ref().map(|(at, bytes)| *at..*at + bytes.len() as u64);
    let (frames, header) = (take(".eh_frame"), take(".eh_frame_hdr"));
    let code = text_at..text_at + text.len() as u64;
    match name {
        "plumb" => {
            let section = |section: Option<(u64, Vec<u8>)>| {
                section.map(|(at, bytes)| Section { address: Svma(at), bytes })
            };
            let sections = Sections {
                eh_frame: section(frames),
                eh_frame_hdr: section(header),
                isa: Isa::Aarch64,
                ..Sections::default()
            };
            let program = Program(Module::new(sections), code);
            Box::new(Plumb {
                program,
                text,
                text_at,
                cache: Cache::default(),
                frames: Vec::with_capacity(LIMIT),
            })
        }
        "framehop" => {
            let sections = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: Some(code.clone()),
                text: Some(text),
                eh_frame_svma: range(&frames),
                eh_frame: frames.map(|(_, bytes)| bytes),
                eh_frame_hdr_svma: range(&header),
                eh_frame_hdr: header.map(|(_, bytes)| bytes),
                ..Default::default()
            };
            let mut unwinder = UnwinderAarch64::new();
            unwinder.add_module(framehop::Module::new("program".to_owned(), code, 0, sections));
            Box::new(Framehop { unwinder, cache: CacheAarch64::new(), found: Vec::with_capacity(LIMIT) })
        }
        _ => panic!("no such engine"),
    }
}

fn main() {
    let all: Vec<String> = std::env::args().collect();
    let [_, name, order, times, program, snapshots] = &all[..] else {
        eprintln!("usage: plumb-bench-unwind-arm64 ENGINE warm|stream TIMES PROGRAM SNAPSHOTS");
        std::process::exit(2);
    };
    let times: u32 = times.parse().expect("a number");
    let data = std::fs::read(program).expect("the program");
    let mut engine = engine(name, &data);
    let mut moments = moments(&std::fs::read(snapshots).expect("snapshots"));
    let is_whole = |engine: &mut dyn Engine, moment: &Moment| {
        engine.walk(moment);
        let found = engine.found();
        found.len() >= moment.pcs.len() && found.get(1..moment.pcs.len()) == moment.pcs.get(1..)
    };
    let all = moments.len();
    let mut other = self::engine(if name == "plumb" { "framehop" } else { "plumb" }, &data);
    let [mut whole, mut others] = [0, 0];
    moments.retain(|moment| {
        let is = [is_whole(&mut *engine, moment), is_whole(&mut *other, moment)];
        whole += usize::from(is[0]);
        others += usize::from(is[1]);
        is == [true; 2]
    });
    let (rounds, each) = if order == "warm" { (1, times) } else { (times, 1) };
    for _ in 0..rounds {
        for moment in &moments {
            (0..each).for_each(|_| engine.walk(moment));
        }
    }
    let frames: usize = moments.iter().map(|moment| moment.pcs.len()).sum();
    println!("{frames} {all} {whole} {others}");
}
