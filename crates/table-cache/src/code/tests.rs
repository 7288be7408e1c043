//! Rules made of code, held against those that compilers have written of the same code.

use std::fs::File;
use std::path::{Path, PathBuf};

use plumb_fixtures::random::Random;
use plumb_process::{Elf, Section};
use plumb_unwind::{CfaRule, Isa, Module, RegisterRule, Sections, Svma};

use super::effect::{FramePointer, State};
use super::flow::{Flow, Function};
use super::{begins, read, with_entries};
use crate::module_of;

const RBP: u16 = 6;
const RSP: u16 = 7;
const RETURN: u16 = 16;

/// What a file's own rules say of code that rules were made of as if it had none.
#[derive(Debug, Default)]
struct Compared {
    /// Bytes of code that the file has rules for.
    all: u64,
    /// Those that rules were made for.
    made: u64,
    /// Where these lead to another caller.
    wrong: u64,
}

fn compare(path: &Path) -> Compared {
    let file = File::open(path).unwrap();
    let mut sections = Elf::read(&file).unwrap().unwind_sections(&file);
    let code = sections.code.take().unwrap();
    let module = module_of(sections, Isa::X86_64, None);
    let all = code.address..code.address + code.size();
    let piece = read(&code, &all).unwrap();
    let gaps = module.gaps(Svma(all.start)..Svma(all.end));
    let without: u64 = gaps.iter().map(|gap| gap.end.0 - gap.start.0).sum();
    let mut compared = Compared { all: all.end - all.start - without, ..Compared::default() };
    let begins = begins::called(&code, &[all]);
    for Function { range, rows } in Flow::new(&piece, &begins).functions() {
        let ends = rows.iter().skip(1).map(|&(at, _)| at).chain([range.end]);
        for (&(start, state), end) in rows.iter().zip(ends) {
            compare_row(&module, start..end, state, &mut compared);
        }
    }
    compared
}

fn compare_row(module: &Module<Vec<u8>>, range: std::ops::Range<u64>, state: State, compared: &mut Compared) {
    let mut at = range.start;
    while at < range.end {
        let Ok(Some(row)) = module.row(Svma(at)) else {
            at += 1;
            continue;
        };
        let until = row.range.end.0.clamp(at + 1, range.end);
        let is_caller = match (row.cfa, state) {
            (CfaRule::Register { register: RSP, offset }, State { sp: Some(sp), .. }) => {
                i64::from(sp) == offset
            }
            (CfaRule::Register { register: RBP, offset }, State { fp: FramePointer::Below(below), .. }) => {
                i64::from(below) == offset
            }
            // Of others it can't be told.
            _ => true,
        };
        let has_caller = !row.is_signal && row.register(RETURN) != RegisterRule::Undefined;
        compared.made += until - at;
        compared.wrong += if is_caller || !has_caller { 0 } else { until - at };
        at = until;
    }
}

/// Much of the code is only reached in ways that are not seen; of it there are to be no rules.
#[test]
fn rules_are_those_that_compilers_write() {
    for path in [std::env::current_exe().unwrap(), PathBuf::from("/bin/bash")] {
        let compared = compare(&path);
        println!("{}: {compared:?}", path.display());
        assert!(compared.made * 2 > compared.all, "{compared:?}");
        assert!(compared.wrong * 1000 < compared.made, "{compared:?}");
    }
}

fn functions(bytes: Vec<u8>) -> Vec<Function> {
    let code = Section { address: 0x1000, bytes };
    let gap = code.address..code.address + code.bytes.len() as u64;
    let mut begins = Vec::new();
    begins::search(&code.bytes, code.address, &[gap], &mut begins);
    begins.sort_unstable();
    begins.dedup();
    Flow::new(&code, &begins).functions()
}

/// What a call that does not return is followed by is another function, whose frame is its own.
#[test]
fn a_call_that_does_not_return_ends_its_function() {
    let code = [
        &[0xe8, 0x0b, 0, 0, 0, 0xc3][..],      // 1000: call 1010; ret
        &[0x90; 10],                           // padding
        &[0x55, 0x48, 0x83, 0xec, 0x20],       // 1010: push %rbp; sub $32, %rsp
        &[0x85, 0xff, 0x74, 0x06],             // 1015: test %edi, %edi; je 101f
        &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3], // 1019: add $32, %rsp; pop %rbp; ret
        &[0xff, 0x15, 0, 0, 0, 0],             // 101f: call *(%rip), which does not return
        &[0x53, 0x48, 0x83, 0xec, 0x10],       // 1025: push %rbx; sub $16, %rsp
        &[0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3], // 102a: add $16, %rsp; pop %rbx; ret
    ]
    .concat();
    let functions = functions(code);
    let at = |address: u64| {
        let function = functions.iter().find(|function| function.range.contains(&address))?;
        function.rows.iter().rev().find(|(start, _)| *start <= address)?.1.sp
    };
    assert_eq!((at(0x1010), at(0x1015), at(0x1019), at(0x101f)), (Some(8), Some(48), Some(48), Some(48)));
    assert_eq!(at(0x101e), Some(8));
    assert_eq!((at(0x1025), at(0x102a)), (None, None), "where it begins is not known");
}

