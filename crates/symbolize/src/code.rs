//! The code of a sampled function: its bytes, names for the addresses in it, and the source locations of its instructions.
//!
//! Invariant: the bytes are those that ran. They come from the file with the recorded build id, from the running kernel's memory if
//! that kernel was recorded, or are not returned at all: [`NoCode`] is the reason.
//!
//! Elsewhere: decoding.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use object::elf::{EM_ARM, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB};
use plumb_profile::{Address, AddressSpace, DsoId, DsoKind, FrameId, Id, InstructionSet, Meta, Profile};

use crate::demangle::demangle;
use crate::elf::Image;
use crate::extent::extent;
use crate::file::{self, Images};
use crate::job::{Answer, CodePlace, FrameAddress, Job};
use crate::kernel::Kernel;
use crate::options::Options;
use crate::summary::Missing;
use crate::symbols::FileSymbols;
use crate::symtab::Symtab;
use crate::{mini, vdso};

/// Largest function whose bytes are read.
const MAX_FUNCTION: u64 = 64 << 20;

/// A function's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCode {
    /// First address.
    pub start: Address,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Instruction set of the code.
    pub set: InstructionSet,
}

/// The reason why the code of a function is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCode {
    /// The file is gone, was replaced, or cannot be read.
    File(Vec<Missing>),
    /// Functions of interpreted programs have no machine code.
    Interpreted,
    /// The code was compiled at run time and existed only in the process' memory.
    CompiledAtRunTime,
    /// The code is for another processor architecture.
    Machine(String),
    /// The kernel's memory cannot be read.
    KernelMemory(String),
    /// The file does not contain the address, or has no bytes there.
    NotInFile(Address),
    /// Neither a symbol nor unwind information gives the function's start and end.
    NoBounds(Address),
    /// The recording's addresses are not addresses of the file.
    Addresses,
    /// Profiles from others are analyzed without reading the files that they name.
    NotRead,
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCode::File(missing) => {
                for (index, one) in missing.iter().enumerate() {
                    let comma = if index > 0 { "; " } else { "" };
                    write!(f, "{comma}{one}")?;
                    let remedy = one.remedy();
                    // Once, after the last of those that it is for.
                    let is_last = missing.get(index + 1).is_none_or(|next| next.remedy() != remedy);
                    if is_last && !remedy.is_empty() {
                        write!(f, " ({remedy})")?;
                    }
                }
                Ok(())
            }
            NoCode::Interpreted => write!(
                f,
                "it is a function of an interpreted program, which has no machine code; --native shows the interpreter's"
            ),
            NoCode::CompiledAtRunTime => {
                write!(
                    f,
                    "it was compiled as the program ran, and its code was in that program's memory only"
                )
            }
            NoCode::Machine(machine) => {
                write!(f, "it is code for {machine}; only that of x86 and aarch64 can be decoded")
            }
            NoCode::KernelMemory(why) => write!(
                f,
                "the kernel's code can't be read: {why}; it needs root and a kernel with /proc/kcore (CONFIG_PROC_KCORE, no \
                 lockdown)"
            ),
            NoCode::NotInFile(address) => write!(f, "the file has no code at {:#x}", address.0),
            NoCode::NoBounds(address) => write!(
                f,
                "neither a symbol nor unwind information says where the function at {:#x} begins and ends; install the file's debug \
                 symbols",
                address.0
            ),
            NoCode::NotRead => write!(
                f,
                "a server reads no files that profiles name; plumb explain URL reads it on a machine that has the file"
            ),
            NoCode::Addresses => write!(f, "the recording doesn't say where in the file its code was"),
        }
    }
}

impl std::error::Error for NoCode {}

/// A sampled file, reopened for its code.
pub struct Binary {
    source: Source,
    set: InstructionSet,
    /// The job with which frames of this file are looked up.
    job: Job,
    meta: Meta,
    options: Options,
    /// Files that were missing when it was opened.
    missing: Vec<Missing>,
}

