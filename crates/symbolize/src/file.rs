//! Frames in ELF files: finds the recorded file and its debug files, and looks addresses up.
//!
//! Elsewhere: the choice between several names (`naming`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use plumb_process::{path_of_open, recorded_paths};
use plumb_profile::AddressSpace;
use self_cell::self_cell;
use typed_arena::Arena;

use crate::boundaries::Boundaries;
use crate::debug_file::{self, Fetch};
use crate::dwarf::side::Side;
use crate::dwarf::store::{self, Store};
use crate::dwarf::{Found, Resolver};
use crate::elf::Image;
use crate::gopclntab::GoLines;
use crate::job::{Answer, FrameAddress, Job};
use crate::mini;
use crate::naming::Naming;
use crate::options::Options;
use crate::summary::Missing;
use crate::symbols::FileSymbols;

/// The recorded file, and its debug file if it has one.
pub(crate) struct Images {
    /// The recorded file; if it is gone, its debug file.
    pub image: Rc<Image>,
    /// The debug file.
    pub debug: Option<Rc<Image>>,
}

impl Images {
    /// Finds the files.
    pub fn find(job: &Job, options: &Options, fetch: &Fetch, answer: &mut Answer) -> Option<Self> {
        match open_recorded(job, options, answer) {
            Some(image) => Some(Self::of(image, options, fetch, answer)),
            // The file is gone, but its debug file may be available by build id, and has everything needed.
            None => {
                let found = debug_file::by_build_id(job.build_id.as_ref(), options, fetch, answer)?;
                Some(Self::of(found, options, &|_, _| None, answer))
            }
        }
    }

    /// Uses `image`, which is known to be the recorded file, and finds its debug file.
    pub fn of(image: Rc<Image>, options: &Options, fetch: &Fetch, answer: &mut Answer) -> Self {
        let debug = debug_file::find(&image, options, fetch, answer);
        Self { image, debug }
    }

    /// Returns the approximate number of bytes in memory needed to resolve frames.
    pub fn bytes(&self, options: &Options) -> u64 {
        let dwarf = self.dwarf().filter(|_| options.lines).map_or(0, |image| store::bytes(image));
        let of_go = if options.lines { GoLines::bytes(&self.image) } else { 0 };
        dwarf.saturating_add(of_go).saturating_add(FileSymbols::bytes(&self.image))
    }

    fn dwarf(&self) -> Option<&Rc<Image>> {
        [Some(&self.image), self.debug.as_ref()].into_iter().flatten().find(|image| image.has_dwarf())
    }
}

self_cell! {
    /// An open file with its DWARF, from which frames are resolved repeatedly.
    pub(crate) struct OpenFile {
        owner: Arena<Store>,
        #[not_covariant]
        dependent: Open,
    }
}

impl OpenFile {
    /// Reads what is needed to resolve frames.
    pub fn of(images: Images, options: &Options, answer: &mut Answer) -> Self {
        Self::new(Arena::new(), |stores| Open::new(images, options, stores, answer))
    }

    /// Returns the addresses where the answers of [`Self::resolve`] may change.
    pub fn boundaries(&mut self) -> Boundaries {
        self.with_dependent_mut(|_, open| open.boundaries())
    }

    /// Drops what was kept for later calls of [`Self::resolve`], which needs a new answer from here on.
    pub fn forget(&mut self) {
        self.with_dependent_mut(|_, open| open.forget());
    }

    /// Resolves the job's frames. The answer must be that of the previous calls.
    pub fn resolve(&mut self, job: &Job, answer: &mut Answer) {
        self.with_dependent_mut(|_, open| open.resolve(job, answer));
    }
}

/// The data that frames are resolved from.
struct Open<'s> {
    image: Rc<Image>,
    symbols: FileSymbols,
    resolver: Option<Resolver<'s>>,
    go: GoTable,
    naming: Naming,
}

