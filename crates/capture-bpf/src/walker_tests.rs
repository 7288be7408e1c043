//! The BPF programs' unwinder, compiled for user space, finds the same frames as `plumb_unwind::walk`: on stacks that a program
//! recorded of itself, with the loaded tables. Needs no privilege.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plumb_capture_api::{CodeSegment, UnwindInfoRef};
use plumb_fixtures::{Requirement, skip};
use plumb_process::{Elf, FileOffset, parse_maps};
use plumb_unwind::aarch64::Aarch64;
use plumb_unwind::x86_64::X86_64;
use plumb_unwind::{
    Architecture, Avma, Cache, CfaRule, CodeMap, End, Isa, Located, Memory, Module, ReadError, RegisterSet,
    Section, Sections, Svma, Walked, walk,
};

use crate::file_table::{Loadable, loadable};
use crate::wire::{
    FILE_FIRST, FRAME_NO_RETURN, MAX_FRAMES, MAX_MAPPINGS, Mapping, STATE_READY, TABLE_PIECES, WHY_ANONYMOUS,
    WHY_NO_TABLE, WHY_ODD, WHY_ROOT, WHY_UNMAPPED,
};

/// A file of the program, as both unwinders see it.
struct Code {
    module: Module<Vec<u8>>,
    segments: Vec<CodeSegment>,
}

struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    file: Option<usize>,
}

struct Sample {
    /// By DWARF number; the last one is the program counter.
    registers: Vec<u64>,
    stack: Vec<u8>,
}

/// The tools that make and run programs of an architecture here.
struct Tools {
    compiler: &'static str,
    emulator: Option<&'static str>,
    /// The architecture's name in kernel headers, by which the walker in C chooses its own.
    kernel_name: &'static str,
}

impl Tools {
    fn run(&self, program: &Path) -> Command {
        let Some(emulator) = self.emulator else { return Command::new(program) };
        let mut command = Command::new(emulator);
        command.arg(program);
        command
    }
}

struct Recorded {
    files: Vec<Code>,
    mappings: Vec<Mapped>,
    samples: Vec<Sample>,
    /// Addresses of code, and the code there.
    code: Vec<(u64, Vec<u8>)>,
    /// The code and the samples as they were written.
    bytes: Vec<u8>,
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walker").join(name)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plumb-walker-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn compile(compiler: &str, name: &str, folder: &Path, options: &[&str]) -> PathBuf {
    let program = folder.join(name.trim_end_matches(".c"));
    let include = format!("-I{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf").display());
    let status =
        Command::new(compiler).args(options).arg(include).arg("-o").arg(&program).arg(source(name)).status();
    assert!(status.expect("cc is there").success(), "{name} compiles");
    program
}

fn word(bytes: &mut &[u8]) -> u64 {
    let (word, rest) = bytes.split_first_chunk().expect("the file is whole");
    *bytes = rest;
    u64::from_ne_bytes(*word)
}

fn code(path: &Path, isa: Isa) -> Option<Code> {
    let file = std::fs::File::open(path).ok()?;
    let elf = Elf::read(&file).ok()?;
    let sections = elf.unwind_sections(&file);
    let section =
        |section: plumb_process::Section| Section { address: Svma(section.address), bytes: section.bytes };
    let module = Module::new(Sections {
        eh_frame: sections.eh_frame.map(section),
        eh_frame_hdr: sections.eh_frame_hdr.map(section),
        text: sections.text.map(Svma),
        got: sections.got.map(Svma),
        isa,
        ..Sections::default()
    });
    let segment =
        |(address, offset, size): (u64, FileOffset, u64)| CodeSegment { address, offset: offset.0, size };
    Some(Code { module, segments: elf.code().map(segment).collect() })
}

