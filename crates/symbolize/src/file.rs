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
use rustc_hash::FxHashMap;
use typed_arena::Arena;

use crate::debug_file::{self, Fetch};
use crate::demangle::readable_at_once;
use crate::dwarf::side::Side;
use crate::dwarf::store::{self, Store};
use crate::dwarf::{self, Found, Resolver};
use crate::elf::Image;
use crate::job::{Answer, FoundFunction, Job, Place};
use crate::mini;
use crate::options::Options;
use crate::summary::Missing;
use crate::symbols::FileSymbols;

/// The recorded file, and its debug file if it has one.
pub(crate) struct Images {
    image: Rc<Image>,
    debug: Option<Rc<Image>>,
}

impl Images {
    /// Finds the files.
    pub fn find(job: &Job, options: &Options, fetch: &Fetch, answer: &mut Answer) -> Option<Self> {
        match open_recorded(job, options, answer) {
            Some(image) => Some(Self::of(image, options, fetch, answer)),
            // The file is gone, but its debug file may be had by its build id, and has all that is needed.
            None => {
                let found = debug_file::by_build_id(job.build_id.as_ref(), options, fetch, answer)?;
                Some(Self::of(found, options, &|_, _| None, answer))
            }
        }
    }

    /// `image`, which is known to be the right one, and its debug file.
    pub fn of(image: Rc<Image>, options: &Options, fetch: &Fetch, answer: &mut Answer) -> Self {
        let debug = debug_file::find(&image, options, fetch, answer);
        Self { image, debug }
    }

    /// About how many bytes of them have to be in memory to resolve frames.
    pub fn bytes(&self, options: &Options) -> u64 {
        let dwarf = self.dwarf().filter(|_| options.lines).map_or(0, |image| store::bytes(image));
        dwarf.saturating_add(FileSymbols::bytes(&self.image))
    }

    fn dwarf(&self) -> Option<&Rc<Image>> {
        [Some(&self.image), self.debug.as_ref()].into_iter().flatten().find(|image| image.has_dwarf())
    }
}

/// A file that frames are being resolved from, as often as there are more of them.
pub(crate) struct Open<'s> {
    image: Rc<Image>,
    symbols: FileSymbols,
    resolver: Option<Resolver<'s>>,
    /// By start address, functions that have a symbol, by their numbers in the answer.
    functions: HashMap<u64, u32>,
    /// By identity of its name, which is held so that no other gets it, functions that DWARF named.
    inlined: FxHashMap<(*const dwarf::Name, Option<u64>), Numbered>,
}

/// A name and the number of its function.
type Numbered = (Rc<dwarf::Name>, u32);

impl<'s> Open<'s> {
    /// Reads what frames are resolved from; the DWARF goes to `stores`.
    pub fn new(images: Images, options: &Options, stores: &'s Arena<Store>, answer: &mut Answer) -> Self {
        let mini = mini::find(&images.image, images.debug.as_deref(), answer);
        let symbols = FileSymbols::read(&images.image, images.debug.as_ref(), mini.as_ref(), answer);
        let resolver = if options.lines { resolver(&images, options, stores, answer) } else { None };
        Self {
            image: images.image,
            symbols,
            resolver,
            functions: HashMap::new(),
            inlined: FxHashMap::default(),
        }
    }

    /// Resolves the job's frames. The answer must be the one of the times before.
    pub fn resolve(&mut self, job: &Job, answer: &mut Answer) {
        let frames = stated(job, &self.image);
        let mut addresses: Vec<u64> = frames.iter().map(|&(_, address)| address).collect();
        addresses.dedup();
        let mut found = HashMap::new();
        if let Some(resolver) = &mut self.resolver {
            let answers = resolver.resolve(&addresses);
            resolver.missing.drain(..).for_each(|missing| answer.miss(missing));
            let pairs = addresses.iter().copied().zip(answers);
            found = pairs.filter_map(|(address, found)| Some((address, found?))).collect();
        }
        for (frame, address) in frames {
            self.frame(answer, frame, address, found.get(&address));
        }
    }

