//! Call-frame information: any bytes as sections, any words as the stack; a walk ends, with frames or a reason.
//! Seeds: `objcopy -O binary --only-section=.eh_frame /bin/ls fuzz/corpus/cfi/ls`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumb_unwind::{Avma, Cache, CodeMap, Located, Memory, Module, ReadError, Registers, Section, Sections, Svma, walk};

const LIMIT: usize = 100;
const STACK: u64 = 0x7ffd_0000_0000;

struct Process<'a>(Module<&'a [u8]>);

impl<'a> CodeMap for Process<'a> {
    type Bytes = &'a [u8];

    fn locate(&self, pc: Avma) -> Located<'_, &'a [u8]> {
        match pc.0 >> 32 {
            0 => Located::Module { module: &self.0, bias: 0 },
            1 => Located::NoInfo,
            2 => Located::Unreadable,
            _ => Located::Unmapped,
        }
    }
}

/// The input again, over and over.
struct Stack<'a>(&'a [u8]);

impl Memory for Stack<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let offset = at.0.checked_sub(STACK).ok_or(ReadError::Unreadable)? as usize;
        if offset > 65536 {
            return Err(ReadError::BeyondCopy);
        }
        let chunk = offset % self.0.len().max(1);
        let word = self.0.get(chunk..).and_then(|rest| rest.first_chunk()).ok_or(ReadError::Unreadable)?;
        Ok(u64::from_le_bytes(*word))
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[shape, pc_low, pc_high, split], rest)) = data.split_first_chunk() else { return };
    let (stack, rest) = rest.split_at(rest.len().min(usize::from(split) * 4));
    let (header, body) = rest.split_at(if shape & 4 != 0 { rest.len().min(64) } else { 0 });
    let section = |address, bytes| Some(Section { address: Svma(address), bytes });
    let mut sections = Sections { text: Some(Svma(0x1000)), got: Some(Svma(0x2000)), ..Sections::default() };
    if shape & 1 != 0 {
        sections.eh_frame = section(0x1000, body);
    }
    if shape & 2 != 0 {
        sections.debug_frame = section(0, body);
    }
    if shape & 4 != 0 {
        sections.eh_frame_hdr = section(0x800, header);
    }
    let process = Process(Module::new(sections));
    let mut registers = Registers::new(u64::from(pc_low) | u64::from(pc_high) << 8, STACK + 64);
    for register in 0..16 {
        registers.set(register, STACK + 128 + u64::from(register) * 40);
    }
    let mut cache = Cache::default();
    let mut frames = Vec::new();
    for _ in 0..2 {
        let end = walk(&process, &mut Stack(stack), &mut cache, &registers, LIMIT, &mut frames);
        assert!(frames.len() <= LIMIT);
        std::hint::black_box(end);
    }
});
