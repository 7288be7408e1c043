//! Functions, inlined calls and source lines from DWARF, for many addresses of a file at once.
//!
//! Built on gimli rather than on addr2line (the crate's README has the figures): many addresses are known at once, so
//! each unit is scanned once, and only the positions of its functions and the inlined calls of the requested ones are kept;
//! and addr2line follows nested inlined calls by recursion, which a hostile file could use to exhaust the
//! stack. The two passes that see every entry (`entries`) and every line row (`lines`) of a unit are own code and
//! skip unneeded data without decoding it; everything else is read by gimli.
//!
//! Elsewhere: opening files, symbol tables, demangling.

pub(crate) mod budget;
pub(crate) mod bytes;
mod calls;
mod cursor;
mod entries;
mod functions;
mod lines;
mod names;
mod part;
mod program;
mod ranges;
mod shapes;
pub(crate) mod side;
mod spans;
mod split;
pub(crate) mod store;
mod units;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use gimli::{DwoId, UnitRef, UnitSectionOffset};

use crate::boundaries::Boundaries;
use crate::dwarf::budget::Budget;
use crate::dwarf::bytes::Unit;
use crate::dwarf::functions::{Functions, Hit};
use crate::dwarf::lines::Lines;
pub(crate) use crate::dwarf::names::Name;
use crate::dwarf::names::Names;
use crate::dwarf::side::Side;
use crate::dwarf::split::Package;
use crate::dwarf::store::Store;
use crate::dwarf::units::Units;
use crate::elf::Image;
use crate::summary::Missing;

/// The DWARF information about an address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The innermost inlined call first, the outlined function last. Never empty; without a name if only the
    /// line is known.
    pub frames: Vec<Place>,
    /// First address of the outlined function.
    pub start: Option<u64>,
}

/// A source location in a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The function.
    pub name: Option<Rc<Name>>,
    /// Source file, empty if not known.
    pub file: Rc<str>,
    /// Line counted from 1, 0 if not known.
    pub line: u32,
}

/// A file's DWARF and the state for looking up addresses in it.
pub(crate) struct Resolver<'a> {
    side: Side<'a>,
    package: Option<Package>,
    units: Units,
    /// Cached information about units with requested addresses, by the offsets of their headers.
    known: HashMap<usize, Known>,
    names: Names,
    /// Lowest address of code in the file.
    lowest: u64,
    budget: Budget,
    /// The parts that could not be read.
    pub missing: Vec<Missing>,
}

/// Cached information about a unit.
struct Known {
    functions: Functions,
    lines: Lines,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver for `store`, which holds the DWARF of `image`; `shared` is its supplementary file.
    pub fn new(image: &Image, store: &'a Store, shared: Option<Rc<Side<'a>>>) -> Self {
        let code = image.sections.iter().filter(|section| section.executable);
        let lowest = code.map(|section| section.address).min().unwrap_or(0);
        let (package, missing) = package(&image.path);
        Self {
            side: Side::new(store, shared),
            package,
            units: Units::default(),
            known: HashMap::new(),
            names: Names::default(),
            lowest,
            budget: Budget::default(),
            missing,
        }
    }

    /// Resolves the `wanted` addresses, which are sorted and unique.
    pub fn resolve(&mut self, wanted: &[u64]) -> Vec<Option<Found>> {
        let mut found = vec![None; wanted.len()];
        for (offset, indices) in self.units.find(&self.side, wanted, &self.budget) {
            // Several units may claim an address; the first that has a function there wins.
            let indices: Vec<usize> = indices.into_iter().filter(|&index| found[index].is_none()).collect();
            let addresses: Vec<u64> = indices.iter().map(|&index| wanted[index]).collect();
            let Some(unit) = self.side.unit_at(gimli::DebugInfoOffset(offset)) else { continue };
            if addresses.is_empty() {
                continue;
            }
            let known = self.known.remove(&offset);
            let mut known =
                known.unwrap_or_else(|| Known { functions: Functions::new(&unit), lines: Lines::default() });
            let mut names = std::mem::take(&mut self.names);
            let answers = self.unit(&unit, &addresses, &mut known, &mut names);
            self.names = names;
            self.known.insert(offset, known);
            for (index, answer) in indices.into_iter().zip(answers) {
                found[index] = answer;
            }
        }
        if self.budget.is_spent() {
            self.missing.push(Missing::Skipped { what: "its DWARF asks for too much work".into() });
        }
        found
    }

    /// Adds the addresses where the answers of [`Self::resolve`] may change.
    pub fn boundaries(&mut self, boundaries: &mut Boundaries) {
        let offsets: Vec<_> = self.side.headers().iter().map(|header| header.offset()).collect();
        for UnitSectionOffset(offset) in offsets {
            // A large file has more units than memory holds.
            self.side.forget_units();
            let Some(unit) = self.side.unit_at(gimli::DebugInfoOffset(offset)) else { continue };
            let reference = UnitRef::new(&self.side.dwarf, &unit);
            Functions::new(&unit).boundaries(reference, &self.budget, boundaries);
            if let Some(program) = &unit.line_program {
                lines::boundaries(program.header(), &self.budget, boundaries);
            }
        }
    }