impl<'s> Open<'s> {
    /// Reads what is needed to resolve frames; the DWARF goes into `stores`.
    fn new(images: Images, options: &Options, stores: &'s Arena<Store>, answer: &mut Answer) -> Self {
        let mini = mini::find(&images.image, images.debug.as_deref(), answer);
        let symbols = FileSymbols::read(&images.image, images.debug.as_ref(), mini.as_ref(), answer);
        let resolver = if options.lines { resolver(&images, options, stores, None, answer) } else { None };
        let go = GoTable { is_wanted: options.lines, lines: None };
        Self { image: images.image, symbols, resolver, go, naming: Naming::default() }
    }

    fn forget(&mut self) {
        self.naming = Naming::default();
        self.resolver.iter_mut().for_each(Resolver::forget);
    }

    fn boundaries(&mut self) -> Boundaries {
        let mut boundaries = Boundaries::default();
        self.symbols.boundaries(&mut boundaries);
        self.resolver.iter_mut().for_each(|resolver| resolver.boundaries(&mut boundaries));
        if let Some(Ok(Some(mut lines))) = self.go.is_wanted.then(|| GoLines::read(&self.image)) {
            lines.boundaries(&mut boundaries);
        }
        boundaries
    }

    fn resolve(&mut self, job: &Job, answer: &mut Answer) {
        let frames = stated(job, &self.image);
        let resolver = self.resolver.as_mut();
        let addresses = distinct(&frames);
        let mut found = resolver.map(|resolver| look_up(resolver, &addresses, answer)).unwrap_or_default();
        self.go.complete(&self.image, &addresses, &mut found, answer);
        for frame in frames {
            self.naming.frame(&mut self.symbols, answer, frame, found.get(&frame.address));
        }
    }
}

/// Go's own table of a file, if it has one: read once DWARF lacks an address.
struct GoTable {
    is_wanted: bool,
    lines: Option<Option<GoLines>>,
}

impl GoTable {
    /// Adds the missing addresses to `found`.
    fn complete(
        &mut self,
        image: &Rc<Image>,
        addresses: &[u64],
        found: &mut HashMap<u64, Found>,
        answer: &mut Answer,
    ) {
        for &address in addresses.iter().filter(|_| self.is_wanted) {
            if found.contains_key(&address) {
                continue;
            }
            let lines = self.lines.get_or_insert_with(|| read_go(image, answer));
            let Some(lines) = lines else { return };
            found.extend(lines.find(address).map(|of_go| (address, of_go)));
        }
        if self.lines.iter().flatten().any(GoLines::is_spent) {
            answer.miss(Missing::Skipped { what: "its .gopclntab asks for too much work".into() });
        }
    }
}

fn read_go(image: &Rc<Image>, answer: &mut Answer) -> Option<GoLines> {
    let lines = GoLines::read(image).unwrap_or_else(|missing| {
        answer.miss(missing);
        None
    })?;
    if !lines.has_inlined() {
        let what = "no module data of Go says where its inlined calls are: lines without inlined calls";
        answer.miss(Missing::Skipped { what: what.into() });
    }
    Some(lines)
}

/// Resolves the job's frames, which must be few and close together, reading only the DWARF needed.
pub(crate) fn resolve_few(
    images: &Images,
    symbols: &mut FileSymbols,
    job: &Job,
    options: &Options,
    answer: &mut Answer,
) {
    let frames = stated(job, &images.image);
    let addresses = distinct(&frames);
    let mut found = HashMap::new();
    for part in [Some(&addresses[..]), None].into_iter().filter(|_| options.lines) {
        let stores = Arena::new();
        let Some(mut resolver) = resolver(images, options, &stores, part, answer) else { continue };
        found = look_up(&mut resolver, &addresses, answer);
        if !resolver.is_lacking() {
            break;
        }
    }
    let mut go = GoTable { is_wanted: options.lines, lines: None };
    go.complete(&images.image, &addresses, &mut found, answer);
    let mut naming = Naming::default();
    for frame in frames {
        naming.frame(symbols, answer, frame, found.get(&frame.address));
    }
}

/// Returns the distinct addresses of sorted frames.
fn distinct(frames: &[FrameAddress]) -> Vec<u64> {
    let mut addresses: Vec<u64> = frames.iter().map(|frame| frame.address).collect();
    addresses.dedup();
    addresses
}