enum Source {
    File { images: Images, symbols: FileSymbols, data: Vec<Symtab> },
    Kernel { memory: Image, kernel: Kernel },
}

impl Binary {
    /// Opens the file of `profile` with the id `dso`.
    pub fn open(profile: &Profile, dso: DsoId, options: &Options) -> Result<Binary, NoCode> {
        let options = &options.for_profile(profile);
        let job = Job::without_frames(profile, dso);
        let mut answer = Answer::new(&job);
        let source = match job.kind {
            DsoKind::Script => return Err(NoCode::Interpreted),
            DsoKind::Anonymous { .. } => return Err(NoCode::CompiledAtRunTime),
            DsoKind::Kernel | DsoKind::KernelModule => Self::kernel(profile, options)?,
            DsoKind::File | DsoKind::Vdso if job.addresses != AddressSpace::Svma => {
                // Of a file that was not there when its stacks were read, only offsets are known.
                let is_there = job.kind == DsoKind::Vdso
                    || Images::find(&job, options, &|_, _| None, &mut answer).is_some();
                let missing = std::mem::take(&mut answer.summary.missing);
                return Err(if is_there { NoCode::Addresses } else { NoCode::File(missing) });
            }
            DsoKind::Vdso => {
                let image = vdso::open(&job, options, &profile.meta, &mut answer);
                let images = image.map(|image| Images::of(image, options, &|_, _| None, &mut answer));
                Self::file(images, &mut answer)?
            }
            DsoKind::File => {
                let images = Images::find(&job, options, &|_, _| None, &mut answer);
                Self::file(images, &mut answer)?
            }
        };
        let image = match &source {
            Source::File { images, .. } => &images.image,
            Source::Kernel { memory, .. } => memory,
        };
        let (set, missing) = (instruction_set(image)?, answer.summary.missing);
        Ok(Binary { set, source, job, meta: profile.meta.clone(), options: options.clone(), missing })
    }

    fn file(images: Option<Images>, answer: &mut Answer) -> Result<Source, NoCode> {
        let Some(images) = images else {
            return Err(NoCode::File(std::mem::take(&mut answer.summary.missing)));
        };
        let Images { image, debug } = &images;
        let code = image.sections.iter().filter(|section| section.executable);
        // If the file is gone, a debug file replaces it for names; but it has no code.
        if !code.clone().any(|section| section.kind != SHT_NOBITS) {
            return Err(NoCode::File(std::mem::take(&mut answer.summary.missing)));
        }
        let mini = mini::find(image, debug.as_deref(), answer);
        let symbols = FileSymbols::read(image, debug.as_ref(), mini.as_ref(), answer);
        let tables = [(Some(image), SHT_SYMTAB), (debug.as_ref(), SHT_SYMTAB), (Some(image), SHT_DYNSYM)];
        let data =
            tables.into_iter().filter_map(|(image, kind)| Symtab::read_data(image?, kind).ok().flatten());
        let data = data.collect();
        Ok(Source::File { images, symbols, data })
    }

    fn kernel(profile: &Profile, options: &Options) -> Result<Source, NoCode> {
        crate::kernel::is_running(&profile.meta, options).map_err(|missing| NoCode::File(vec![missing]))?;
        let memory =
            Image::open(&options.kcore).map_err(|missing| NoCode::KernelMemory(missing.to_string()))?;
        Ok(Source::Kernel { memory, kernel: Kernel::default() })
    }

    /// Returns the path that the bytes are read from.
    pub fn path(&self) -> &Path {
        match &self.source {
            Source::File { images, .. } => &images.image.path,
            Source::Kernel { memory, .. } => &memory.path,
        }
    }

    /// Returns the bytes of the function that contains `address`.
    pub fn code(&mut self, address: Address) -> Result<FunctionCode, NoCode> {
        let (start, end) = self.bounds(address.0).ok_or(NoCode::NoBounds(address))?;
        let size = end.saturating_sub(start).min(MAX_FUNCTION);
        let image = match &self.source {
            Source::File { images, .. } => &images.image,
            Source::Kernel { memory, .. } => memory,
        };
        let bytes = image.read_address(start, size);
        if bytes.is_empty() {
            return Err(NoCode::NotInFile(address));
        }
        Ok(FunctionCode { start: Address(start), bytes, set: self.set })
    }

