//! Compares the rules generated from Go's own table with the `.debug_frame` that Go's linker writes, and checks what
//! the latter lacks.
//!
//! Needs Go to build a program. Without it, the tests print a message and are skipped.

mod elf;

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use plumb_fixtures::{Requirement, needs, probe::go};
use plumb_unwind::{CfaRule, Isa, Module, RegisterRule, Row, Section, Sections, Svma, aarch64, go, x86_64};

/// A processor, and its registers in rows: the stack pointer, the frame pointer and the return address.
struct Processor {
    name: &'static str,
    isa: Isa,
    sp: u16,
    fp: u16,
    ra: u16,
    /// Distance of the CFA from the stack pointer at the entry.
    at_entry: i64,
    program: OnceLock<Option<Vec<u8>>>,
}

static PROCESSORS: [Processor; 2] = [
    Processor {
        name: "amd64",
        isa: Isa::X86_64,
        sp: x86_64::RSP,
        fp: x86_64::RBP,
        ra: x86_64::RIP,
        at_entry: 8,
        program: OnceLock::new(),
    },
    Processor {
        name: "arm64",
        isa: Isa::Aarch64,
        sp: aarch64::SP,
        fp: aarch64::FP,
        ra: aarch64::PC,
        at_entry: 0,
        program: OnceLock::new(),
    },
];

/// Returns a Go program for each processor, which is built once.
fn programs() -> impl Iterator<Item = (&'static Processor, &'static [u8])> {
    PROCESSORS.iter().filter_map(|processor| {
        let program = processor.program.get_or_init(|| build(processor)).as_deref();
        program.map(|program| (processor, program))
    })
}

fn build(processor: &Processor) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go").join(processor.name);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/goroutines.go");
    if !needs(Requirement::Go) {
        return None;
    }
    let mut command = Command::new(go().expect("it was found"));
    command.env("GOCACHE", folder.join("cache")).env("GOPATH", folder.join("path")).env("HOME", &folder);
    command.args(["build", "-ldflags=-compressdwarf=false", "-o"]).arg(folder.join("program")).arg(&source);
    command.env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local").env("GOARCH", processor.name);
    assert!(command.status().is_ok_and(|status| status.success()), "it builds");
    Some(std::fs::read(folder.join("program")).expect("it was built"))
}

fn section(data: &[u8], name: &str) -> (Svma, Vec<u8>) {
    let file = object::File::parse(data).expect("an ELF file");
    let section = file.section_by_name(name).expect("Go writes this section");
    (Svma(section.address()), section.data().expect("it can be read").to_vec())
}

fn module(isa: Isa, bytes: Vec<u8>) -> Module<Vec<u8>> {
    let debug_frame = Some(Section { address: Svma(0), bytes });
    Module::new(Sections { debug_frame, isa, ..Sections::default() })
}

fn made(processor: &Processor, data: &[u8]) -> Module<Vec<u8>> {
    let ((_, table), (at, text)) = (section(data, ".gopclntab"), section(data, ".text"));
    let bytes = go::debug_frame(&table[..], at, &text[..]).expect("the table can be read");
    module(processor.isa, bytes)
}

/// Returns where the function that holds an address saves the link register by `str x30, [sp, #-n]!`, its first instruction.
fn pushed(program: &[u8], at: Svma) -> RegisterRule {
    let file = object::File::parse(program).expect("an ELF file");
    let functions =
        file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() <= at.0);
    let begin = functions.map(|symbol| symbol.address()).max().expect("it has a symbol");
    let (start, text) = section(program, ".text");
    let first = text[(begin - start.0) as usize..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    assert_eq!(first & 0xffe0_0fff, 0xf800_0ffe, "{first:x}");
    RegisterRule::Offset(i64::from((first << 11) as i32 >> 23))
}

#[test]
fn the_stack_pointer_is_where_the_linker_says() {
    for (processor, program) in programs() {
        let of_linker = elf::sections(program).expect("an ELF file for this machine");
        assert!(of_linker.debug_frame.is_some() && of_linker.eh_frame.is_none());
        let (linker, made) = (Module::new(of_linker), made(processor, program));
        let (start, text) = section(program, ".text");
        let (mut same, mut wrong, mut missing, mut otherwise) = (0, Vec::new(), 0, 0);
        let mut at = start;
        while at.0 < start.0 + text.len() as u64 {
            let Some(theirs) = linker.row(at).expect("it is not damaged") else {
                at = Svma(at.0 + 1);
                continue;
            };
            match made.row(at).expect("it is not damaged") {
                None => missing += 1,
                Some(row) if row.register(processor.ra) == RegisterRule::Undefined || row.is_signal => {
                    otherwise += 1
                }
                Some(row) if matches!(row.register(processor.ra), RegisterRule::ValExpression(_)) => {
                    otherwise += 1
                }
                // The linker has no caller for signal handlers.
                Some(_) if theirs.register(processor.ra) == RegisterRule::Undefined => otherwise += 1,
                Some(row)
                    if (row.cfa, row.register(processor.ra))
                        == (theirs.cfa, theirs.register(processor.ra)) =>
                {
                    same += 1;
                }
                // A call of C has room in the frame, in which the return address is by the linker's rules.
                Some(row) if row.cfa == theirs.cfa && row.register(processor.ra) == pushed(program, at) => {
                    otherwise += 1;
                }
                Some(row) => wrong.push((
                    at,
                    row.cfa,
                    row.register(processor.ra),
                    theirs.cfa,
                    theirs.register(processor.ra),
                )),
            }
            at = theirs.range.end.max(Svma(at.0 + 1));
        }
        println!("{same} rows as theirs, {otherwise} where stacks end or are switched, {missing} without");
        assert!(wrong.is_empty(), "{} rows differ: {:x?}", wrong.len(), &wrong[..wrong.len().min(5)]);
        assert!(same > 10_000 && (otherwise + missing) * 50 < same, "{same} {otherwise} {missing}");
    }
}