    fn frame(&mut self, answer: &mut Answer, frame: FrameId, address: u64, found: Option<&Found>) {
        let mut places = Vec::new();
        let dwarf = found.map_or(&[][..], |found| &found.frames);
        let Some((outlined, inlined)) = dwarf.split_last() else {
            if let Some(function) = self.outlined(answer, address, None) {
                places.push(Place { function, file: 0, line: 0, inlined: false });
            }
            answer.set(frame, &places);
            return;
        };
        for place in inlined {
            let Some(name) = &place.name else { continue };
            let function = self.by_dwarf(answer, name, None);
            let file = answer.file(&place.file);
            places.push(Place { function, file, line: place.line, inlined: true });
        }
        if let Some(function) = self.outlined(answer, address, found) {
            let file = answer.file(&outlined.file);
            places.push(Place { function, file, line: outlined.line, inlined: false });
            answer.set(frame, &places);
        }
    }

    /// The function that isn't inlined: by its symbol, else by DWARF.
    fn outlined(&mut self, answer: &mut Answer, address: u64, found: Option<&Found>) -> Option<u32> {
        let name = found.and_then(|found| found.frames.last()?.name.as_ref());
        let Some(named) = self.symbols.find(address) else {
            return Some(self.by_dwarf(answer, name?, found.and_then(|found| found.start)));
        };
        if let Some(&function) = self.functions.get(&named.start) {
            return Some(function);
        }
        let function = FoundFunction {
            name: readable_at_once(&named.linkage_name),
            linkage_name: named.linkage_name,
            start: Some(named.start),
            source_file: name.map(|name| name.source_file.clone()).unwrap_or_default(),
        };
        let function = answer.function(function);
        self.functions.insert(named.start, function);
        Some(function)
    }

    fn by_dwarf(&mut self, answer: &mut Answer, name: &Rc<dwarf::Name>, start: Option<u64>) -> u32 {
        let key = (Rc::as_ptr(name), start);
        if let Some(&(_, function)) = self.inlined.get(&key) {
            return function;
        }
        let readable = match (name.linkage_name.as_str(), name.name.as_str()) {
            ("", "") => "(no name in DWARF)".to_owned(),
            ("", name) => name.to_owned(),
            (linkage_name, _) => readable_at_once(linkage_name),
        };
        let function = FoundFunction {
            name: readable,
            linkage_name: name.linkage_name.clone(),
            start,
            source_file: name.source_file.clone(),
        };
        let function = answer.function(function);
        self.inlined.insert(key, (Rc::clone(name), function));
        function
    }
}

/// What reads the DWARF of the files, if they have any.
fn resolver<'s>(
    images: &Images,
    options: &Options,
    stores: &'s Arena<Store>,
    answer: &mut Answer,
) -> Option<Resolver<'s>> {
    let Some(source) = images.dwarf() else {
        answer.miss(Missing::NoDebugInfo);
        return None;
    };
    if source.form.endian != object::Endianness::Little {
        answer.miss(Missing::Skipped { what: "its DWARF is big-endian".into() });
        return None;
    }
    let shared = debug_file::shared(source, options, answer);
    let mut read = |image| {
        let store = Store::read(image, false, options.cache.as_deref())
            .map_err(|missing| answer.miss(missing))
            .ok()?;
        Some(&*stores.alloc(store))
    };
    let store = read(source)?;
    let shared = match &shared {
        Some(image) => Some(Rc::new(Side::new(read(image)?, None))),
        None => None,
    };
    Some(Resolver::new(source, store, shared))
}

/// The job's frames by their addresses as the file states them, in order.
fn stated(job: &Job, image: &Image) -> Vec<(FrameId, u64)> {
    let frames = job.frames.iter().filter_map(|&(frame, address)| {
        let address = match job.addresses {
            AddressSpace::Svma => address,
            AddressSpace::FileOffset => image.address_of_offset(address)?,
            AddressSpace::Avma | AddressSpace::Line => return None,
        };
        Some((frame, address))
    });
    let mut frames: Vec<_> = frames.collect();
    frames.sort_unstable_by_key(|&(frame, address)| (address, frame));
    frames
}

/// The file that was recorded, from the first place where it still is.
fn open_recorded(job: &Job, options: &Options, answer: &mut Answer) -> Option<Rc<Image>> {
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
                return Some(Rc::new(image));
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