fn record<A: Architecture>(tools: &Tools, program: &Path, folder: &Path) -> Recorded {
    let file = folder.join("stacks");
    let status = tools.run(program).arg(&file).status();
    assert!(status.expect("the program runs").success());
    let bytes = std::fs::read(&file).expect("it wrote its stacks");
    let mut rest = &bytes[..];
    let take = |rest: &mut &[u8]| {
        let (at, words) = (word(rest), word(rest) as usize);
        let (code, after) = rest.split_at(8 * words);
        *rest = after;
        (at, code.to_vec())
    };
    let code_regions: Vec<(u64, Vec<u8>)> = (0..word(&mut rest)).map(|_| take(&mut rest)).collect();
    let mut samples = Vec::new();
    loop {
        let registers: Vec<u64> = (0..A::COUNT).map(|_| word(&mut rest)).collect();
        let words = word(&mut rest) as usize;
        if registers.last() == Some(&0) {
            break;
        }
        let (stack, after) = rest.split_at(8 * words);
        rest = after;
        samples.push(Sample { registers, stack: stack.to_vec() });
    }
    let samples_end = bytes.len() - rest.len();
    let (mut files, mut mappings, mut known) = (Vec::new(), Vec::new(), BTreeMap::new());
    for line in parse_maps(rest).filter(|line| line.executable) {
        let path = PathBuf::from(String::from_utf8_lossy(line.path).into_owned());
        let file = known.get(&path).copied().or_else(|| {
            files.push(code(&path, A::ISA)?);
            Some(files.len() - 1)
        });
        if let Some(file) = file {
            known.insert(path, file);
        }
        // An emulator's code to return from a signal begins its mapping; the kernel's has an instruction before it.
        let is_to_return_to =
            file.is_none() && code_regions.iter().any(|(at, code)| *at == line.start && code.len() == 8);
        let start = if is_to_return_to { line.start - 4096 } else { line.start };
        mappings.push(Mapped { start, end: line.end, offset: line.offset, file });
    }
    Recorded { files, mappings, samples, code: code_regions, bytes: bytes[..samples_end].to_vec() }
}

impl CodeMap for Recorded {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        let Some(mapping) = self.mappings.iter().find(|m| (m.start..m.end).contains(&pc.0)) else {
            return Located::Unmapped;
        };
        let Some(file) = mapping.file.map(|file| &self.files[file]) else { return Located::NoInfo };
        let offset = pc.0 - mapping.start + mapping.offset;
        let inside = |s: &&CodeSegment| (s.offset..s.offset + s.size).contains(&offset);
        match file.segments.iter().find(inside) {
            Some(s) => Located::Module {
                module: &file.module,
                bias: pc.0.wrapping_sub(offset - s.offset + s.address),
            },
            None => Located::NoInfo,
        }
    }
}

struct Stack<'a>(u64, &'a [u8], &'a [(u64, Vec<u8>)]);

impl Memory for Stack<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let offset = usize::try_from(at.0.wrapping_sub(self.0)).map_err(|_| ReadError::Unreadable)?;
        let bytes = self.1.get(offset..).and_then(<[u8]>::first_chunk).ok_or(ReadError::Unreadable)?;
        Ok(u64::from_ne_bytes(*bytes))
    }

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let found = self.2.iter().find_map(|(start, code)| {
            code.get(usize::try_from(at.0.checked_sub(*start)?).ok()?..)?.get(..to.len())
        });
        found.map(|code| to.copy_from_slice(code)).is_some()
    }
}

/// The input of the unwinder in C, with each table split into at least `pieces` pieces if it has as many pages.
fn input(recorded: &Recorded, pieces: usize) -> Vec<u8> {
    let mut first = Vec::new();
    let mut more = Vec::new();
    for Code { module, segments } in &recorded.files {
        let table =
            loadable(&UnwindInfoRef::new(module, None, segments.clone())).expect("each file has a table");
        let most = table.bytes.len().div_ceil(pieces);
        let mut all = table.pieces(most);
        assert!(all.len() <= TABLE_PIECES as usize);
        // Numbers are in the order of the tables.
        let mut next = 0;
        while let Some(mut piece) = all.pop() {
            (piece.file.state, piece.file.next) = (STATE_READY, next);
            if all.is_empty() {
                first.push(piece);
            } else {
                next = FILE_FIRST + (recorded.files.len() + more.len()) as u32;
                more.push(piece);
            }
        }
    }
    println!("{} pieces beside the first ones", more.len());
    assert!(pieces == 1 || more.len() > pieces);
    let mut input = ((first.len() + more.len()) as u64).to_ne_bytes().to_vec();
    for table in first.into_iter().chain(more) {
        let file = &table.file;
        for word in [file.state, file.chunk] {
            input.extend(word.to_ne_bytes());
        }
        input.extend(file.base.to_ne_bytes());
        input.extend(file.end.to_ne_bytes());
        for word in [file.rules_at, file.pages_at, file.rows_at, file.pages, file.rows, file.used] {
            input.extend(word.to_ne_bytes());
        }
        input.extend(file.next.to_ne_bytes());
        input.extend(file.layout.to_ne_bytes());
        input.extend(file.script.to_ne_bytes());
        for segment in &file.segments {
            [segment.begin, segment.end, segment.delta]
                .iter()
                .for_each(|word| input.extend(word.to_ne_bytes()));
        }
        input.extend((table.bytes.len() as u64).to_ne_bytes());
        input.extend(table.bytes);
    }
    let mut mappings = vec![Mapping::default(); MAX_MAPPINGS as usize];
    for (to, from) in mappings.iter_mut().zip(&recorded.mappings) {
        let file = from.file.map_or(0, |file| file as u32 + FILE_FIRST);
        let pages = ((from.end - from.start) >> 12) as u32;
        *to = Mapping { start: from.start, offset: from.offset, pages, file };
    }
    input.extend([0; 32]);
    input.extend([0; crate::wire::HINTS as usize]);
    for mapping in mappings {
        input.extend(mapping.start.to_ne_bytes());
        input.extend(mapping.offset.to_ne_bytes());
        input.extend(mapping.pages.to_ne_bytes());
        input.extend(mapping.file.to_ne_bytes());
    }
    input.extend(&recorded.bytes);
    input
}

