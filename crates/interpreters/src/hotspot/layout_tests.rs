//! The layouts that some versions of Java state, and reading code through them in memory that holds anything.

use std::cell::Cell;

use plumb_unwind::Avma;

use super::blob::Blob;
use super::statements::Statements;
use super::*;
use crate::RuntimeState;

/// Statements of Java 17, 21 and 25 for x86-64, one a line: structure, field, type, offset, whether it is static; or structure and size.
const STATED: [(u32, &str); 3] = [
    (17, include_str!("stated_17.txt")),
    (21, include_str!("stated_21.txt")),
    (25, include_str!("stated_25.txt")),
];

fn layouts() -> impl Iterator<Item = Layout> {
    STATED.into_iter().map(|(version, stated)| {
        let all = Statements::of_text(stated);
        Layout::of(&all, version, 0).unwrap_or_else(|| panic!("Java {version} states all that is needed"))
    })
}

#[test]
fn each_version_states_all_that_is_needed() {
    let found: Vec<_> = layouts()
        .map(|layout| (layout.version, layout.blob.frame_size.offset, layout.method.constant_bytes))
        .collect();
    assert_eq!(found, [(17, 28, 48), (21, 88, 56), (25, 44, 56)]);
}

/// Memory in which each word is made of its address.
struct Odd {
    seed: u64,
    reads: Cell<u64>,
    bytes: Cell<u64>,
}

impl Memory for Odd {
    fn read(&self, at: u64, to: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        self.bytes.set(self.bytes.get() + to.len() as u64);
        for (index, byte) in to.iter_mut().enumerate() {
            let at = at.wrapping_add(index as u64);
            let word = at / 8 * 8;
            let value = match self.seed {
                0 => word,
                1 => 0x0101_0101_0101_0101,
                2 => 0xffff_ffff_8000_0000,
                // Small numbers: plausible as counts and offsets.
                3 => (word >> 3) % 7,
                seed => (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (seed % 64),
            };
            *byte = value.to_le_bytes().get((at % 8) as usize).copied().unwrap_or(0);
        }
        !at.is_multiple_of(127) || self.seed.is_multiple_of(3)
    }
}

#[test]
fn any_memory_is_read_to_an_end() {
    for layout in layouts() {
        for seed in 0..60 {
            let memory = Odd { seed, reads: Cell::new(0), bytes: Cell::new(0) };
            // As if one heap had all addresses: whatever the map of segments says is followed.
            let mut state = RuntimeState::default();
            state.get_or_insert::<CodeHeaps>().span(0..u64::MAX, 7);
            for pc in [0, 0x1000, 0x7fff_ffff_f000, u64::MAX - 8] {
                for is_return in [false, true] {
                    let mut process = RuntimeProcess { memory: &memory, bias: 0, state: &mut state };
                    let frame = RuntimeFrame {
                        pc: Avma(pc),
                        is_return,
                        sp: Avma(pc & !7),
                        fp: Some((pc & !7).wrapping_add(64)),
                    };
                    let _ = frames::rule(&layout, &mut process, frame, &mut |at| memory.word(at).ok());
                }
                let heaps = state.get_or_insert::<CodeHeaps>();
                if let Ok(Some(blob)) = heaps.blob(&memory, (&layout, 0), pc) {
                    assert!(blob.code.contains(&pc));
                }
                let _ = methods::id(&memory, &layout, pc).map(|id| methods::read(&memory, &layout, id));
                let blob = Blob::anything(pc);
                if let Ok(code) = scopes::read(&memory, &layout, &blob) {
                    assert_eq!(code.range(), blob.code);
                }
            }
            assert!(memory.reads.get() < 2_000_000, "seed {seed}: {} reads", memory.reads.get());
            assert!(memory.bytes.get() < 1 << 29, "seed {seed}: {} bytes", memory.bytes.get());
        }
    }
}

/// Memory that is known in places.
struct Parts(Vec<(u64, Vec<u8>)>);

impl Memory for Parts {
    fn read(&self, at: u64, to: &mut [u8]) -> bool {
        let part = self.0.iter().find_map(|(start, bytes)| {
            bytes.get(usize::try_from(at.checked_sub(*start)?).ok()?..)?.get(..to.len())
        });
        part.map(|part| to.copy_from_slice(part)).is_some()
    }
}

/// Compiled code of Java 25 whose frame has 48 bytes: its rule after a call, before and after the frame is made, and as it returns.
#[test]
fn the_rule_of_compiled_code_depends_on_the_instruction() {
    const HEAP: u64 = 0x7f00_0000_0000;
    const CODE: u64 = 232;
    let layout = layouts().find(|layout| layout.version == 25).expect("it is there");
    let mut block = vec![0_u8; 4096];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let blob = layout.heap.block_bytes as usize;
    put(layout.heap.block_used as usize, &[1]);
    put(blob + layout.blob.name as usize, &0x1000_u64.to_le_bytes());
    put(blob + layout.blob.size.offset as usize, &2000_u32.to_le_bytes());
    put(blob + layout.blob.frame_size.offset as usize, &6_u32.to_le_bytes());
    put(blob + layout.blob.frame_complete.offset as usize, &5_u16.to_le_bytes());
    put(blob + 36, &(CODE as u32 - 8).to_le_bytes());
    put(blob + 40, &1000_u32.to_le_bytes());
    // push %rbp; sub $32,%rsp; …; add $32,%rsp; pop %rbp; ret
    let code = [0x55, 0x48, 0x83, 0xec, 0x20, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3];
    put(CODE as usize, &code);
    let memory = Parts(vec![
        (HEAP, block),
        (0x1000, b"nmethod\0\0\0\0\0\0\0\0\0".to_vec()),
        (0x2000, [0, 1, 2, 3].to_vec().into_iter().chain([0; 4092]).collect()),
    ]);
    let mut state = RuntimeState::default();
    state.get_or_insert::<CodeHeaps>().span(HEAP..HEAP + 4096, 7).segments_at(0x2000);
    let sp = 0x7fff_0000_1000;
    let mut rule = |offset: u64, is_return| {
        let mut process = RuntimeProcess { memory: &memory, bias: 0, state: &mut state };
        let frame = RuntimeFrame { pc: Avma(HEAP + CODE + offset), is_return, sp: Avma(sp), fp: Some(3) };
        let found = frames::rule(&layout, &mut process, frame, &mut |_| Some(HEAP + 1000));
        let RuntimeRule::Caller(rule) = found else { panic!("{found:?}") };
        (rule.slot.0 - sp, rule.fp.map(|fp| fp.0 - sp))
    };
    assert_eq!(rule(7, true), (40, Some(32)), "after a call");
    assert_eq!(rule(5, false), (40, Some(32)), "with its frame");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(rule(0, false), (0, None), "before it");
        assert_eq!(rule(1, false), (8, Some(0)), "with the frame pointer pushed");
        assert_eq!(rule(11, false), (8, Some(0)), "without the rest of the frame");
        assert_eq!(rule(12, false), (0, None), "at the return");
    }
}
