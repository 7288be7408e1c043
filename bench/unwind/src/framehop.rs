//! framehop as it comes: its cache has 509 slots.

use std::ops::Deref;
use std::rc::Rc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};

use crate::HEAP;
use crate::corpus::{Corpus, Sample, Step};
use crate::engine::{End, Engine, LIMIT};
use crate::image;

/// Bytes of a section that several modules share.
#[derive(Clone, Default)]
struct Bytes(Rc<Vec<u8>>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// The engine.
pub struct Framehop {
    unwinder: UnwinderX86_64<Bytes>,
    cache: CacheX86_64,
    callers: Vec<u64>,
    cache_bytes: usize,
}

fn read<'a>(base: u64, stack: &'a [u64]) -> impl FnMut(u64) -> Result<u64, ()> + 'a {
    let bytes: &[u8] = bytemuck::cast_slice(stack);
    move |at| {
        let start = usize::try_from(at.wrapping_sub(base)).map_err(|_| ())?;
        let word = bytes.get(start..).and_then(<[u8]>::first_chunk).ok_or(())?;
        Ok(u64::from_le_bytes(*word))
    }
}

impl Framehop {
    /// Takes the files of a corpus.
    pub fn new(corpus: &Corpus) -> Framehop {
        let mut unwinder = UnwinderX86_64::new();
        for (mapping, image) in corpus.mappings.iter().zip(image::load_all(corpus)) {
            let take = |section: &Option<image::Section>| {
                section.as_ref().map(|(_, bytes)| Bytes(Rc::new(bytes.clone())))
            };
            let range = |section: &Option<image::Section>| {
                section.as_ref().map(|(address, bytes)| *address..address + bytes.len() as u64)
            };
            let sections = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: image.text.map(|(start, end)| start..end),
                got_svma: image.got.map(|(start, end)| start..end),
                eh_frame_svma: range(&image.eh_frame),
                eh_frame: take(&image.eh_frame),
                eh_frame_hdr_svma: range(&image.eh_frame_hdr),
                eh_frame_hdr: take(&image.eh_frame_hdr),
                debug_frame: take(&image.debug_frame),
                ..Default::default()
            };
            let path = mapping.path.clone();
            unwinder.add_module(Module::new(path, mapping.range.clone(), mapping.bias, sections));
        }
        let before = HEAP.allocated();
        let cache = CacheX86_64::new();
        let cache_bytes = HEAP.allocated() - before;
        Framehop { unwinder, cache, callers: Vec::with_capacity(LIMIT), cache_bytes }
    }
}

impl Engine for Framehop {
    type Start = UnwindRegsX86_64;

    fn start(&self, sample: &Sample) -> UnwindRegsX86_64 {
        UnwindRegsX86_64::new(sample.registers[16], sample.registers[7], sample.registers[6])
    }

    fn walk(&mut self, start: &UnwindRegsX86_64, stack: &[u64]) -> End {
        let mut read = read(start.sp(), stack);
        self.callers.clear();
        let mut frames = self.unwinder.iter_frames(start.ip(), *start, &mut self.cache, &mut read);
        loop {
            match frames.next() {
                Ok(Some(frame)) if self.callers.len() < LIMIT => self.callers.push(frame.address()),
                Ok(Some(_)) => return End::Other,
                Ok(None) => return End::Root,
                Err(_) => return End::Unknown,
            }
        }
    }

    fn callers(&self, _: &[u64]) -> impl Iterator<Item = u64> {
        self.callers.iter().skip(1).copied()
    }

    fn made_before(&self) -> usize {
        self.cache_bytes
    }

    fn steps(&mut self, step: &Step, stack: &[u64], times: u32) -> bool {
        for _ in 0..times {
            let mut registers =
                UnwindRegsX86_64::new(step.registers[16], step.registers[7], step.registers[6]);
            // The copy begins at the sample's stack pointer, which the steps keep in the unused rax.
            let mut read = read(step.registers[0], stack);
            let address = match FrameAddress::from_return_address(step.registers[16]) {
                Some(address) if step.is_return => address,
                _ => FrameAddress::from_instruction_pointer(step.registers[16]),
            };
            // A new cache, which is what it has for forgetting; making it is counted apart.
            self.cache = CacheX86_64::new();
            let caller = self.unwinder.unwind_frame(address, &mut registers, &mut self.cache, &mut read);
            std::hint::black_box(caller.ok());
        }
        if times == 0 {
            self.cache = CacheX86_64::new();
        }
        true
    }
}
