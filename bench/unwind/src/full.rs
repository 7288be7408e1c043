//! gimli, evaluating all registers of every frame: what the others are compared with.
//!
//! It remembers nothing but parsed headers and the memory of its context. It has no fallback where there is no
//! information.

use std::rc::Rc;

use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow, Value,
};

use crate::corpus::{Corpus, Mapping, Sample, Step, Values};
use crate::engine::{End, Engine, LIMIT};
use crate::image::Image;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The registers of a frame, each known or not.
#[derive(Clone, Copy)]
pub struct Registers {
    pub values: Values,
    pub known: u64,
}

impl Registers {
    fn get(&self, number: u16) -> Option<u64> {
        (self.known >> number & 1 != 0).then(|| self.values.get(usize::from(number)).copied())?
    }
}

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
        stack: &Stack<'_>,
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

/// The copied words.
struct Stack<'a> {
    base: u64,
    words: &'a [u64],
}

impl Stack<'_> {
    fn read(&self, at: u64) -> Option<u64> {
        let bytes: &[u8] = bytemuck::cast_slice(self.words);
        let start = usize::try_from(at.wrapping_sub(self.base)).ok()?;
        bytes.get(start..).and_then(<[u8]>::first_chunk).map(|word| u64::from_le_bytes(*word))
    }
}

fn by_fde<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize>,
    fde: &FrameDescriptionEntry<Slice<'a>>,
    stated: u64,
    registers: &Registers,
    stack: &Stack<'_>,
) -> Result<(Registers, bool), End> {
    let row = fde.unwind_info_for_address(section, bases, context, stated).map_err(|_| End::Other)?;
    Ok((apply(section, row, registers, stack)?, fde.is_signal_trampoline()))
}

fn apply<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize>,
    registers: &Registers,
    stack: &Stack<'_>,
) -> Result<Registers, End> {
    let cfa = match row.cfa() {
        gimli::CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(register.0).ok_or(End::Other)?.wrapping_add_signed(*offset)
        }
        gimli::CfaRule::Expression(e) => {
            evaluate(e.get(section), None, registers, stack).ok_or(End::Other)?
        }
    };
    let mut caller = *registers;
    caller.values[7] = cfa;
    caller.known |= 1 << 7;
    for number in 0..17 {
        let value = match row.register(Register(number)) {
            None if matches!(number, 3 | 6 | 7 | 12..=15) => continue,
            None => None,
            Some(RegisterRule::Undefined) if number == 16 => return Err(End::Root),
            Some(RegisterRule::Undefined) => None,
            Some(RegisterRule::SameValue) => registers.get(number),
            Some(RegisterRule::Offset(offset)) => stack.read(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => registers.get(other.0),
            Some(RegisterRule::Expression(e)) => {
                evaluate(e.get(section), Some(cfa), registers, stack).and_then(|at| stack.read(at))
            }
            Some(RegisterRule::ValExpression(e)) => evaluate(e.get(section), Some(cfa), registers, stack),
            Some(_) => return Err(End::Other),
        };
        match value {
            Some(value) => {
                caller.values[usize::from(number)] = value;
                caller.known |= 1 << number;
            }
            None if number == 16 => return Err(End::Other),
            None => caller.known &= !(1 << number),
        }
    }
    Ok(caller)
}

fn evaluate(
    expression: gimli::Result<gimli::Expression<Slice<'_>>>,
    initial: Option<u64>,
    registers: &Registers,
    stack: &Stack<'_>,
) -> Option<u64> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 5 };
    let mut evaluation = expression.ok()?.evaluation(encoding);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                evaluation.resume_with_memory(Value::Generic(stack.read(address)?)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(registers.get(register.0)?)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result().first()?.location {
        gimli::Location::Address { address } => Some(address),
        _ => None,
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
        stack: &Stack<'_>,
    ) -> Result<(Registers, bool), End> {
        let pc = registers.values[16].wrapping_sub(is_return.into());
        let index = self.mappings.partition_point(|mapping| mapping.range.end <= pc);
        let mapping =
            self.mappings.get(index).filter(|mapping| mapping.range.start <= pc).ok_or(End::NoInfo)?;
        self.code[index].step(&mut self.context, pc.wrapping_sub(mapping.bias), registers, stack)
    }
}

impl Engine for Full<'_> {
    type Start = Registers;

    fn start(&self, sample: &Sample) -> Registers {
        Registers { values: sample.registers, known: (1 << 17) - 1 }
    }

    fn walk(&mut self, start: &Registers, stack: &[u64]) -> End {
        let stack = Stack { base: start.values[7], words: stack };
        let (mut registers, mut is_return) = (*start, false);
        self.callers.clear();
        while self.callers.len() < LIMIT {
            if let Some(visited) = &mut self.visited {
                visited.push((registers, is_return));
            }
            match self.caller(&registers, is_return, &stack) {
                Ok((caller, is_signal)) if caller.values[16] != 0 => {
                    registers = caller;
                    is_return = !is_signal;
                    self.callers.push(registers.values[16]);
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
        let stack = Stack { base: step.registers[0], words: stack };
        let registers = Registers { values: step.registers, known: step.known };
        for _ in 0..times {
            let caller = self.caller(&registers, step.is_return, &stack);
            std::hint::black_box(caller.is_ok());
        }
        true
    }
}