fn look_up(resolver: &mut Resolver<'_>, addresses: &[u64], answer: &mut Answer) -> HashMap<u64, Found> {
    let answers = resolver.resolve(addresses);
    resolver.missing.drain(..).for_each(|missing| answer.miss(missing));
    let pairs = addresses.iter().copied().zip(answers);
    pairs.filter_map(|(address, found)| Some((address, found?))).collect()
}

/// Creates the DWARF resolver of the files, if they have any: for everything, or only for the units of the addresses in `part`, if
/// these can be determined.
fn resolver<'s>(
    images: &Images,
    options: &Options,
    stores: &'s Arena<Store>,
    part: Option<&[u64]>,
    answer: &mut Answer,
) -> Option<Resolver<'s>> {
    let Some(source) = images.dwarf() else {
        // Go's own table has the same information.
        if !GoLines::is_in(&images.image) {
            answer.miss(Missing::NoDebugInfo);
        }
        return None;
    };
    if source.form.endian != object::Endianness::Little {
        answer.miss(Missing::Skipped { what: "its DWARF is big-endian".into() });
        return None;
    }
    let cache = options.cache.as_deref();
    let shared = debug_file::shared(source, options, answer);
    let mut keep = |store: Result<Option<Store>, Missing>| {
        let store = store.unwrap_or_else(|missing| {
            answer.miss(missing);
            None
        });
        Some(&*stores.alloc(store?))
    };
    let store = keep(match part {
        Some(wanted) => Store::read_part(source, wanted, cache),
        None => Store::read(source, false, cache).map(Some),
    })?;
    let shared = match &shared {
        Some(image) => Some(Rc::new(Side::new(keep(Store::read(image, false, cache).map(Some))?, None))),
        None => None,
    };
    Some(Resolver::new(source, store, shared))
}

/// Returns the job's frames with addresses as the file states them, sorted.
fn stated(job: &Job, image: &Image) -> Vec<FrameAddress> {
    let frames = job.frames.iter().filter_map(|&frame| {
        let address = frame.address;
        let address = match job.addresses {
            AddressSpace::Svma => address,
            AddressSpace::FileOffset => image.address_of_offset(address)?,
            AddressSpace::Avma | AddressSpace::Line => return None,
        };
        Some(FrameAddress { address, ..frame })
    });
    let mut frames: Vec<_> = frames.collect();
    frames.sort_unstable();
    frames
}

/// Opens the recorded file at the first path where it still is.
fn open_recorded(job: &Job, options: &Options, answer: &mut Answer) -> Option<Rc<Image>> {
    let mut reasons = Vec::new();
    for path in places(job, options) {
        match Image::open(&path) {
            Ok(image) if !options.files.may_run(image.machine.0) => {
                reasons.push(Missing::Replaced { path });
            }
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

/// Whether the file was written after the recording ended, the only possible check for a file without build id.
fn is_newer(image: &Image, recorded_until: Option<SystemTime>) -> bool {
    recorded_until.zip(image.modified).is_some_and(|(until, modified)| modified > until)
}

/// Returns the paths where the recorded file may be, most likely first.
fn places<'a>(job: &'a Job, options: &'a Options) -> impl Iterator<Item = PathBuf> + 'a {
    let known = options.images.get(&job.dso).into_iter().flatten().cloned();
    let below = options.files.below.as_deref();
    let own = below.is_none().then(|| own_places(job, options));
    let below = below.map(|below| recorded_paths(Some(below), Path::new(&job.path)));
    known.chain(below.into_iter().flatten()).chain(own.into_iter().flatten())
}

/// Returns the paths of a file of this machine.
fn own_places<'a>(job: &'a Job, options: &'a Options) -> impl Iterator<Item = PathBuf> + 'a {
    let relative = Path::new(&job.path).strip_prefix("/").unwrap_or(Path::new(&job.path));
    let inside = job.pids.iter().map(move |&pid| options.process(pid).join("root").join(relative));
    job.held.as_ref().map(path_of_open).into_iter().chain([Path::new("/").join(relative)]).chain(inside)
}
