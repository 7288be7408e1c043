//! Test helper that runs programs of other architectures under qemu and unwinds the snapshots that they write of
//! themselves.
//!
//! The expected result comes from the program: the output of its compiler's `_Unwind_Backtrace` at the same moment.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use plumb_unwind::table::Table;
use plumb_unwind::{
    Architecture, Avma, Cache, CodeMap, End, Located, Memory, Method, Module, ReadError, RegisterSet, Svma,
    Walked, Window, walk,
};

use crate::elf;

/// Magic number at the start of a record of `programs/depths.c`.
const MAGIC: u64 = 0x6465_7074;
/// Number of seeds, each a different order of calls, that each program is run with.
const SEEDS: u32 = 3;

/// Compiler and emulator of an architecture.
pub struct Tools {
    pub compiler: &'static str,
    pub emulator: &'static str,
}

/// Temporary directory, removed on drop.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Snapshot of a program.
pub struct Moment {
    pub registers: Vec<u64>,
    /// Program counters found by the program's own unwinder. The first is where the unwinder was called.
    pub pcs: Vec<u64>,
    pub memory: Pieces,
}

/// Copied memory: pairs of address and bytes.
#[derive(Clone, Default)]
pub struct Pieces(Vec<(u64, Vec<u8>)>);

impl Memory for Pieces {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        for (start, bytes) in &self.0 {
            let found =
                at.0.checked_sub(*start).and_then(|offset| bytes.get(usize::try_from(offset).ok()?..));
            if let Some(word) = found.and_then(|rest| rest.first_chunk::<8>()) {
                return Ok(u64::from_le_bytes(*word));
            }
        }
        Err(ReadError::Unreadable)
    }

    fn read_u32(&mut self, at: Avma) -> Result<u32, ReadError> {
        for (start, bytes) in &self.0 {
            let found =
                at.0.checked_sub(*start).and_then(|offset| bytes.get(usize::try_from(offset).ok()?..));
            if let Some(word) = found.and_then(|rest| rest.first_chunk::<4>()) {
                return Ok(u32::from_le_bytes(*word));
            }
        }
        Err(ReadError::Unreadable)
    }
}

/// Copied memory of which the largest piece is available as words.
struct Words(Pieces, (u64, Vec<u64>));

impl Words {
    fn new(pieces: &Pieces) -> Self {
        let largest = pieces.0.iter().max_by_key(|(_, bytes)| bytes.len()).expect("there is one");
        let words = largest.1.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Words(pieces.clone(), (largest.0, words))
    }
}

impl Memory for Words {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.0.read_u64(at)
    }

    fn read_u32(&mut self, at: Avma) -> Result<u32, ReadError> {
        self.0.read_u32(at)
    }

    fn window(&self) -> Option<Window<'_>> {
        Some(Window { base: Avma(self.1.0), words: &self.1.1 })
    }
}

/// A statically linked program, loaded at its stated addresses.
struct Program {
    module: Module<Vec<u8>>,
    code: Range<u64>,
    /// Functions that are treated as having no rules.
    hidden: Vec<Range<u64>>,
}

impl CodeMap for Program {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        if self.code.contains(&pc.0) && !self.hidden.iter().any(|range| range.contains(&pc.0)) {
            Located::Module { module: &self.module, bias: 0 }
        } else {
            // Hidden functions, and the emulator's sigreturn code, if it has any.
            Located::NoInfo
        }
    }
}

/// Statistics of a comparison.
#[derive(Default, Debug)]
pub struct Counts {
    pub depths: usize,
    pub frames: usize,
    /// Frames beyond the end of the program's own unwinder's results.
    pub beyond: usize,
    /// Return addresses whose stored value differs from the address (signatures, Thumb state).
    pub disguised: usize,
    pub by_convention: usize,
    pub links: usize,
}

