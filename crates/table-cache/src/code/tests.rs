//! Compares derived rules with the rules that compilers wrote for the same code.

use std::fs::File;
use std::path::{Path, PathBuf};

use plumb_fixtures::random::Random;
use plumb_fixtures::{Requirement, needs_command};
use plumb_process::{Elf, Section};
use plumb_unwind::{CfaRule, Isa, Module, RegisterRule, Sections, Svma, aarch64};

use super::effect::{FramePointer, ReturnAddress, State};
use super::flow::{Flow, Function};
use super::pieces::Pieces;
use super::{begins, read, stated, with_entries};
use crate::module_of;

const RBP: u16 = 6;
const RSP: u16 = 7;
const RETURN: u16 = 16;

/// Comparison of a file's own rules with rules derived as if it had none.
#[derive(Debug, Default)]
struct Compared {
    /// Bytes of code with rules in the file.
    all: u64,
    /// Bytes of those with derived rules.
    made: u64,
    /// Bytes of those where the derived rules lead to another caller.
    wrong: u64,
}

/// `with_symbols`: where functions begin and end is taken from the symbol table.
fn compare(path: &Path, isa: Isa, with_symbols: bool) -> Compared {
    let file = File::open(path).unwrap();
    let mut sections = Elf::read(&file).unwrap().unwind_sections(&file);
    let code = sections.code.take().unwrap();
    let symbols = sections.symbols.take().filter(|_| with_symbols);
    let module = module_of(sections, isa, None);
    let all = code.address..code.address + code.size();
    let piece = read(&code, &all).unwrap();
    let gaps = module.gaps(Svma(all.start)..Svma(all.end));
    let without: u64 = gaps.iter().map(|gap| gap.end.0 - gap.start.0).sum();
    let mut compared = Compared { all: all.end - all.start - without, ..Compared::default() };
    let begins = begins::called(isa, &code, std::slice::from_ref(&all));
    let stated = symbols.map_or_else(Vec::new, |symbols| stated::functions(&symbols, &[all]));
    for Function { range, rows, .. } in Flow::new(isa, &Pieces::new([piece]), &begins, &stated).functions() {
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
        let (sp, fp, ra) = match module.isa() {
            Isa::Aarch64 => (aarch64::SP, aarch64::FP, aarch64::PC),
            _ => (RSP, RBP, RETURN),
        };
        let is_frame = match (row.cfa, state) {
            (CfaRule::Register { register, offset }, State { sp: Some(below), .. }) if register == sp => {
                i64::from(below) == offset
            }
            (CfaRule::Register { register, offset }, State { fp: FramePointer::Below(below), .. })
                if register == fp =>
            {
                i64::from(below) == offset
            }
            // Other rows cannot be compared.
            _ => true,
        };
        let is_return_address = match (row.register(ra), state.ra) {
            (_, ReturnAddress::Pushed) => true,
            (RegisterRule::Offset(offset), ReturnAddress::At(at)) => i64::from(at) == offset,
            // The register has it until the first call, and once it is loaded again; compilers say so later.
            (RegisterRule::Unspecified | RegisterRule::SameValue | RegisterRule::Offset(_), _) => true,
            _ => false,
        };
        let is_caller = is_frame && is_return_address;
        let has_caller = !row.is_signal && row.register(ra) != RegisterRule::Undefined;
        compared.made += until - at;
        compared.wrong += if is_caller || !has_caller { 0 } else { until - at };
        at = until;
    }
}

/// Much of the code is reached only by paths that are not visible, and gets no rules.
#[test]
fn rules_are_those_that_compilers_write() {
    let this = || std::env::current_exe().unwrap();
    for (path, with_symbols, least) in
        [(this(), false, 50), (PathBuf::from("/bin/bash"), false, 50), (this(), true, 90)]
    {
        let compared = compare(&path, Isa::X86_64, with_symbols);
        println!("{}: {compared:?}", path.display());
        assert!(compared.made * 100 > compared.all * least, "{compared:?}");
        assert!(compared.wrong * 1000 < compared.made, "{compared:?}");
    }
}

