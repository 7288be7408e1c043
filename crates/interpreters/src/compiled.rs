//! Code that a process has compiled at run time, and the calls inlined into it.

use std::ops::Range;

use crate::{CodeId, ScriptPlace};

/// Most positions at one place of the code: calls that are inlined into each other.
const MAX_INLINED: usize = 64;
/// Most places of one piece of code.
const MAX_PLACES: usize = 1 << 20;

/// A piece of code that was compiled at run time: the function, and for each instruction the positions that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledCode {
    /// Addresses of its instructions.
    range: Range<u64>,
    /// The object that describes it.
    id: CodeId,
    /// Offset of the first instruction of each place, in ascending order, and its positions, innermost first.
    places: Vec<(u32, Vec<ScriptPlace>)>,
}

impl CompiledCode {
    /// Code at these addresses, which the object `id` describes. `places`: offsets of instructions in ascending order, each with the positions of all code up to the next offset,
    /// innermost first.
    pub(crate) fn new(
        range: Range<u64>,
        id: CodeId,
        places: impl IntoIterator<Item = (u32, Vec<ScriptPlace>)>,
    ) -> CompiledCode {
        let mut places: Vec<_> = places.into_iter().take(MAX_PLACES).collect();
        for (_, positions) in &mut places {
            if positions.len() > MAX_INLINED {
                // The function itself stays.
                positions.drain(..positions.len() - MAX_INLINED);
            }
        }
        places.sort_by_key(|(offset, _)| *offset);
        CompiledCode { range, id, places }
    }

    /// Addresses of its instructions.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The object that describes it.
    pub(crate) fn id(&self) -> CodeId {
        self.id
    }

    /// The positions that the instruction at an address runs, innermost first. `None` if that is elsewhere, or not known.
    pub fn places(&self, at: u64) -> Option<&[ScriptPlace]> {
        if !self.range.contains(&at) {
            return None;
        }
        let offset = u32::try_from(at - self.range.start).ok()?;
        let after = self.places.partition_point(|(begin, _)| *begin <= offset);
        let (_, positions) = self.places.get(after.checked_sub(1)?)?;
        Some(positions).filter(|positions| !positions.is_empty()).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_runs_the_place_that_begins_before_it() {
        let place = |at| ScriptPlace {
            code: CodeId { at, identity: 0 },
            offset: 0,
            is_entry: false,
            is_generator: false,
        };
        let deep: Vec<ScriptPlace> = (0..100).map(place).collect();
        let code = CompiledCode::new(
            1000..1100,
            CodeId { at: 0, identity: 0 },
            [(10, vec![place(1)]), (20, Vec::new()), (30, deep)],
        );
        let first = |at| code.places(at).map(|places| (places.len(), places[0].code.at));
        assert_eq!(
            [first(1009), first(1010), first(1019), first(1020)],
            [None, Some((1, 1)), Some((1, 1)), None]
        );
        assert_eq!((first(1099), first(1100), first(999)), (Some((MAX_INLINED, 36)), None, None));
    }
}