fn in_c(walker: &Path, recorded: &Recorded, pieces: usize) -> Vec<(u32, Vec<u64>)> {
    let mut child =
        Command::new(walker).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the walker runs");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    let input = input(recorded, pieces);
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("the walker ends");
    writer.join().expect("no panic").expect("it read everything");
    assert!(output.status.success(), "{:?}", output.status);
    let mut rest = &output.stdout[..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (why, count) = (word(&mut rest), word(&mut rest));
        found.push((why as u32, (0..count).map(|_| word(&mut rest)).collect()));
    }
    found
}

/// Kinds of stacks that reached the root.
#[derive(Debug, Default)]
struct Reached {
    all: usize,
    with_signal: u32,
    through_word: u32,
    through_made: u32,
}

/// Compares the walkers on the stacks of a program that is built with these options.
fn compare<A: Architecture>(tools: &Tools, walker: &Path, folder: &Path, options: &[&str]) -> Reached {
    let program = compile(tools.compiler, "sampled.c", folder, options);
    let recorded = record::<A>(tools, &program, folder);
    let found = in_c(walker, &recorded, 1);
    assert_eq!(in_c(walker, &recorded, 4), found, "also with tables in pieces");
    assert_eq!(found.len(), recorded.samples.len());
    let (mut cache, mut frames) = (Cache::default(), Vec::new());
    let mut reached = Reached::default();
    let is_through_word = |frame: &u64| match recorded.locate(Avma(frame & !FRAME_NO_RETURN).offset(-1)) {
        Located::Module { module, bias } => {
            let row = module.row(Avma(frame & !FRAME_NO_RETURN).offset(-1).to_svma(bias));
            matches!(row, Ok(Some(row)) if matches!(row.cfa, CfaRule::Expression(_)) && !row.is_signal)
        }
        _ => false,
    };
    let is_made = |frame: &u64| matches!(recorded.locate(Avma(frame & !FRAME_NO_RETURN)), Located::NoInfo);
    for (sample, (why, in_c)) in recorded.samples.iter().zip(&found) {
        let of = |number: u16| sample.registers[usize::from(number)];
        let mut registers = RegisterSet::<A>::new(of(A::PC), of(A::SP));
        (0..A::COUNT).for_each(|number| registers.set(number, of(number)));
        let mut memory = Stack(of(A::SP), &sample.stack, &recorded.code);
        let end = walk(&recorded, &mut memory, &mut cache, &registers, MAX_FRAMES as usize, &mut frames);
        let mark = |frame: &Walked| if frame.is_return { frame.pc.0 } else { frame.pc.0 | FRAME_NO_RETURN };
        let in_rust: Vec<u64> = frames.iter().map(mark).collect();
        // A prefix suffices: a stack that ends early is unwound in user space.
        assert_eq!(in_c[..], in_rust[..in_c.len().min(in_rust.len())], "{why} {end:?}");
        if *why == WHY_ROOT {
            assert_eq!((in_c.len(), end), (in_rust.len(), End::Root));
            reached.all += 1;
            reached.through_made += u32::from(in_rust.iter().any(is_made));
            reached.through_word += u32::from(in_rust[1..].iter().any(is_through_word));
            reached.with_signal += u32::from(in_rust[1..].iter().any(|frame| frame & FRAME_NO_RETURN != 0));
        } else {
            assert!(
                [WHY_ODD, WHY_UNMAPPED, WHY_NO_TABLE, WHY_ANONYMOUS].contains(why) || end != End::Root,
                "{why} {end:?}"
            );
        }
    }
    // The walker in Rust alone finds out what an innermost function without rules has done with a return address that calls leave in a
    // register.
    let has_rules = |frame: &u64| match recorded.locate(Avma(frame & !FRAME_NO_RETURN)) {
        Located::Module { module, bias } => {
            matches!(module.row(Avma(frame & !FRAME_NO_RETURN).to_svma(bias)), Ok(Some(_)))
        }
        _ => false,
    };
    let innermost = |frames: &[u64]| frames.first().is_some_and(|frame| !has_rules(frame)) && A::LR.is_some();
    let all = found.iter().filter(|(_, frames)| !innermost(frames)).count();
    println!("{options:?}: of {all} to the root {reached:?}");
    let why: Vec<u32> = found.iter().map(|found| found.0).collect();
    assert!(reached.all * 100 >= all * 98, "{} of {all}: {why:?}", reached.all);
    assert!(reached.with_signal > 10 && reached.through_made > 10, "{reached:?}");
    reached
}