/// A program with the C library in it, which has rules for its code.
#[test]
fn rules_of_aarch64_are_those_that_compilers_write() {
    let gcc = "aarch64-linux-gnu-gcc";
    if !needs_command(Requirement::Cross, gcc) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/code-aarch64");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(
        &source,
        "#include <stdio.h>\nint main(int n, char **all) { return printf(all[0], n); }\n",
    )
    .unwrap();
    let built =
        std::process::Command::new(gcc).args(["-O2", "-static", "-o"]).args([&program, &source]).status();
    assert!(built.is_ok_and(|status| status.success()));
    let compared = compare(&program, Isa::Aarch64, false);
    println!("{compared:?}");
    assert!(compared.made * 4 > compared.all * 3, "{compared:?}");
    assert!(compared.wrong * 1000 < compared.made, "{compared:?}");
}

fn functions(bytes: Vec<u8>) -> Vec<Function> {
    functions_of([Section { address: 0x1000, bytes }])
}

fn functions_of<const N: usize>(pieces: [Section; N]) -> Vec<Function> {
    let gaps = pieces.each_ref().map(|piece| piece.address..piece.address + piece.bytes.len() as u64);
    let mut begins = Vec::new();
    for piece in &pieces {
        begins::search(Isa::X86_64, &piece.bytes, piece.address, &gaps, &mut begins);
    }
    begins.sort_unstable();
    begins.dedup();
    Flow::new(Isa::X86_64, &Pieces::new(pieces), &begins, &[]).functions()
}

/// Returns the state at an address.
fn state_at(functions: &[Function], address: u64) -> Option<State> {
    let function = functions.iter().find(|function| function.range.contains(&address))?;
    function.rows.iter().rev().find(|(start, _)| *start <= address).map(|&(_, state)| state)
}

/// The code after a call that does not return is another function, with its own frame.
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
    let at = |address: u64| state_at(&functions, address)?.sp;
    assert_eq!((at(0x1010), at(0x1015), at(0x1019), at(0x101f)), (Some(8), Some(48), Some(48), Some(48)));
    assert_eq!(at(0x101e), Some(8));
    assert_eq!((at(0x1025), at(0x102a)), (None, None), "where it begins is not known");
}

/// After a loop that allocates a frame page by page, the stack pointer is known.
#[test]
fn a_large_frame_may_be_touched_page_by_page() {
    let code = [
        &[0xe8, 0x0b, 0, 0, 0, 0xc3][..],            // 1000: call 1010; ret
        &[0x90; 10],                                 // padding
        &[0x4c, 0x8d, 0x9c, 0x24, 0, 0, 0xfe, 0xff], // 1010: lea -0x20000(%rsp), %r11
        &[0x48, 0x81, 0xec, 0, 0x10, 0, 0],          // 1018: sub $0x1000, %rsp
        &[0x48, 0x83, 0x0c, 0x24, 0],                // 101f: orq $0, (%rsp)
        &[0x4c, 0x39, 0xdc, 0x75, 0xef],             // 1024: cmp %r11, %rsp; jne 1018
        &[0x48, 0x83, 0xec, 0x18],                   // 1029: sub $24, %rsp
        &[0xff, 0x15, 0, 0, 0, 0],                   // 102d: call *(%rip)
        &[0x48, 0x81, 0xc4, 0x18, 0, 2, 0, 0xc3],    // 1033: add $0x20018, %rsp; ret
    ]
    .concat();
    let functions = functions(code);
    let at = |address: u64| state_at(&functions, address)?.sp;
    assert_eq!([0x1010, 0x1029, 0x102d, 0x1033, 0x103a].map(at), [8, 0x20008, 0x20020, 0x20020, 8].map(Some));
    assert_eq!([0x1018, 0x101f, 0x1024].map(at), [None; 3], "another in each round");
}

