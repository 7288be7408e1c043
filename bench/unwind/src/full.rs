//! gimli, evaluating all registers of every frame: what the others are compared with.
//!
//! How a row is evaluated is what the unwinder's tests have. It remembers nothing but parsed headers and the memory of its context. It has no fallback where there is no
//! information.

use std::rc::Rc;

use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    UnwindContext, UnwindSection,
};
use plumb_unwind::Registers;

use crate::corpus::{Corpus, Mapping, Sample, Step};
use crate::engine::{End, Engine, LIMIT};
use crate::image::Image;
use crate::plumb::{self, Copy};
use crate::reference::{self, Unsaid};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A file, ready to be asked.
struct Code<'a> {
    bases: BaseAddresses,
    header: Option<gimli::ParsedEhFrameHdr<Slice<'a>>>,
    eh_frame: Option<EhFrame<Slice<'a>>>,
    debug_frame: Option<DebugFrame<Slice<'a>>>,
}

impl<'a> Code<'a> {
    fn new(image: &'a Image) -> Code<'a> {
        let mut bases = BaseAddresses::default();
        if let Some((address, _)) = &image.eh_frame {
            bases = bases.set_eh_frame(*address);
        }
        if let Some((address, _)) = &image.eh_frame_hdr {
            bases = bases.set_eh_frame_hdr(*address);
        }
        if let Some((start, _)) = image.text {
            bases = bases.set_text(start);
        }
        if let Some((start, _)) = image.got {
            bases = bases.set_got(start);
        }
        let header = image.eh_frame_hdr.as_ref();
        let header = header.and_then(|(_, bytes)| EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok());
        let eh_frame = image.eh_frame.as_ref().map(|(_, bytes)| EhFrame::new(bytes, LittleEndian));
        let debug_frame = image.debug_frame.as_ref().map(|(_, bytes)| DebugFrame::new(bytes, LittleEndian));
        Code { bases, header, eh_frame, debug_frame }
    }

    fn step(
        &self,
        context: &mut UnwindContext<usize>,
        stated: u64,
        registers: &Registers,
        stack: &mut Copy<'_>,
    ) -> Result<(Registers, bool), End> {
        if let Some(frames) = &self.eh_frame {
            let table = self.header.as_ref().and_then(gimli::ParsedEhFrameHdr::table);
            let fde = match table {
                Some(table) => table.fde_for_address(frames, &self.bases, stated, EhFrame::cie_from_offset),
                None => frames.fde_for_address(&self.bases, stated, EhFrame::cie_from_offset),
            };
            if let Ok(fde) = fde {
                return by_fde(frames, &self.bases, context, &fde, stated, registers, stack);
            }
        }
        if let Some(frames) = &self.debug_frame
            && let Ok(fde) = frames.fde_for_address(&self.bases, stated, DebugFrame::cie_from_offset)
        {
            return by_fde(frames, &self.bases, context, &fde, stated, registers, stack);
        }
        Err(End::NoInfo)
    }
}

fn by_fde<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize>,
    fde: &FrameDescriptionEntry<Slice<'a>>,
    stated: u64,
    registers: &Registers,
    stack: &mut Copy<'_>,
) -> Result<(Registers, bool), End> {
    let row = fde.unwind_info_for_address(section, bases, context, stated).map_err(|_| End::Other)?;
    let column = fde.cie().return_address_register();
    match reference::apply(section, (row, column), stack, registers, Unsaid::Lost) {
        Ok((caller, _)) => Ok((caller, fde.is_signal_trampoline())),
        Err(reference::End::Root) => Err(End::Root),
        Err(_) => Err(End::Other),
    }
}

/// The engine.
pub struct Full<'a> {
    mappings: &'a [Mapping],
    code: Vec<Code<'a>>,
    context: UnwindContext<usize>,
    callers: Vec<u64>,
    /// If wanted: the registers of every frame, the first included, and whether it is a return address.
    pub visited: Option<Vec<(Registers, bool)>>,
}

impl<'a> Full<'a> {
    /// Takes the files of a corpus.
    pub fn new(corpus: &'a Corpus, images: &'a [Rc<Image>]) -> Full<'a> {
        let code = images.iter().map(|image| Code::new(image)).collect();
        let context = UnwindContext::new();
        Full { mappings: &corpus.mappings, code, context, callers: Vec::with_capacity(LIMIT), visited: None }
    }

    fn caller(
        &mut self,
        registers: &Registers,
        is_return: bool,
        stack: &mut Copy<'_>,
    ) -> Result<(Registers, bool), End> {
        let pc = registers.ip().wrapping_sub(is_return.into());
        let index = self.mappings.partition_point(|mapping| mapping.range.end <= pc);
        let mapping =
            self.mappings.get(index).filter(|mapping| mapping.range.start <= pc).ok_or(End::NoInfo)?;
        self.code[index].step(&mut self.context, pc.wrapping_sub(mapping.bias), registers, stack)
    }
}

impl Engine for Full<'_> {
    type Start = Registers;

    fn start(&self, sample: &Sample) -> Registers {
        plumb::start(sample)
    }

    fn walk(&mut self, start: &Registers, stack: &[u64]) -> End {
        let mut stack = Copy { base: start.sp(), words: stack };
        let (mut registers, mut is_return) = (*start, false);
        self.callers.clear();
        while self.callers.len() < LIMIT {
            if let Some(visited) = &mut self.visited {
                visited.push((registers, is_return));
            }
            match self.caller(&registers, is_return, &mut stack) {
                Ok((caller, is_signal)) if caller.ip() != 0 => {
                    registers = caller;
                    is_return = !is_signal;
                    self.callers.push(registers.ip());
                }
                Ok(_) => return End::Root,
                Err(end) => return end,
            }
        }
        End::Other
    }

    fn callers(&self, _: &[u64]) -> impl Iterator<Item = u64> {
        self.callers.iter().copied()
    }

    fn steps(&mut self, step: &Step, stack: &[u64], times: u32) -> bool {
        // The copy begins at the sample's stack pointer, which the steps keep in the unused rax.
        let mut stack = Copy { base: step.registers[0], words: stack };
        let mut registers = Registers::new(step.registers[16], step.registers[7]);
        for (number, &value) in
            (0..16).zip(&step.registers).filter(|(number, _)| step.known >> number & 1 != 0)
        {
            registers.set(number, value);
        }
        for _ in 0..times {
            let caller = self.caller(&registers, step.is_return, &mut stack);
            std::hint::black_box(caller.is_ok());
        }
        true
    }
}
