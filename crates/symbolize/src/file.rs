//! Frames in ELF files: finds the recorded file and everything that goes with it, and looks the addresses up.
//!
//! A frame's outlined function has the name of the symbol that covers the address, as in perf, so that a clone
//! (`.cold`, `.isra.0`) is told from its original; DWARF names it only where no symbol does. Inlined calls and lines
//! are DWARF's.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use plumb_profile::{AddressSpace, FrameId};

use crate::debug_file::{self, DebugFile, Fetch};
use crate::demangle::demangle;
use crate::dwarf::side::Side;
use crate::dwarf::store::Store;
use crate::dwarf::{self, Found, Resolver};
use crate::elf::Image;
use crate::job::{Answer, FoundFunction, Job, Place};
use crate::mini;
use crate::options::Options;
use crate::summary::Missing;
use crate::symbols::FileSymbols;

/// Resolves the frames of a file.
pub(crate) fn solve(job: &Job, options: &Options, fetch: &Fetch) -> Answer {
    let mut answer = Answer::new(job);
    match open_recorded(job, options, &mut answer) {
        Some(image) => with_image(job, &image, options, fetch, &mut answer),
        // The file is gone, but its debug file may be had by its build id, and has all that is needed.
        None => {
            if let Some(found) = debug_file::by_build_id(job.build_id.as_ref(), options, fetch, &mut answer) {
                with_image(job, &found, options, &|_, _| None, &mut answer);
            }
        }
    }
    answer
}

/// Resolves the frames from an image that is known to be the right one.
pub(crate) fn with_image(job: &Job, image: &Image, options: &Options, fetch: &Fetch, answer: &mut Answer) {
    let debug = debug_file::find(image, options, fetch, answer);
    let mini = mini::find(image, debug.image(), answer);
    let frames = stated(job, image);
    let mut addresses: Vec<u64> = frames.iter().map(|&(_, address)| address).collect();
    addresses.dedup();
    let symbols = FileSymbols::read(image, debug.image(), mini.as_ref(), &addresses, answer);
    let found =
        if options.lines { lines(image, &debug, options, &addresses, answer) } else { HashMap::new() };
    let mut writer = Writer { answer, symbols: &symbols, functions: HashMap::new(), inlined: HashMap::new() };
    for (frame, address) in frames {
        writer.frame(frame, address, found.get(&address));
    }
}

/// The job's frames by their addresses as the file states them, in order.
fn stated(job: &Job, image: &Image) -> Vec<(FrameId, u64)> {
    let frames = job.frames.iter().filter_map(|&(frame, address)| {
        let address = match job.addresses {
            AddressSpace::Svma => address,
            AddressSpace::FileOffset => image.address_of_offset(address)?,
            AddressSpace::Avma => return None,
        };
        Some((frame, address))
    });
    let mut frames: Vec<_> = frames.collect();
    frames.sort_unstable_by_key(|&(frame, address)| (address, frame));
    frames
}

/// What DWARF knows about the addresses, which are in order.
fn lines(
    image: &Image,
    debug: &DebugFile,
    options: &Options,
    addresses: &[u64],
    answer: &mut Answer,
) -> HashMap<u64, Found> {
    let none = HashMap::new();
    let Some(source) = [Some(image), debug.image()].into_iter().flatten().find(|image| image.has_dwarf())
    else {
        answer.miss(Missing::NoDebugInfo);
        return none;
    };
    if source.form.endian != object::Endianness::Little {
        answer.miss(Missing::Skipped { what: "its DWARF is big-endian".into() });
        return none;
    }
    let shared_image = debug_file::shared(source, options, answer);
    let stores = Store::read(source, false).and_then(|store| {
        Ok((store, shared_image.as_ref().map(|image| Store::read(image, false)).transpose()?))
    });
    let (store, shared_store) = match stores {
        Ok(stores) => stores,
        Err(missing) => {
            answer.miss(missing);
            return none;
        }
    };
    let shared = shared_store.as_ref().map(|store| Side::new(store, None));
    let mut resolver = Resolver::new(source, &store, shared.as_ref());
    let found = resolver.resolve(addresses);
    resolver.missing.drain(..).for_each(|missing| answer.miss(missing));
    addresses.iter().copied().zip(found).filter_map(|(address, found)| Some((address, found?))).collect()
}