    /// Drops what was kept of units for later calls of [`Self::resolve`].
    pub fn forget(&mut self) {
        self.side.forget_units();
        self.known.clear();
        self.names = Names::default();
    }

    /// Whether units are needed that were not read.
    pub fn is_lacking(&self) -> bool {
        self.side.is_lacking()
    }

    fn unit(
        &mut self,
        unit: &Rc<Unit<'a>>,
        wanted: &[u64],
        known: &mut Known,
        names: &mut Names,
    ) -> Vec<Option<Found>> {
        let reference = UnitRef::new(&self.side.dwarf, unit);
        let rows = known.lines.rows(reference, wanted, self.lowest, &self.budget);
        let rows = rows
            .into_iter()
            .map(|row| row.map(|row| (names.path(&self.side, unit, row.file, false), row.line)));
        let rows: Vec<Option<(Rc<str>, u32)>> = rows.collect();
        if let Some(id) = unit.dwo_id {
            match self.split_unit(unit, id, wanted, &rows) {
                Ok(answers) => return answers,
                Err(missing) => self.missing.push(missing),
            }
        }
        let hits = known.functions.find(reference, wanted, &self.budget);
        chains(&self.side, unit, names, hits, &rows)
    }

    /// Resolves addresses of a unit whose entries are in a `.dwo` file or a package.
    fn split_unit(
        &self,
        skeleton: &Unit<'a>,
        id: DwoId,
        wanted: &[u64],
        rows: &[Option<(Rc<str>, u32)>],
    ) -> Result<Vec<Option<Found>>, Missing> {
        let folder = self.side.folder(skeleton);
        if let Some(dwarf) = self.package.as_ref().and_then(|package| package.find(id, &self.side.dwarf)) {
            return split_chains(&Side::whole(dwarf), id, (skeleton, &folder), wanted, rows, &self.budget)
                .ok_or_else(|| Missing::Skipped { what: "its .dwp package is damaged".into() });
        }
        let path = split::path(&self.side, skeleton);
        let path =
            path.ok_or_else(|| Missing::Skipped { what: "a unit does not name its .dwo file".into() })?;
        let image = Rc::new(Image::open(&path)?);
        let store = Store::read(&image, true, None)?;
        let side = Side::with(&store, split::view(&store, &self.side.dwarf), None);
        split_chains(&side, id, (skeleton, &folder), wanted, rows, &self.budget)
            .ok_or(Missing::Replaced { path })
    }
}

fn split_chains<'a>(
    side: &Side<'a>,
    id: DwoId,
    (skeleton, folder): (&Unit<'a>, &str),
    wanted: &[u64],
    rows: &[Option<(Rc<str>, u32)>],
    budget: &Budget,
) -> Option<Vec<Option<Found>>> {
    let unit = Rc::new(split::unit(&side.dwarf, id, skeleton)?);
    let mut names = Names::default();
    names.set_folder(&unit, folder);
    let hits = Functions::new(&unit).find(UnitRef::new(&side.dwarf, &unit), wanted, budget);
    Some(chains(side, &unit, &mut names, hits, rows))
}

/// Returns the function chain of each hit. `rows` has the address' own file and line.
fn chains<'a>(
    side: &Side<'a>,
    unit: &Rc<Unit<'a>>,
    names: &mut Names,
    hits: Vec<Option<Hit>>,
    rows: &[Option<(Rc<str>, u32)>],
) -> Vec<Option<Found>> {
    let both = hits.into_iter().zip(rows);
    both.map(|(hit, row)| {
        let (file, line) = row.clone().unwrap_or_default();
        match hit {
            Some(hit) => Some(chain(side, unit, names, &hit, file, line)),
            None if row.is_some() => {
                Some(Found { frames: vec![Place { name: None, file, line }], start: None })
            }
            None => None,
        }
    })
    .collect()
}

/// Returns the inlined calls of a hit from the innermost to the function itself. Each location is where the next inner
/// one was called.
fn chain<'a>(
    side: &Side<'a>,
    unit: &Rc<Unit<'a>>,
    names: &mut Names,
    hit: &Hit,
    mut file: Rc<str>,
    mut line: u32,
) -> Found {
    let mut frames = Vec::new();
    for call in hit.innermost.into_iter().flat_map(|innermost| hit.calls.outwards(innermost)) {
        frames.push(Place { name: Some(names.of_call(side, unit, call)), file, line });
        file = call.file.map(|index| names.path(side, unit, index, false)).unwrap_or_default();
        line = call.line;
    }
    frames.push(Place { name: Some(names.of(side, unit, hit.entry)), file, line });
    Found { frames, start: Some(hit.start) }
}

/// Opens the package next to a binary, if there is one.
fn package(path: &Path) -> (Option<Package>, Vec<Missing>) {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    let path = Path::new(&name);
    if !path.is_file() {
        return (None, Vec::new());
    }
    match Image::open(path).and_then(|image| Package::read(&image)) {
        Ok(package) => (Some(package), Vec::new()),
        Err(missing) => (None, vec![missing]),
    }
}
