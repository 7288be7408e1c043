//! The reference walker: gimli finds the row and evaluates it for all registers, in every frame.
//!
//! Slow and simple. It has no fallback: it ends where call-frame information is missing.

#![allow(dead_code, reason = "each test binary uses what it needs")]

use gimli::{EvaluationResult, LittleEndian, Register, RegisterRule, UnwindSection, Value};
use plumb_unwind::{Architecture, Avma, CodeMap, Located, Memory, Native, Registers};

use crate::gimli_rows::{self, Slice};

/// Reason why the reference walker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The return address is undefined or 0.
    Root,
    /// The last frame has no row.
    NoRow,
    /// The row could not be evaluated.
    Failed,
    /// The maximum number of frames was reached.
    Limit,
}

/// A caller.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub registers: Registers,
    /// Whether the caller was interrupted by a signal.
    pub is_signal: bool,
    /// Address that its program counter was read from, if it was in memory.
    pub slot: Option<u64>,
}

/// Treatment of registers that calls do not preserve and that have no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// Lost, as in the ABI.
    Lost,
    /// Unchanged, as in libgcc.
    Kept,
}

/// Returns the program counters of the callers of `start`.
pub fn walk<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    start: &Registers,
    limit: usize,
) -> (Vec<u64>, End) {
    let (callers, end) = callers(code, memory, start, limit);
    (callers.iter().map(|caller| caller.registers.ip()).collect(), end)
}

/// Returns the callers of `start`.
pub fn callers<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    start: &Registers,
    limit: usize,
) -> (Vec<Caller>, End) {
    let mut callers = Vec::new();
    let mut registers = *start;
    let mut is_return = false;
    while callers.len() < limit {
        let lookup = registers.ip().wrapping_sub(is_return.into());
        match step(code, memory, &registers, lookup) {
            Ok(caller) => {
                if caller.registers.ip() == 0 {
                    return (callers, End::Root);
                }
                registers = caller.registers;
                is_return = !caller.is_signal;
                callers.push(caller);
            }
            Err(end) => return (callers, end),
        }
    }
    (callers, End::Limit)
}

fn step<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    registers: &Registers,
    lookup: u64,
) -> Result<Caller, End> {
    let Located::Module { module, bias } = code.locate(Avma(lookup)) else { return Err(End::NoRow) };
    let sections = module.sections();
    let bases = gimli_rows::bases(sections);
    let stated = lookup.wrapping_sub(bias);
    if let Some(section) = &sections.eh_frame {
        let frames = gimli_rows::eh_frame(section.bytes.as_ref());
        let fde = match &sections.eh_frame_hdr {
            Some(table) => in_table(table.bytes.as_ref(), &frames, &bases, stated),
            None => frames.fde_for_address(&bases, stated, gimli::EhFrame::cie_from_offset),
        };
        if let Ok(caller) =
            fde.and_then(|fde| by_fde(&frames, &bases, &fde, stated, memory, registers, Unsaid::Lost))
        {
            return caller;
        }
    }
    if let Some(section) = &sections.debug_frame {
        let section = gimli_rows::debug_frame(section.bytes.as_ref());
        let fde = section.fde_for_address(&bases, stated, gimli::DebugFrame::cie_from_offset);
        if let Ok(caller) =
            fde.and_then(|fde| by_fde(&section, &bases, &fde, stated, memory, registers, Unsaid::Lost))
        {
            return caller;
        }
    }
    Err(End::NoRow)
}

/// The caller by a row, or the reason why there is none.
pub type Stepped = Result<Caller, End>;

/// Finds an FDE through `.eh_frame_hdr`, because examining all of them takes too long in large files.
fn in_table<'a>(
    table: &'a [u8],
    frames: &gimli::EhFrame<Slice<'a>>,
    bases: &gimli::BaseAddresses,
    stated: u64,
) -> gimli::Result<gimli::FrameDescriptionEntry<Slice<'a>>> {
    let header = gimli::EhFrameHdr::new(table, LittleEndian).parse(bases, 8)?;
    let table = header.table().ok_or(gimli::Error::NoUnwindInfoForAddress)?;
    table.fde_for_address(frames, bases, stated, gimli::EhFrame::cie_from_offset)
}

/// Computes the caller from one FDE.
pub fn by_fde<'a, S: UnwindSection<Slice<'a>>, M: Memory>(
    section: &S,
    bases: &gimli::BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<Slice<'a>>,
    stated: u64,
    memory: &mut M,
    registers: &Registers,
    unsaid: Unsaid,
) -> gimli::Result<Stepped> {
    let mut context = gimli::UnwindContext::new();
    let row = fde.unwind_info_for_address(section, bases, &mut context, stated)?;
    let column = fde.cie().return_address_register();
    let caller = apply(section, (row, column), memory, registers, unsaid);
    Ok(caller.map(|(registers, slot)| Caller { registers, is_signal: fde.is_signal_trampoline(), slot }))
}

/// Computes the caller from a row with this column for the return address, and the address that its program counter was
/// read from. A program counter of 0 is a result too.
pub fn apply<'a, S: UnwindSection<Slice<'a>>, M: Memory>(
    section: &S,
    (row, return_column): (&gimli::UnwindTableRow<usize>, Register),
    memory: &mut M,
    registers: &Registers,
    unsaid: Unsaid,
) -> Result<(Registers, Option<u64>), End> {
    let cfa = match row.cfa() {
        gimli::CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(register.0).ok_or(End::Failed)?.wrapping_add_signed(*offset)
        }
        gimli::CfaRule::Expression(e) => {
            evaluate(e.get(section), None, memory, registers).ok_or(End::Failed)?
        }
    };
    let mut caller = *registers;
    caller.set(Native::SP, cfa);
    let mut slot = None;
    for number in 0..=Native::PC {
        let is_pc = number == Native::PC;
        let mut load = |at: u64| {
            slot = if is_pc { Some(at) } else { slot };
            memory.read_u64(Avma(at)).ok()
        };
        let value = match row.register(if is_pc { return_column } else { Register(number) }) {
            None if Native::is_preserved(number) => continue,
            // The return address is still where the call left it, if that is a register.
            None | Some(RegisterRule::SameValue) if is_pc => Native::LR.and_then(|link| registers.get(link)),
            None if unsaid == Unsaid::Kept => continue,
            None => None,
            Some(RegisterRule::Undefined) if is_pc => return Err(End::Root),
            Some(RegisterRule::Undefined) => None,
            Some(RegisterRule::SameValue) => registers.get(number),
            Some(RegisterRule::Offset(offset)) => load(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => registers.get(other.0),
            Some(RegisterRule::Expression(e)) => {
                let at = evaluate(e.get(section), Some(cfa), memory, registers);
                slot = if is_pc { at } else { slot };
                at.and_then(|at| memory.read_u64(Avma(at)).ok())
            }
            Some(RegisterRule::ValExpression(e)) => evaluate(e.get(section), Some(cfa), memory, registers),
            Some(_) => return Err(End::Failed),
        };
        match value {
            Some(value) if is_pc => caller.set(number, Native::code_address(value, 48)),
            Some(value) => caller.set(number, value),
            None if is_pc => return Err(End::Failed),
            None => caller.forget(number),
        }
    }
    Ok((caller, slot))
}

fn evaluate<M: Memory>(
    expression: gimli::Result<gimli::Expression<Slice<'_>>>,
    initial: Option<u64>,
    memory: &mut M,
    registers: &Registers,
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
                let value = memory.read_u64(Avma(address)).ok()?;
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0)?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result().first()?.location {
        gimli::Location::Address { address } => Some(address),
        _ => None,
    }
}