/// Returns a rule; if it is an expression, the expression's bytes instead of their location.
fn rule_of(module: &Module<Vec<u8>>, row: &Row, register: u16) -> (Option<Vec<u8>>, Option<RegisterRule>) {
    match row.register(register) {
        RegisterRule::ValExpression(expression) => (Some(module.expression(row, expression).to_vec()), None),
        rule => (None, Some(rule)),
    }
}

#[test]
fn a_function_alone_has_the_rules_that_it_has_among_all() {
    for (processor, program) in programs() {
        let all = made(processor, program);
        let ((_, table), (start, text)) = (section(program, ".gopclntab"), section(program, ".text"));
        let sections = (&table[..], start, &text[..]);
        let layout = go::layout(sections.0, start, sections.2).expect("the table can be read");
        let (mut same, mut at) = (0, start);
        while at.0 < start.0 + text.len() as u64 {
            let expected = all.row(at).expect("it is not damaged");
            let alone = go::function_frame(layout, sections, at).map(|bytes| module(processor.isa, bytes));
            let row = alone.as_ref().and_then(|module| module.row(at).expect("it is not damaged"));
            assert_eq!(row.is_some(), expected.is_some(), "{at:x?}");
            let Some(((row, alone), expected)) = row.zip(alone.as_ref()).zip(expected) else {
                at = Svma(at.0 + 1);
                continue;
            };
            assert_eq!(
                (row.cfa, &row.range, row.is_signal),
                (expected.cfa, &expected.range, expected.is_signal)
            );
            for register in [processor.ra, processor.fp] {
                assert_eq!(rule_of(alone, &row, register), rule_of(&all, &expected, register), "{at:x?}");
            }
            let begin = go::function_start(layout, sections, at).expect("it has rules");
            assert!(begin.0 <= at.0 + 1, "{begin:x?} is not before {at:x?}");
            same += 1;
            at = expected.range.end.max(Svma(at.0 + 1));
        }
        assert!(same > 10_000, "{same}");
    }
}

#[test]
fn what_nobody_calls_is_a_root() {
    for (processor, program) in programs() {
        let module = made(processor, program);
        let row = |name: &str, offset: u64| {
            let at = elf::address_of(program, name).expect("every Go program has it");
            module.row(Svma(at + offset)).expect("it is not damaged")
        };
        // Goroutines return to the second instruction of goexit.
        for (name, offset) in
            [("runtime.goexit.abi0", 0), ("runtime.mstart.abi0", 0), ("runtime.rt0_go.abi0", 9)]
        {
            let row = row(name, offset).expect("it has rules");
            assert_eq!(row.register(processor.ra), RegisterRule::Undefined, "{name}");
        }
        let main = row("main.main", 0).expect("it has rules");
        assert_eq!(main.cfa, CfaRule::Register { register: processor.sp, offset: processor.at_entry });
        assert_eq!(
            main.register(processor.ra),
            match processor.isa {
                Isa::Aarch64 => RegisterRule::SameValue,
                _ => RegisterRule::Offset(-8),
            }
        );
        // The kernel's vDSO has that function on aarch64.
        if processor.isa == Isa::X86_64 {
            let row = row("runtime.sigreturn__sigaction.abi0", 0).expect("it has rules");
            assert!(row.is_signal);
        }
    }
}

#[test]
fn names_are_as_long_as_they_like() {
    for (processor, program) in programs() {
        let module = made(processor, program);
        let file = object::File::parse(program).expect("an ELF file");
        let of_main =
            |symbol: &object::Symbol<'_, '_>| symbol.name().is_ok_and(|name| name.starts_with("main."));
        let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && of_main(symbol));
        let mut longest = 0;
        for function in functions {
            let row = module.row(Svma(function.address())).expect("it is not damaged");
            assert!(row.is_some(), "{:?} has no rules", function.name());
            longest = longest.max(function.name().map_or(0, str::len));
        }
        assert!(longest > 256, "the longest name has {longest} letters");
    }
}

#[test]
fn damaged_tables_cost_no_more_than_their_code() {
    for (processor, program) in programs() {
        let ((_, table), (at, text)) = (section(program, ".gopclntab"), section(program, ".text"));
        let mut seed = 0x1234_5678_9abc_def1_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize % below
        };
        let mut read = 0;
        for round in 0..60 {
            let mut table = table.clone();
            // Change the header, the list of functions, or anything.
            let reach = [72, 4096, table.len()][round % 3];
            let first = if round % 3 == 1 {
                u64::from_le_bytes(*table[64..].first_chunk().expect("8")) as usize
            } else {
                0
            };
            for _ in 0..1 + random(20) {
                table[first + random(reach)] = random(256) as u8;
            }
            table.truncate(table.len() - random(100) * (round % 2));
            let sections = (&table[..], at, &text[..]);
            if let Some(layout) = go::layout(sections.0, at, sections.2) {
                (0..1000).for_each(|_| {
                    drop(go::function_frame(layout, sections, Svma(at.0 + random(text.len()) as u64)));
                });
            }
            let Some(frames) = go::debug_frame(&table[..], at, &text[..]) else { continue };
            read += 1;
            assert!(frames.len() < 64 * text.len());
            let module = module(processor.isa, frames);
            for _ in 0..1000 {
                let _ = module.row(Svma(at.0 + random(text.len()) as u64));
            }
        }
        assert!(read > 10, "{read}");
        assert_eq!(go::debug_frame(&table[..], Svma(at.0 + 64), &text[64..]), None, "about other code");
    }
}