/// A part of a function at another place has the frame of the jump to it; calls do not lead there.
#[test]
fn a_part_in_another_place_has_its_function_s_frame() {
    let cold = [&[0xe8, 0xfb, 0x0f, 0, 0][..], &[0xe9, 0x12, 0x10, 0, 0]].concat(); // 1000: call 2000; jmp 201c
    let hot = [
        &[0xc3][..],                           // 2000: ret
        &[0x90; 15],                           // padding
        &[0x53, 0x48, 0x83, 0xec, 0x20],       // 2010: push %rbx; sub $32, %rsp
        &[0xe9, 0xe6, 0xef, 0xff, 0xff],       // 2015: jmp 1000
        &[0x90, 0x90],                         // padding
        &[0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3], // 201c: add $32, %rsp; pop %rbx; ret
        &[0xe8, 0xe9, 0xff, 0xff, 0xff, 0xc3], // 2022: call 2010; ret
    ]
    .concat();
    let [cold, hot] = [(0x1000, cold), (0x2000, hot)].map(|(address, bytes)| Section { address, bytes });
    let functions = functions_of([cold, hot]);
    let sp = |at| state_at(&functions, at).map(|state| state.sp);
    assert_eq!([0x1000, 0x1005, 0x201c].map(sp), [Some(Some(48)); 3], "{functions:x?}");
    let first = |at| functions.iter().find(|function| function.range.contains(&at)).map(|one| one.is_first);
    assert_eq!([0x1000, 0x2010, 0x201c].map(first), [Some(false), Some(true), Some(false)]);
    let module =
        with_entries(Module::new(Sections::default()), &super::frames::entries(Isa::X86_64, &functions, &[]));
    assert!(
        matches!(module.row(Svma(0x1004)), Ok(Some(row)) if row.cfa == CfaRule::Register { register: RSP, offset: 48 })
    );
}

/// Memory that one case of a switch allocates on the stack may exist in the others, whichever jump led there.
#[test]
fn with_a_frame_pointer_cases_may_take_memory_of_the_stack() {
    let code = [
        &[0xe8, 0x0b, 0, 0, 0, 0xc3][..],      // 1000: call 1010; ret
        &[0x90; 10],                           // padding
        &[0x55, 0x48, 0x89, 0xe5, 0x53],       // 1010: push %rbp; mov %rsp, %rbp; push %rbx
        &[0x48, 0x83, 0xe4, 0xc0],             // 1015: and $-64, %rsp
        &[0x48, 0x83, 0xec, 0x08],             // 1019: sub $8, %rsp
        &[0xff, 0xe0],                         // 101d: jmp *%rax
        &[0x90],                               // padding
        &[0x48, 0x29, 0xd4, 0xff, 0xe0],       // 1020: sub %rdx, %rsp; jmp *%rax
        &[0x31, 0xc0],                         // 1025: xor %eax, %eax
        &[0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3], // 1027: mov -8(%rbp), %rbx; leave; ret
    ]
    .concat();
    let functions = functions(code);
    let frame = |at| state_at(&functions, at).map(|state| (state.sp, state.fp));
    let by_fp = Some((None, FramePointer::Below(16)));
    assert_eq!([0x1019, 0x101d, 0x1025, 0x102b].map(frame), [by_fp; 4], "{functions:x?}");
}

/// `rbp` with a computed address is not a frame pointer any more; other state is kept.
#[test]
fn any_address_may_be_computed_in_rbp() {
    let code = [
        &[0xe8, 0x0b, 0, 0, 0, 0xc3][..], // 1000: call 1010; ret
        &[0x90; 10],                      // padding
        &[0x55, 0x48, 0x8d, 0x2c, 0x3e],  // 1010: push %rbp; lea (%rsi,%rdi), %rbp
        &[0x48, 0x89, 0xe8, 0x5d, 0xc3],  // 1015: mov %rbp, %rax; pop %rbp; ret
    ]
    .concat();
    let functions = functions(code);
    let sp = |at| state_at(&functions, at).map(|state| state.sp);
    assert_eq!([0x1015, 0x1019].map(sp), [Some(Some(16)), Some(Some(8))], "{functions:x?}");
}

