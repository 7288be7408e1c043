//! Makes the table of a file: asks for each address where an answer may change.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;

use plumb_profile::{AddressSpace, DsoId, DsoKind, FrameId, Id};

use super::{CompactSymbols, Function, Position, Scope};
use crate::demangle::{demangle, is_mangled};
use crate::elf::Image;
use crate::file::{Images, OpenFile};
use crate::headers::Segment;
use crate::job::{Answer, FoundFunction, FrameAddress, Job};
use crate::options::Options;
use crate::summary::Missing;
use crate::work::STACK;
use crate::{SymbolDetail, detail};

/// Addresses that are asked for at once.
const AT_ONCE: usize = 1 << 16;

impl CompactSymbols {
    /// Makes the table of the ELF file at `path`. Only this file is read: no debug file elsewhere. If its DWARF needs more than `most_memory` bytes,
    /// names come from symbol tables alone.
    ///
    /// # Errors
    /// The file can't be read, or makes its reader fail.
    pub fn of(path: &Path, most_memory: u64) -> Result<Self, Missing> {
        let failed = |what: &str| Missing::Skipped { what: format!("{}: {what}", path.display()) };
        std::thread::scope(|scope| {
            // Demanglers are recursive.
            let build = || catch_unwind(AssertUnwindSafe(|| build(path, most_memory)));
            let thread = std::thread::Builder::new().name("symbolize".into()).stack_size(STACK);
            let built = thread.spawn_scoped(scope, build).map_err(|_| failed("no thread can be started"))?;
            match built.join() {
                Ok(Ok(built)) => built,
                _ => Err(failed("its parser failed")),
            }
        })
    }
}

fn build(path: &Path, most_memory: u64) -> Result<CompactSymbols, Missing> {
    let image = Rc::new(Image::open(path)?);
    let mut options = Options { debug_roots: Vec::new(), cache: None, ..Options::default() };
    options.lines = images(&image).bytes(&options) <= most_memory;
    let mut job = nothing();
    let mut answer = Answer::new(&job);
    let mut file = OpenFile::of(images(&image), &options, &mut answer);
    let mut boundaries = file.boundaries();
    if boundaries.is_full() {
        // Of so large a file, only symbols are kept.
        options.lines = false;
        answer = Answer::new(&job);
        file = OpenFile::of(images(&image), &options, &mut answer);
        boundaries = file.boundaries();
    }
    let mut building = Building::of(&image);
    if !options.lines {
        building.table.detail = building.table.detail.min(SymbolDetail::Functions);
    }
    for some in boundaries.sorted().chunks(AT_ONCE) {
        let frame = |(index, &address)| {
            let frame = FrameId::from_index(index);
            FrameAddress { address, frame, is_return: false }
        };
        job.frames = some.iter().enumerate().map(frame).collect();
        file.resolve(&job, &mut answer);
        building.add(some, &answer);
        file.forget();
        answer = Answer::new(&job);
    }
    Ok(building.table)
}

fn images(image: &Rc<Image>) -> Images {
    Images { image: Rc::clone(image), debug: None }
}

/// A job about the addresses of one file.
fn nothing() -> Job {
    Job {
        dso: DsoId::from_index(0),
        path: String::new(),
        build_id: None,
        kind: DsoKind::File,
        addresses: AddressSpace::Svma,
        pids: Vec::new(),
        roots: Vec::new(),
        held: None,
        frames: Vec::new(),
        generation: 0,
    }
}

/// A table that grows.
#[derive(Default)]
struct Building {
    table: CompactSymbols,
    texts: HashMap<String, u32>,
    functions: HashMap<Function, u32>,
    scopes: HashMap<Scope, u32>,
}

impl Building {
    fn of(image: &Image) -> Self {
        let segment = |segment: &Segment| (segment.address, segment.offset, segment.file_size);
        let mut building = Self::default();
        building.table.segments = image.segments.iter().map(segment).collect();
        building.table.detail = detail(image);
        building.text("");
        building
    }

    /// Adds the answers for some addresses, which are the frames by number.
    fn add(&mut self, addresses: &[u64], answer: &Answer) {
        let functions: Vec<u32> = answer.functions().iter().map(|function| self.function(function)).collect();
        let files: Vec<u32> = answer.files().iter().map(|file| self.text(file)).collect();
        let mut places = vec![Position::default(); addresses.len()];
        for (frame, innermost_first) in answer.places() {
            let mut place = Position::default();
            for call in innermost_first.iter().rev() {
                let scope = self.scope(functions[call.function as usize], place, call.inlined);
                place = Position { scope, file: files[call.file as usize], line: call.line };
            }
            places[frame.index()] = place;
        }
        for (&address, place) in addresses.iter().zip(places) {
            self.table.columns.push(address, place);
        }
    }

    /// The number, plus one, of the scope of a function that is called where the outer one is at `from`.
    fn scope(&mut self, function: u32, from: Position, inlined: bool) -> u32 {
        let scope = Scope { function, outer: from.scope, file: from.file, line: from.line, inlined };
        let scopes = &mut self.table.scopes;
        *self.scopes.entry(scope).or_insert_with(|| {
            scopes.push(scope);
            scopes.len() as u32
        })
    }

    fn function(&mut self, found: &FoundFunction) -> u32 {
        let is_due = found.name == found.linkage_name && is_mangled(&found.linkage_name);
        let is_demangled = is_due || demangle(&found.linkage_name) == found.name;
        let function = Function {
            name: if is_demangled { 0 } else { self.text(&found.name) },
            linkage_name: self.text(&found.linkage_name),
            start_line: found.start_line,
            nameless_start: found.start.filter(|_| found.name.is_empty()),
        };
        let functions = &mut self.table.functions;
        *self.functions.entry(function).or_insert_with(|| {
            functions.push(function);
            functions.len() as u32 - 1
        })
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        let number = self.table.texts.len() as u32;
        self.table.texts.push(text.to_owned());
        self.texts.insert(text.to_owned(), number);
        number
    }
}