/// Returns what is missing on this machine, if the tools cannot be used.
pub fn lacks(tools: &Tools) -> Option<String> {
    let runs = |tool: &str, argument: &str| {
        let output = Command::new(tool).arg(argument).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A compiler that does not find the library prints just its name.
    match runs(tools.compiler, "-print-file-name=libc.a") {
        None => Some(format!("{} is not on this machine", tools.compiler)),
        Some(library) if !Path::new(&library).is_absolute() => {
            Some(format!("{} has no C library to link with on this machine", tools.compiler))
        }
        Some(_) => match runs(tools.emulator, "--version") {
            None => Some(format!("{} is not on this machine", tools.emulator)),
            Some(_) => None,
        },
    }
}

/// Compiles `programs/depths.c` with `flags`, runs it and compares each of its snapshots. The functions in `hidden`
/// are treated as having no rules.
pub fn compare<A: Architecture>(tools: &Tools, flags: &[&str], hidden: &[&str]) -> Counts {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("plumb-cross-{}-{number}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&directory.0).expect("a directory for temporary files");
    let path = directory.0.join("depths");
    compile(tools, flags, &path);
    let data = std::fs::read(&path).expect("the compiler made it");
    let sections = elf::sections(&data).expect("an ELF file");
    let with = |module| Program {
        module,
        code: elf::code(&data).expect("it has code"),
        hidden: hide(&data, hidden),
    };
    let mut text = code(&data);
    let module = Module::new(sections.clone());
    let tables = [Table::of_all(&module), Table::by_length(&module), Table::of_calls(&module, &mut text[..])];
    let tables = tables.map(|table| table.unwrap_or_else(|error| panic!("{flags:?}: {error}")));
    let sizes = tables.each_ref().map(Table::rows);
    assert!(sizes[0] > 20 && sizes.is_sorted_by(|a, b| a >= b), "{flags:?}: {sizes:?}");
    let tabled = tables.map(|table| {
        let table = Table::from_bytes(&table.to_bytes()).expect("what was written is read");
        assert_eq!(table.isa(), A::ISA);
        with(Module::new(sections.clone()).with_table(table))
    });
    let program = with(module);
    let mut counts = Counts::default();
    let mut cache = Cache::default();
    for seed in 1..=SEEDS {
        let output = Command::new(tools.emulator)
            .arg(&path)
            .arg(seed.to_string())
            .output()
            .expect("the emulator runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{flags:?}: {} {said}", output.status);
        for moment in moments::<A>(&output.stdout) {
            check::<A>(&program, &moment, &mut cache, &mut counts, &data);
            for tabled in &tabled {
                check_tabled::<A>(&program, tabled, &moment);
            }
        }
    }
    println!("{} {flags:?}: {counts:?}", tools.compiler);
    counts
}

fn hide(data: &[u8], names: &[&str]) -> Vec<Range<u64>> {
    names
        .iter()
        .map(|name| elf::range_of(data, name).unwrap_or_else(|| panic!("there is no {name}")))
        .collect()
}

fn compile(tools: &Tools, flags: &[&str], to: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/depths.c");
    let status = Command::new(tools.compiler)
        .args(["-static", "-pthread", "-fomit-frame-pointer"])
        .args(flags)
        .arg("-o")
        .arg(to)
        .arg(source)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{flags:?}");
}

/// Decodes the output of the program.
fn moments<A: Architecture>(bytes: &[u8]) -> Vec<Moment> {
    let mut words = bytes.chunks_exact(A::WORD as usize).map(|word| {
        let mut wide = [0; 8];
        wide[..word.len()].copy_from_slice(word);
        u64::from_le_bytes(wide)
    });
    let mut moments = Vec::new();
    while let Some(magic) = words.next() {
        assert_eq!(magic, MAGIC);
        let mut next = || words.next().expect("the record is whole");
        let mut list = |count: u64| (0..count).map(|_| next()).collect::<Vec<_>>();
        let count = list(1)[0];
        let registers = list(count);
        let count = list(1)[0];
        let pcs = list(count);
        let count = list(1)[0];
        let pieces = (0..count).map(|_| {
            let head = list(2);
            let words = list(head[1]);
            (head[0], words.iter().flat_map(|word| word.to_le_bytes()[..A::WORD as usize].to_vec()).collect())
        });
        let memory = Pieces(pieces.collect());
        moments.push(Moment { registers, pcs, memory });
    }
    moments
}

/// Unwinds one snapshot with a warm cache and with a new one.
fn check<A: Architecture>(
    program: &Program,
    moment: &Moment,
    cache: &mut Cache,
    counts: &mut Counts,
    data: &[u8],
) {
    let mut start = RegisterSet::<A>::new(0, 0);
    for (number, &value) in (0..).zip(&moment.registers) {
        start.set(number, value);
    }
    let mut frames = Vec::new();
    for cache in [&mut *cache, &mut Cache::default()] {
        let mut memory = moment.memory.clone();
        let end = walk(program, &mut memory, cache, &start, 1000, &mut frames);
        // libgcc reports address 0 for the missing caller of the outermost frame.
        let truth: Vec<u64> = moment.pcs.iter().copied().filter(|&pc| pc != 0).collect();
        let ours: Vec<u64> = frames.iter().map(|frame| frame.pc.0).collect();
        let shown = ours.len().min(truth.len());
        // Both walks begin in the same function, but at different instructions.
        let equal = shown > 1 && ours[1..shown] == truth[1..shown] && ours.len() >= truth.len();
        // The unwinder of 32-bit ARM omits the outermost function.
        let beyond = ours.len().saturating_sub(truth.len());
        assert!(
            equal && end == End::Root && beyond <= usize::from(A::WORD == 4),
            "{end:?}\nours {}\ntruth {}",
            named(&ours, data),
            named(&truth, data)
        );
        counts.beyond += beyond;
    }
    let mut by_words = Vec::new();
    let end = walk(program, &mut Words::new(&moment.memory), cache, &start, 1000, &mut by_words);
    assert_eq!((&by_words, end), (&frames, End::Root), "by words");
    counts.depths += 1;
    counts.frames += frames.len();
    count_kinds::<A>(&frames, &mut moment.memory.clone(), counts);
}

/// Checks that a walk with a table finds the same frames as a walk without.
fn check_tabled<A: Architecture>(program: &Program, tabled: &Program, moment: &Moment) {
    let mut start = RegisterSet::<A>::new(0, 0);
    for (number, &value) in (0..).zip(&moment.registers) {
        start.set(number, value);
    }
    let [plain, with] = [program, tabled].map(|program| {
        let mut frames = Vec::new();
        let end = walk(program, &mut moment.memory.clone(), &mut Cache::default(), &start, 1000, &mut frames);
        (frames, end)
    });
    assert_eq!(plain, with);
}

/// Returns the code sections of a file.
fn code(data: &[u8]) -> Vec<(Svma, Vec<u8>)> {
    let file = object::File::parse(data).expect("an ELF file");
    let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
    code.filter_map(|section| Some((Svma(section.address()), section.data().ok()?.to_vec()))).collect()
}

fn count_kinds<A: Architecture>(frames: &[Walked], memory: &mut Pieces, counts: &mut Counts) {
    for frame in &frames[1..] {
        counts.by_convention += usize::from(frame.found == Method::FramePointer);
        counts.links += usize::from(frame.slot == Avma(0) && frame.is_return);
        if frame.slot != Avma(0) {
            let stored = if A::WORD == 8 {
                memory.read_u64(frame.slot)
            } else {
                memory.read_u32(frame.slot).map(u64::from)
            };
            counts.disguised += usize::from(stored != Ok(frame.pc.0));
        }
    }
}

fn named(pcs: &[u64], data: &[u8]) -> String {
    pcs.iter().map(|&pc| format!("\n  {pc:#x} {}", elf::symbol(data, pc))).collect()
}