/// A function whose size is wrong, so that its last instruction is not all in it, takes no steps from those behind it.
#[test]
fn an_instruction_beyond_the_end_of_its_function_is_left_out() {
    let framed = [0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3]; // push %rbp; mov %rsp, %rbp; pop %rbp; ret
    let code = [&framed[..], &[0x48, 0x89], &[0x90; 8], &framed[..]].concat();
    let stated = [0x1000..0x1008, 0x1010..0x1016];
    let pieces = Pieces::new([Section { address: 0x1000, bytes: code }]);
    let functions = Flow::new(Isa::X86_64, &pieces, &[], &stated).functions();
    let sp = |at| state_at(&functions, at).map(|state| state.sp);
    assert_eq!([0x1001, 0x1011].map(sp), [Some(Some(16)); 2], "{functions:x?}");
}

/// A function that never returns has no matching end. A call of it from accepted code identifies it.
#[test]
fn functions_without_end_are_followed_to_their_calls() {
    let code = [
        &[0x85, 0xff, 0x75, 0x01, 0xc3][..], // 1000: test %edi, %edi; jne 1005; ret
        &[0xe8, 0x06, 0, 0, 0],              // 1005: call 1010
        &[0x90; 6],                          // padding
        &[0x53, 0x48, 0x83, 0xec, 0x20],     // 1010: push %rbx; sub $32, %rsp
        &[0xff, 0x15, 0, 0, 0, 0, 0xeb, 0xf8], // 1015: call *(%rip); jmp 1015
        &[0x90, 0x90, 0x90],                 // padding
        &[0xe8, 0xdb, 0xff, 0xff, 0xff, 0xc3], // 1020: call 1000; ret
    ]
    .concat();
    let functions = functions(code);
    let sp = |at| state_at(&functions, at).map(|state| state.sp);
    assert_eq!(
        [0x1010, 0x1015, 0x101a].map(sp),
        [Some(Some(8)), Some(Some(48)), Some(Some(48))],
        "{functions:x?}"
    );
}

/// Unusual frames do not prevent rules for other code.
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
    let module =
        with_entries(Module::new(Sections::default()), &super::frames::entries(Isa::X86_64, &functions, &[]));
    let row = module.row(Svma(0x1015)).unwrap().expect("there is a rule");
    assert_eq!(
        (row.cfa, row.register(RBP)),
        (CfaRule::Register { register: RSP, offset: 19 }, RegisterRule::Undefined)
    );
    assert!(module.row(Svma(0x1000)).unwrap().is_some());
}

/// Random bytes instead of code.
#[test]
fn anything_may_be_there_instead_of_code() {
    let mut random = Random(1);
    for _ in 0..200 {
        let bytes = (0..2000).map(|_| random.next() as u8).collect();
        let functions = functions(bytes);
        for Function { range, rows, .. } in &functions {
            assert!(range.start < range.end && rows.is_sorted_by(|a, b| a.0 < b.0), "{range:x?} {rows:x?}");
        }
        let module = with_entries(
            Module::new(Sections::default()),
            &super::frames::entries(Isa::X86_64, &functions, &[]),
        );
        let first = functions.first().map(|function| Svma(function.range.start));
        assert!(first.is_none_or(|first| matches!(module.row(first), Ok(Some(_)))));
    }
    // Each byte leads to two more.
    functions([0x74, 0x00].repeat(20_000));
}

/// Disassembled with objdump from glibc 2.36 and Boost 1.74: the code whose address is put on a new stack follows
/// padding, or its address is computed.
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
    let roots = |gap, bytes| super::roots::of_gap(Isa::X86_64, &gap, &Section { address: gap.start, bytes });
    assert_eq!(roots(0xff9..0x1000, start_context.concat()), [0x1000]);
    let roots = roots(0x101a..0x1031, make_fcontext.concat());
    assert_eq!(roots, [0x1022]);
    let module =
        with_entries(Module::new(Sections::default()), &super::frames::entries(Isa::X86_64, &[], &roots));
    let row = module.row(Svma(0x1021)).unwrap().expect("there is a rule");
    assert_eq!(row.register(RETURN), RegisterRule::Undefined);
    assert!(module.row(Svma(0x1020)).unwrap().is_none() && module.row(Svma(0x1022)).unwrap().is_none());
}