/// Frames that no compiler makes do not keep others from having rules.
#[test]
fn odd_frames_are_told_as_far_as_they_can_be() {
    let code = [
        &[0xe8, 0x0b, 0, 0, 0, 0xc3][..],                     // 1000: call 1010; ret
        &[0x90; 10],                                          // padding
        &[0x48, 0x83, 0xec, 0x03, 0x55],                      // 1010: sub $3, %rsp; push %rbp
        &[0x5d, 0x48, 0x83, 0xc4, 0x03, 0xc3],                // 1015: pop %rbp; add $3, %rsp; ret
        &[0x48, 0x8d, 0xac, 0x24, 0, 0, 0, 0x80, 0xc9, 0xc3], // lea -2^31(%rsp), %rbp; leave; ret
        &[0x48, 0x8d, 0xac, 0x24, 0xff, 0xff, 0xff, 0x7f, 0xc9, 0xc3],
    ]
    .concat();
    let functions = functions(code);
    assert!(functions.iter().any(|function| function.range.contains(&0x1010)), "{functions:x?}");
    let module = with_entries(Module::new(Sections::default()), &super::frames::entries(&functions, &[]));
    let row = module.row(Svma(0x1015)).unwrap().expect("there is a rule");
    assert_eq!(
        (row.cfa, row.register(RBP)),
        (CfaRule::Register { register: RSP, offset: 19 }, RegisterRule::Undefined)
    );
    assert!(module.row(Svma(0x1000)).unwrap().is_some());
}

/// Bytes that are no code at all.
#[test]
fn anything_may_be_there_instead_of_code() {
    let mut random = Random(1);
    for _ in 0..200 {
        let bytes = (0..2000).map(|_| random.next() as u8).collect();
        let functions = functions(bytes);
        for Function { range, rows } in &functions {
            assert!(range.start < range.end && rows.is_sorted_by(|a, b| a.0 < b.0), "{range:x?} {rows:x?}");
        }
        let module = with_entries(Module::new(Sections::default()), &super::frames::entries(&functions, &[]));
        let first = functions.first().map(|function| Svma(function.range.start));
        assert!(first.is_none_or(|first| matches!(module.row(first), Ok(Some(_)))));
    }
    // Each byte leads to two more.
    functions([0x74, 0x00].repeat(20_000));
}

/// As disassembled by objdump, from glibc 2.36 and Boost 1.74: what is put on a new stack is behind padding, or its address is taken.
#[test]
fn what_coroutines_return_to_has_no_caller() {
    let start_context = [
        &[0x0f, 0x1f, 0x80, 0, 0, 0, 0][..], // 0ff9: nop
        &[0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 8], // 1000: __start_context
        &[0xe8, 0x0f, 0xf6, 0xfe, 0xff, 0x48, 0x89, 0xc7], // 100c: call; mov %rax, %rdi
        &[0xe8, 0xa7, 0xcc, 0xfe, 0xff, 0xf4], // 1014: call; hlt
    ];
    let make_fcontext = [
        &[0x48, 0x8d, 0x0d, 1, 0, 0, 0, 0xc3][..], // 101a: lea 1022(%rip), %rcx; ret
        &[0x48, 0x31, 0xff, 0xe8, 0, 0xff, 0, 0xff, 0xf4], // 1022: xor %rdi, %rdi; call; hlt
        &[0xe8, 0, 0xff, 0, 0xff, 0xc3],           // 102b: call; ret
    ];
    let roots = |gap, bytes| super::roots::of_gap(&gap, &Section { address: gap.start, bytes });
    assert_eq!(roots(0xff9..0x1000, start_context.concat()), [0x1000]);
    let roots = roots(0x101a..0x1031, make_fcontext.concat());
    assert_eq!(roots, [0x1022]);
    let module = with_entries(Module::new(Sections::default()), &super::frames::entries(&[], &roots));
    let row = module.row(Svma(0x1021)).unwrap().expect("there is a rule");
    assert_eq!(row.register(RETURN), RegisterRule::Undefined);
    assert!(module.row(Svma(0x1020)).unwrap().is_none() && module.row(Svma(0x1022)).unwrap().is_none());
}

/// Where the byte before has rules of another function, it is left to walks.
#[test]
fn what_has_no_byte_before_it_gets_no_rule() {
    // hlt; lea 1000(%rip), %rcx
    let code = Section { address: 0x1000, bytes: vec![0xf4, 0x48, 0x8d, 0x0d, 0xf8, 0xff, 0xff, 0xff] };
    assert_eq!(super::roots::of_gap(&(0x1000..0x1008), &code), []);
    let behind = Section { address: 0xfff, bytes: [&[0x90], &*code.bytes].concat() };
    assert_eq!(super::roots::of_gap(&(0xfff..0x1008), &behind), [0x1000]);
}