    fn bounds(&mut self, address: u64) -> Option<(u64, u64)> {
        match &mut self.source {
            Source::File { images, symbols, .. } => {
                let named = symbols.find(address).filter(|named| named.near.is_none());
                let named = named.map(|named| (named.start, named.end));
                let (start, end) = named.or_else(|| extent(images, address))?;
                let section = images.image.sections.iter().find(|section| {
                    let end = section.address.saturating_add(section.size);
                    section.executable && (section.address..end).contains(&start)
                })?;
                // The symbol may claim more bytes than the section has.
                Some((start, end.min(section.address.saturating_add(section.size))))
            }
            Source::Kernel { kernel, .. } => kernel.extent(self.job.module(), address, &self.options),
        }
    }

    /// Returns the name at an address that code refers to: a function, a stub of the procedure linkage table, a variable, or the slot that
    /// holds the address of one of these (`malloc@GOT`). A suffix such as `+0x8` is the offset within a larger object.
    pub fn name(&mut self, address: Address) -> Option<String> {
        let address = address.0;
        match &mut self.source {
            Source::Kernel { kernel, .. } => {
                let (name, start) = kernel.name(self.job.module(), address, &self.options)?;
                Some(with_offset(name, start, address))
            }
            Source::File { symbols, data, .. } => {
                let of = |found: crate::symtab::Named| {
                    let start = found.start - found.near.unwrap_or(0);
                    with_offset(demangle(&found.linkage_name), start, address)
                };
                if let Some(found) = symbols.find(address) {
                    return Some(of(found));
                }
                if let Some(slot) = symbols.slot(address) {
                    return Some(format!("{}@GOT", demangle(&slot)));
                }
                data.iter().find_map(|table| table.find(address)).map(of)
            }
        }
    }

    /// Returns the source locations of each of the instructions at `addresses`: the innermost inlined call first, the function itself last. Empty
    /// if nothing is known; the second value has the reasons for what is missing.
    pub fn places(&mut self, addresses: &[Address]) -> (Vec<Vec<CodePlace>>, Vec<Missing>) {
        let frames = addresses.iter().enumerate().map(|(index, address)| FrameAddress {
            address: address.0,
            frame: FrameId::from_index(index),
            is_return: false,
        });
        self.job.frames = frames.collect();
        self.job.frames.sort_unstable();
        let mut answer = Answer::new(&self.job);
        answer.summary.missing = self.missing.clone();
        let Self { source, job, meta, options, .. } = self;
        // As for recordings: a hostile file may crash a parser.
        let solved = catch_unwind(AssertUnwindSafe(|| match source {
            Source::File { images, symbols, .. } => {
                file::resolve_few(images, symbols, job, options, &mut answer);
            }
            Source::Kernel { kernel, .. } => kernel.solve(job, options, meta, &mut answer),
        }));
        if solved.is_err() {
            answer.miss(Missing::Skipped { what: format!("{}: its parser failed", job.path) });
        }
        let mut places = vec![Vec::new(); addresses.len()];
        for (frame, found) in answer.noted() {
            places[frame.index()] = found;
        }
        (places, answer.summary.missing)
    }
}

fn with_offset(name: String, start: u64, address: u64) -> String {
    if start == address { name } else { format!("{name}+{:#x}", address - start) }
}

/// Returns the instruction set of a file's code.
fn instruction_set(image: &Image) -> Result<InstructionSet, NoCode> {
    let machine = image.machine;
    InstructionSet::of_machine(machine.0).ok_or_else(|| {
        NoCode::Machine(match machine {
            EM_ARM => "32-bit ARM".into(),
            other => format!("a processor with ELF's number {}", other.0),
        })
    })
}