/// If the byte before has rules of another function, the code gets no rule and is left to walks.
#[test]
fn what_has_no_byte_before_it_gets_no_rule() {
    // hlt; lea 1000(%rip), %rcx
    let code = Section { address: 0x1000, bytes: vec![0xf4, 0x48, 0x8d, 0x0d, 0xf8, 0xff, 0xff, 0xff] };
    assert_eq!(super::roots::of_gap(Isa::X86_64, &(0x1000..0x1008), &code), []);
    let behind = Section { address: 0xfff, bytes: [&[0x90], &*code.bytes].concat() };
    assert_eq!(super::roots::of_gap(Isa::X86_64, &(0xfff..0x1008), &behind), [0x1000]);
}

/// Instructions of aarch64 as bytes.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The link register has the return address up to the first call, which puts its own there.
#[test]
fn frames_of_aarch64_say_where_the_return_address_is() {
    let code = words(&[
        0x9400_0004, // 1000: bl 1010
        0xd65f_03c0, // 1004: ret
        0xd503_201f, // nop; nop
        0xd503_201f,
        0xd503_233f, // 1010: paciasp
        0xa9be_7bfd, // 1014: stp x29, x30, [sp, #-32]!
        0x9100_03fd, // 1018: mov x29, sp
        0xf900_0bf3, // 101c: str x19, [sp, #16]
        0xcb20_63ff, // 1020: sub sp, sp, x0
        0xd63f_0020, // 1024: blr x1
        0x9100_03bf, // 1028: mov sp, x29
        0xf940_0bf3, // 102c: ldr x19, [sp, #16]
        0xa8c2_7bfd, // 1030: ldp x29, x30, [sp], #32
        0xd503_23bf, // 1034: autiasp
        0xd65f_03c0, // 1038: ret
    ]);
    let gap = 0x1000..0x1000 + code.len() as u64;
    let mut begins = Vec::new();
    begins::search(Isa::Aarch64, &code, 0x1000, std::slice::from_ref(&gap), &mut begins);
    assert_eq!(begins, [0x1010]);
    let pieces = Pieces::new([Section { address: 0x1000, bytes: code }]);
    let functions = Flow::new(Isa::Aarch64, &pieces, &begins, &[]).functions();
    let entries = super::frames::entries(Isa::Aarch64, &functions, &[]);
    let module = with_entries(Module::new(Sections { isa: Isa::Aarch64, ..Sections::default() }), &entries);
    let row = |at| {
        let row = module.row(Svma(at)).unwrap()?;
        let CfaRule::Register { register, offset } = row.cfa else { return None };
        Some((register, offset, row.register(aarch64::PC), row.register(aarch64::FP)))
    };
    let is_bare = |at| {
        matches!(row(at), Some((aarch64::SP, 0, RegisterRule::Unspecified | RegisterRule::SameValue, _)))
    };
    assert!([0x1010, 0x1014, 0x1034, 0x1038].map(is_bare).iter().all(|&is| is), "{functions:x?}");
    let saved = (RegisterRule::Offset(-24), RegisterRule::Offset(-32));
    for at in [0x1018, 0x101c, 0x102c, 0x1030] {
        assert_eq!(row(at), Some((aarch64::SP, 32, saved.0, saved.1)), "{at:x}");
    }
    for at in [0x1024, 0x1028] {
        assert_eq!(row(at), Some((aarch64::FP, 32, saved.0, saved.1)), "{at:x}");
    }
    assert_eq!(row(0x1004), None, "its return address is nowhere");
}

/// Disassembled with objdump from musl 1.2.3: the code behind the call of a thread's function ends the thread.
#[test]
fn what_threads_return_to_has_no_caller_on_aarch64() {
    // ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0
    let bytes = words(&[0xa8c1_03e1, 0xd63f_0020, 0xd280_0ba8, 0xd400_0001]);
    let piece = Section { address: 0x1000, bytes };
    assert_eq!(super::roots::of_gap(Isa::Aarch64, &(0x1000..0x1010), &piece), [0x1008]);
}
