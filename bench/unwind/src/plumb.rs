//! plumb's own unwinder, called as the recorder calls it.

use std::rc::Rc;

use plumb_unwind::{
    Avma, Cache, CodeMap, Located, Memory, Module, ReadError, Registers, Section, Sections, Svma, Walked,
    walk,
};

use crate::corpus::{Corpus, Mapping, Sample};
use crate::engine::{End, Engine, LIMIT};
use crate::image::{self, Image};

/// The code of a corpus.
struct Code {
    mappings: Vec<Mapping>,
    modules: Vec<Rc<Module<Vec<u8>>>>,
}

impl CodeMap for Code {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        let index = self.mappings.partition_point(|mapping| mapping.range.end <= pc.0);
        match (self.mappings.get(index), self.modules.get(index)) {
            (Some(mapping), Some(module)) if mapping.range.start <= pc.0 => {
                Located::Module { module, bias: mapping.bias }
            }
            _ => Located::Unmapped,
        }
    }
}

/// What was copied of a stack.
struct Copy<'a> {
    base: u64,
    words: &'a [u64],
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
}

/// The engine.
pub struct Plumb {
    code: Code,
    cache: Cache,
    frames: Vec<Walked>,
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

impl Plumb {
    /// Takes the files of a corpus.
    pub fn new(corpus: &Corpus) -> Plumb {
        let images = image::load_all(corpus);
        let mut modules: Vec<Rc<Module<Vec<u8>>>> = Vec::new();
        for (index, image) in images.iter().enumerate() {
            let same = images[..index].iter().position(|other| Rc::ptr_eq(image, other));
            modules.push(same.map_or_else(|| Rc::new(module(image)), |same| modules[same].clone()));
        }
        let code = Code { mappings: corpus.mappings.clone(), modules };
        Plumb { code, cache: Cache::default(), frames: Vec::with_capacity(LIMIT) }
    }
}

impl Engine for Plumb {
    type Start = Registers;

    fn start(&self, sample: &Sample) -> Registers {
        let mut registers = Registers::new(sample.registers[16], sample.registers[7]);
        for (number, value) in (0..16).zip(sample.registers) {
            registers.set(number, value);
        }
        registers
    }

    fn walk(&mut self, start: &Registers, stack: &[u64]) -> End {
        let mut memory = Copy { base: start.sp(), words: stack };
        match walk(&self.code, &mut memory, &mut self.cache, start, LIMIT, &mut self.frames) {
            plumb_unwind::End::Root => End::Root,
            plumb_unwind::End::NoUnwindInfo => End::NoInfo,
            _ => End::Other,
        }
    }

    fn callers(&self) -> impl Iterator<Item = u64> {
        self.frames.iter().skip(1).map(|frame| frame.pc.0)
    }
}