/// Writes frames into an answer, each function's text once.
struct Writer<'a> {
    answer: &'a mut Answer,
    symbols: &'a FileSymbols<'a>,
    /// By start address, functions that have a symbol.
    functions: HashMap<u64, u32>,
    /// By identity of its name, functions that DWARF named.
    inlined: HashMap<(*const dwarf::Name, Option<u64>), u32>,
}

impl Writer<'_> {
    fn frame(&mut self, frame: FrameId, address: u64, found: Option<&Found>) {
        let mut places = Vec::new();
        let dwarf = found.map_or(&[][..], |found| &found.frames);
        let Some((outlined, inlined)) = dwarf.split_last() else {
            if let Some(function) = self.outlined(address, None) {
                places.push(Place { function, file: 0, line: 0, inlined: false });
            }
            self.answer.set(frame, &places);
            return;
        };
        for place in inlined {
            let Some(name) = &place.name else { continue };
            let function = self.by_dwarf(name, None);
            let file = self.answer.file(&place.file);
            places.push(Place { function, file, line: place.line, inlined: true });
        }
        if let Some(function) = self.outlined(address, found) {
            let file = self.answer.file(&outlined.file);
            places.push(Place { function, file, line: outlined.line, inlined: false });
            self.answer.set(frame, &places);
        }
    }

    /// The function that isn't inlined: by its symbol, else by DWARF.
    fn outlined(&mut self, address: u64, found: Option<&Found>) -> Option<u32> {
        let name = found.and_then(|found| found.frames.last()?.name.as_ref());
        let Some(named) = self.symbols.find(address) else {
            return Some(self.by_dwarf(name?, found.and_then(|found| found.start)));
        };
        if let Some(&function) = self.functions.get(&named.start) {
            return Some(function);
        }
        let function = FoundFunction {
            name: demangle(&named.linkage_name),
            linkage_name: named.linkage_name,
            start: Some(named.start),
            source_file: name.map(|name| name.source_file.clone()).unwrap_or_default(),
        };
        let function = self.answer.function(function);
        self.functions.insert(named.start, function);
        Some(function)
    }

    fn by_dwarf(&mut self, name: &Rc<dwarf::Name>, start: Option<u64>) -> u32 {
        let key = (Rc::as_ptr(name), start);
        if let Some(&function) = self.inlined.get(&key) {
            return function;
        }
        let readable = match (name.linkage_name.as_str(), name.name.as_str()) {
            ("", "") => "(no name in DWARF)".to_owned(),
            ("", name) => name.to_owned(),
            (linkage_name, _) => demangle(linkage_name),
        };
        let function = FoundFunction {
            name: readable,
            linkage_name: name.linkage_name.clone(),
            start,
            source_file: name.source_file.clone(),
        };
        let function = self.answer.function(function);
        self.inlined.insert(key, function);
        function
    }
}

/// The file that was recorded, from the first place where it still is.
fn open_recorded(job: &Job, options: &Options, answer: &mut Answer) -> Option<Image> {
    let mut reasons = Vec::new();
    for path in places(job, options) {
        match Image::open(&path) {
            Ok(image) if job.build_id.is_some() && image.build_id != job.build_id => {
                reasons.push(Missing::Replaced { path });
            }
            Ok(image) if job.build_id.is_none() && is_newer(&image, options.recorded_until) => {
                reasons.push(Missing::Replaced { path });
            }
            Ok(image) => {
                answer.summary.sources.push(path);
                return Some(image);
            }
            Err(missing) => reasons.push(missing),
        }
    }
    reasons.into_iter().for_each(|missing| answer.miss(missing));
    None
}

/// Whether the file was written after the recording ended, which is all that can be known of one without build id.
fn is_newer(image: &Image, recorded_until: Option<SystemTime>) -> bool {
    recorded_until.zip(image.modified).is_some_and(|(until, modified)| modified > until)
}

/// Where the recorded file may be, likeliest first.
fn places(job: &Job, options: &Options) -> Vec<PathBuf> {
    let mut places = options.images.get(&job.dso).cloned().unwrap_or_default();
    let relative = Path::new(&job.path).strip_prefix("/").unwrap_or(Path::new(&job.path));
    places.push(options.root.join(relative));
    for pid in &job.pids {
        places.push(options.proc.join(pid.to_string()).join("root").join(relative));
    }
    places
}
