//! plumb's own unwinder: called as the recorder calls it, and for the places of return addresses alone.

use std::cell::Cell;
use std::rc::Rc;

use plumb_unwind::table::Table;
use plumb_unwind::{
    Avma, Cache, CodeMap, Located, Memory, Module, ReadError, Registers, ReturnSlots, Section, Sections,
    Svma, Walked, Window, trace, walk,
};

use crate::corpus::{Corpus, Mapping, Sample};
use crate::engine::{End, Engine, LIMIT};
use crate::image::{self, Image};

/// The code of a corpus.
struct Code {
    mappings: Vec<Mapping>,
    modules: Vec<Rc<Module<Vec<u8>>>>,
    /// The mapping that was found last.
    last: Cell<usize>,
}

impl CodeMap for Code {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        let is_there = |mapping: &Mapping| mapping.range.contains(&pc.0);
        if !self.mappings.get(self.last.get()).is_some_and(is_there) {
            self.last.set(self.mappings.partition_point(|mapping| mapping.range.end <= pc.0));
        }
        let index = self.last.get();
        match (self.mappings.get(index), self.modules.get(index)) {
            (Some(mapping), Some(module)) if mapping.range.start <= pc.0 => {
                Located::Module { module, bias: mapping.bias }
            }
            _ => Located::Unmapped,
        }
    }
}

/// What was copied of a stack.
pub struct Copy<'a> {
    pub base: u64,
    pub words: &'a [u64],
}

impl Memory for Copy<'_> {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let bytes: &[u8] = bytemuck::cast_slice(self.words);
        let start = usize::try_from(at.0.wrapping_sub(self.base)).unwrap_or(usize::MAX);
        match bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            None if at.0 >= self.base => Err(ReadError::BeyondCopy),
            None => Err(ReadError::Unreadable),
        }
    }

    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        Some(Window { base: Avma(self.base), words: self.words })
    }
}

/// What is walked.
pub struct Process {
    code: Code,
    cache: Cache,
}

fn module(image: &Image) -> Module<Vec<u8>> {
    let section = |section: &Option<image::Section>| {
        section.clone().map(|(address, bytes)| Section { address: Svma(address), bytes })
    };
    Module::new(Sections {
        eh_frame: section(&image.eh_frame),
        eh_frame_hdr: section(&image.eh_frame_hdr),
        debug_frame: section(&image.debug_frame),
        text: image.text.map(|(start, _)| Svma(start)),
        got: image.got.map(|(start, _)| Svma(start)),
        ..Sections::default()
    })
}

/// The files of a corpus, each once.
pub fn modules(corpus: &Corpus) -> Vec<Module<Vec<u8>>> {
    let images = image::load_all(corpus);
    let is_first = |index: usize| !images[..index].iter().any(|other| Rc::ptr_eq(&images[index], other));
    (0..images.len()).filter(|&index| is_first(index)).map(|index| module(&images[index])).collect()
}

impl Process {
    /// Takes the files of a corpus.
    fn new(corpus: &Corpus, with_tables: bool) -> Process {
        let module = |image: &Image| {
            let module = module(image);
            let table = with_tables.then(|| Table::by_length(&module).ok()).flatten();
            table.into_iter().fold(module, Module::with_table)
        };
        let images = image::load_all(corpus);
        let mut modules: Vec<Rc<Module<Vec<u8>>>> = Vec::new();
        for (index, image) in images.iter().enumerate() {
            let same = images[..index].iter().position(|other| Rc::ptr_eq(image, other));
            modules.push(same.map_or_else(|| Rc::new(module(image)), |same| modules[same].clone()));
        }
        let code = Code { mappings: corpus.mappings.clone(), modules, last: Cell::new(0) };
        Process { code, cache: Cache::default() }
    }
}

/// A sample's registers.
pub fn start(sample: &Sample) -> Registers {
    let mut registers = Registers::new(sample.registers[16], sample.registers[7]);
    for (number, value) in (0..16).zip(sample.registers) {
        registers.set(number, value);
    }
    registers
}

fn end(end: plumb_unwind::End) -> End {
    match end {
        plumb_unwind::End::Root => End::Root,
        plumb_unwind::End::NoUnwindInfo => End::NoInfo,
        _ => End::Other,
    }
}

/// The engine that yields frames.
pub struct Plumb {
    process: Process,
    frames: Vec<Walked>,
}

impl Plumb {
    /// Takes the files of a corpus.
    pub fn new(corpus: &Corpus) -> Plumb {
        Plumb { process: Process::new(corpus, false), frames: Vec::with_capacity(LIMIT) }
    }
}

impl Engine for Plumb {
    type Start = Registers;

    fn start(&self, sample: &Sample) -> Registers {
        start(sample)
    }

    fn walk(&mut self, start: &Registers, stack: &[u64]) -> End {
        let mut memory = Copy { base: start.sp(), words: stack };
        let Process { code, cache } = &mut self.process;
        end(walk(code, &mut memory, cache, start, LIMIT, &mut self.frames))
    }

    fn callers(&self, _: &[u64]) -> impl Iterator<Item = u64> {
        self.frames.iter().skip(1).map(|frame| frame.pc.0)
    }
}

/// The engine that yields where return addresses are.
pub struct Traced {
    process: Process,
    trail: ReturnSlots,
}

impl Traced {
    /// Takes the files of a corpus, and makes tables of the rules for their callers if that is wanted.
    pub fn new(corpus: &Corpus, with_tables: bool) -> Traced {
        Traced { process: Process::new(corpus, with_tables), trail: ReturnSlots::new(LIMIT - 1) }
    }
}

impl Engine for Traced {
    type Start = Registers;

    fn start(&self, sample: &Sample) -> Registers {
        start(sample)
    }

    fn walk(&mut self, start: &Registers, stack: &[u64]) -> End {
        let mut memory = Copy { base: start.sp(), words: stack };
        let Process { code, cache } = &mut self.process;
        end(trace(code, &mut memory, cache, start, &mut self.trail))
    }

    fn callers(&self, stack: &[u64]) -> impl Iterator<Item = u64> {
        let mut others = self.trail.others().iter();
        self.trail.slots().iter().map(move |&slot| match slot {
            ReturnSlots::OTHER => others.next().map_or(0, |(_, frame)| frame.pc.0),
            slot => stack[slot as usize],
        })
    }
}