/// The walker for an architecture, as a program of this machine.
fn walker(tools: &Tools, folder: &Path) -> PathBuf {
    let architecture = format!("-D__TARGET_ARCH_{}", tools.kernel_name);
    let options = [architecture.as_str(), "-O1", "-g", "-fsanitize=undefined", "-fno-sanitize-recover"];
    compile("cc", "walker.c", folder, &options)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_walker_in_c_finds_what_the_one_in_rust_finds() {
    let tools = Tools { compiler: "cc", emulator: None, kernel_name: "x86" };
    let folder = folder("x86_64");
    let walker = walker(&tools, &folder);
    for options in [&["-O2", "-fomit-frame-pointer"][..], &["-O1", "-fno-omit-frame-pointer", "-static"]] {
        let reached = compare::<X86_64>(&tools, &walker, &folder, options);
        assert!(reached.through_word > 10, "a frame whose CFA is a word of it: {reached:?}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn the_walker_in_c_finds_what_the_one_in_rust_finds_on_aarch64() {
    let tools =
        Tools { compiler: "aarch64-linux-gnu-gcc", emulator: Some("qemu-aarch64"), kernel_name: "arm64" };
    let is_there =
        |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there(tools.compiler) || !is_there("qemu-aarch64") {
        skip(Requirement::Cross, "no compiler or emulator of aarch64");
        return;
    }
    let folder = folder("aarch64");
    let walker = walker(&tools, &folder);
    for options in [&["-O2", "-static"][..], &["-O2", "-static", "-mbranch-protection=standard"]] {
        compare::<Aarch64>(&tools, &walker, &folder, options);
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// The rule for an address, with the unwinder's search.
fn rule_at(pieces: &[Loadable], address: u64) -> Option<u64> {
    let piece = pieces.iter().find(|piece| address < piece.file.end)?;
    let Loadable { bytes, file } = piece;
    let word =
        |at: u64| bytes.get(at as usize..).and_then(<[u8]>::first_chunk).map(|b| u32::from_le_bytes(*b));
    let page = address.checked_sub(file.base)? >> 16;
    let begin = |page: u64| word(u64::from(file.pages_at) + 4 * page);
    let (low, high) = (begin(page)?, if page + 1 < file.pages.into() { begin(page + 1)? } else { file.rows });
    let row = |row: u32| word(u64::from(file.rows_at) + 4 * u64::from(row));
    let is_before = |index: &u32| row(*index).is_some_and(|row| row >> 16 <= address as u32 & 0xffff);
    let last = (low..high).take_while(is_before).last().or(low.checked_sub(1))?;
    let at = u64::from(file.rules_at) + 8 * u64::from(row(last)? & 0xffff);
    bytes.get(at as usize..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes))
}

#[test]
fn a_table_in_pieces_says_the_same_of_each_address() {
    let Code { module, segments } =
        code(&std::env::current_exe().expect("a test has a file"), Isa::X86_64).expect("an ELF file");
    let lent = UnwindInfoRef::new(&module, None, segments);
    let whole = || loadable(&lent).expect("it has a table");
    let size = whole().bytes.len();
    let most = size.div_ceil(6);
    let (one, pieces) = (whole().pieces(size), whole().pieces(most));
    assert!(one.len() == 1 && pieces.len() >= 6, "{}", pieces.len());
    assert!(pieces.iter().all(|piece| piece.bytes.len() <= most));
    // None could have been left out: with the next, of whose rules one copy is enough, it would be too large. How many that makes depends on
    // where this program's pages lie.
    let with_next =
        |pair: &[Loadable]| pair[0].bytes.len() + pair[1].bytes.len() + 8 - pair[1].file.pages_at as usize;
    assert!(pieces.windows(2).all(|pair| with_next(pair) > most));
    let (base, end) = (one[0].file.base, one[0].file.end);
    assert!(pieces.windows(2).all(|pair| pair[0].file.end == pair[1].file.base));
    // Also at the starts of pages, and so of pieces: the rule there is often in the row before.
    let (mut known, mut different) = (0, 0);
    for address in (base..end).step_by(256) {
        let rule = rule_at(&one, address);
        known += usize::from(rule.is_some());
        different += usize::from(rule != rule_at(&pieces, address));
    }
    assert!(known > 1000 && different == 0, "{different} of {known} differ");
}
