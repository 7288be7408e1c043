//! The evaluation loop of an interpreter, found by its code: an instruction of the program ends with a jump to the code of the next one, through a
//! table, so that no other function has as many indirect jumps.

use std::fs::File;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use plumb_unwind::scan::calls;
use plumb_unwind::{Avma, Isa};

use crate::image::{self, Code};

/// Least size of a loop, in bytes.
const LEAST_BYTES: usize = 8192;
/// Least number of indirect jumps of a loop. Parsers and engines of regular expressions have about a hundred.
const LEAST_JUMPS: usize = 64;

/// An evaluation loop, by stated addresses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dispatch {
    pub(crate) core: Range<u64>,
    /// The function that calls it, if there is one such function.
    pub(crate) caller: Option<Range<u64>>,
}

/// Finds the evaluation loop of the interpreter in a file.
pub(crate) fn find(file: &File) -> Option<Dispatch> {
    of(&image::code(file)?)
}

fn of(code: &Code) -> Option<Dispatch> {
    let functions = || {
        code.functions.array_windows().filter_map(|&[start, end]| Some((start..end, code.get(start..end)?)))
    };
    let large = functions().filter(|(_, bytes)| bytes.len() >= LEAST_BYTES);
    let counted = large.map(|(range, bytes)| (indirect_jumps(code.isa, bytes), range));
    let (most, core) = counted.max_by_key(|&(count, _)| count)?;
    let calls_core = |range: &Range<u64>, bytes| {
        let mut found = false;
        calls::targets(code.isa, bytes, Avma(range.start), |target| found |= target.0 == core.start);
        found
    };
    let mut callers = functions().filter(|(range, bytes)| calls_core(range, bytes)).map(|(range, _)| range);
    let caller = callers.next().filter(|_| callers.next().is_none());
    (most >= LEAST_JUMPS).then_some(Dispatch { core, caller })
}

/// Number of indirect jumps in a function.
fn indirect_jumps(isa: Isa, bytes: &[u8]) -> usize {
    if isa != Isa::X86_64 {
        let mut count = 0;
        calls::jumps(isa, bytes, Avma(0), |target| count += usize::from(target.is_none()));
        return count;
    }
    let instructions = Decoder::new(64, bytes, DecoderOptions::NONE).into_iter();
    let is_indirect = |kind| matches!(kind, OpKind::Register | OpKind::Memory);
    instructions.filter(|jump| jump.mnemonic() == Mnemonic::Jmp && is_indirect(jump.op0_kind())).count()
}

impl Code {
    fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let offset = |address: u64| usize::try_from(address.checked_sub(self.at)?).ok();
        self.bytes.get(offset(range.start)?..offset(range.end)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_the_function_that_jumps_most() {
        // `br x0`, `bl` to the loop, `ret`, among no operations.
        let words = |first: u32, count, of: usize| {
            let rest = std::iter::repeat_n(0xd503_201f, of - count);
            std::iter::repeat_n(first, count).chain(rest).flat_map(u32::to_le_bytes)
        };
        let size = LEAST_BYTES / 4;
        let caller = [0x97ff_f800_u32, 0xd65f_03c0].into_iter().flat_map(u32::to_le_bytes);
        let bytes = words(0xd61f_0000, 10, size).chain(words(0xd61f_0000, 100, size)).chain(caller).collect();
        let functions = vec![0x1000, 0x3000, 0x5000, 0x5008, 0x500c];
        let mut code = Code { isa: Isa::Aarch64, at: 0x1000, bytes, functions };
        code.bytes.extend([0; 4]);
        assert_eq!(of(&code), Some(Dispatch { core: 0x3000..0x5000, caller: Some(0x5000..0x5008) }));
        code.functions.remove(1);
        assert_eq!(
            of(&code),
            Some(Dispatch { core: 0x1000..0x5000, caller: None }),
            "no call leads to its start"
        );
        code.functions = vec![0x1000, 0x3000, 0xffff_0000];
        assert_eq!(of(&code), None, "a few jumps, and code that is not there");
    }

    #[test]
    fn instructions_of_x86_64_are_told_from_their_bytes() {
        // jmp *(%rax); jmp *%rax; mov $0xff20,%eax; call *%rax
        let code = [0xff, 0x20, 0xff, 0xe0, 0xb8, 0x20, 0xff, 0, 0, 0xff, 0xd0];
        assert_eq!(indirect_jumps(Isa::X86_64, &code), 2);
    }
}
