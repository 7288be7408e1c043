//! The other way round: from the name of a function to its place in a file, for whoever wants to stop or count there.
//!
//! Names are taken as the linker has them, or as reports show them: demangled, without parameters. Where one name means several
//! functions none is chosen: the error tells them apart.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use plumb_profile::{DsoId, DsoKind, Id};

use crate::debug_file;
use crate::demangle::{demangle, is_mangled};
use crate::elf::Image;
use crate::job::{Answer, Job};
use crate::mini;
use crate::options::Options;
use crate::probe::{self, ProbeStep};
use crate::summary::Missing;
use crate::symtab::{self, Symtab};

/// Most names that an error offers.
const OFFERED: usize = 8;

/// The location of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Stated virtual address of the function.
    pub address: u64,
    /// File offset of the function's first byte.
    pub offset: u64,
    /// File offset of the cheapest probe of its calls: the first byte, or another that each call executes once.
    pub probe: u64,
    /// Execution of the instruction at `probe` by the kernel.
    pub step: ProbeStep,
}

/// Reason why a name has no single location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The file can't be read, or is not an ELF file.
    File(Missing),
    /// The file has no function of this name; the list has similar names.
    NoFunction(PathBuf, String, Vec<String>),
    /// Several functions have this name: the mangled name and stated address of each.
    Several(String, Vec<(String, u64)>),
    /// The loader chooses one of several functions when the program starts; the list has the candidates.
    Indirect(String, Vec<String>),
    /// The address is not in a loaded part of the file.
    NotLoaded(PathBuf, u64),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotFound::File(missing) => missing.fmt(f),
            NotFound::NoFunction(path, name, similar) => {
                write!(f, "{}: has no function `{name}`", path.display())?;
                if similar.is_empty() {
                    write!(f, "; if it was stripped, an address does: {}:0x1234", path.display())
                } else {
                    write!(f, "; similar names:\n  {}", similar.join("\n  "))
                }
            }
            NotFound::Several(name, all) => {
                write!(
                    f,
                    "`{name}` is the name of {} functions; take the address of one in its place:",
                    all.len()
                )?;
                all.iter().take(OFFERED).try_for_each(|(name, address)| write!(f, "\n  {address:#x}  {name}"))
            }
            NotFound::Indirect(name, all) => {
                write!(
                    f,
                    "`{name}` is only chosen when a program starts, by what the processor can (IFUNC)"
                )?;
                if !all.is_empty() {
                    write!(f, "; one of these runs:\n  {}", all.join("\n  "))?;
                }
                Ok(())
            }
            NotFound::NotLoaded(path, address) => {
                write!(f, "{}: the address {address:#x} is not in a part that is loaded", path.display())
            }
        }
    }
}

impl std::error::Error for NotFound {}

/// Finds the function called `name` in the file at `path`. A name such as `0x1139` is a stated address.
pub fn find_function(path: &Path, name: &str, options: &Options) -> Result<FunctionPlace, NotFound> {
    let image = Rc::new(Image::open(path).map_err(NotFound::File)?);
    let stated = name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let (address, tables) = match stated {
        Some(address) => (address, Vec::new()),
        None => {
            let tables = tables(&image, options);
            (address_of(&image, &tables, name)?, tables)
        }
    };
    let inside = |address: u64| {
        let segment =
            image.segments.iter().find(|s| address >= s.address && address - s.address < s.file_size)?;
        segment.offset.checked_add(address - segment.address)
    };
    let Some(offset) = inside(address) else { return Err(NotFound::NotLoaded(path.into(), address)) };
    let (distance, step) = probe::place(&image, offset, address, &tables);
    Ok(FunctionPlace { address, offset, probe: offset + distance, step })
}

/// An instruction of a file that has a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSite {
    /// The function that holds the instruction, demangled.
    pub function: Option<String>,
    /// Distance of the instruction from the function's entry.
    pub distance: u64,
    /// Execution of the instruction by the kernel.
    pub step: ProbeStep,
    /// Distance of an instruction that each call executes once as well and that the kernel emulates; `None`: none is known.
    pub better: Option<u64>,
}

/// Looks at the instruction at this offset of the file at `path`. Nothing is known of a file that can't be read.
pub fn probe_site(path: &Path, offset: u64, options: &Options) -> ProbeSite {
    let Ok(image) = Image::open(path).map(Rc::new) else { return ProbeSite::default() };
    let step = probe::step(&image, offset);
    let segment = image.segments.iter().find(|s| offset >= s.offset && offset - s.offset < s.file_size);
    let Some(segment) = segment else {
        return ProbeSite { step, ..ProbeSite::default() };
    };
    let address = segment.address.wrapping_add(offset - segment.offset);
    let tables = tables(&image, options);
    let named = tables.iter().filter_map(|table| table.find(address)).max_by_key(|named| named.start);
    let Some(named) = named.filter(|named| named.near.is_none()) else {
        return ProbeSite { step, ..ProbeSite::default() };
    };
    let distance = address.wrapping_sub(named.start);
    let better = (distance == 0 && step == ProbeStep::Stepped)
        .then(|| probe::place(&image, offset, address, &tables))
        .and_then(|(further, step)| (step == ProbeStep::Emulated && further > 0).then_some(further));
    ProbeSite { function: Some(named.shown()), distance, step, better }
}

fn address_of(image: &Rc<Image>, tables: &[Symtab], name: &str) -> Result<u64, NotFound> {
    let wanted = Wanted::new(name);
    // By address, since a function may have several names, and several tables.
    let mut found: BTreeMap<u64, String> = BTreeMap::new();
    for (linkage, address) in tables.iter().flat_map(Symtab::all) {
        if wanted.is(&linkage) {
            found.entry(address).or_insert(linkage);
        }
    }
    let indirect: HashSet<u64> =
        [SHT_SYMTAB, SHT_DYNSYM].iter().flat_map(|&kind| symtab::indirect(image, kind)).collect();
    if found.keys().any(|address| indirect.contains(address)) {
        return Err(NotFound::Indirect(name.into(), variants(tables, name, &indirect)));
    }
    match found.len() {
        0 => Err(NotFound::NoFunction(image.path.clone(), name.into(), similar(tables, name))),
        1 => Ok(found.keys().next().copied().unwrap_or_default()),
        _ => Err(NotFound::Several(
            name.into(),
            found.into_iter().map(|(address, name)| (name, address)).collect(),
        )),
    }
}

/// All tables of functions that there are.
fn tables(image: &Rc<Image>, options: &Options) -> Vec<Symtab> {
    let job = Job {
        dso: DsoId::from_index(0),
        path: image.path.display().to_string(),
        build_id: image.build_id.clone(),
        kind: DsoKind::File,
        addresses: plumb_profile::AddressSpace::Svma,
        pids: Vec::new(),
        roots: Vec::new(),
        held: None,
        generation: 0,
        frames: Vec::new(),
    };
    let mut answer = Answer::new(&job);
    let debug = debug_file::find(image, options, &|_, _| None, &mut answer);
    let inner = mini::find(image, debug.as_deref(), &mut answer);
    let images = [Some(image), debug.as_ref(), inner.as_ref()];
    let kinds = [SHT_SYMTAB, SHT_DYNSYM];
    let all = images.into_iter().flatten().flat_map(|image| kinds.map(|kind| Symtab::read(image, kind)));
    all.chain([Symtab::read_go(image)]).filter_map(|table| table.ok().flatten()).collect()
}

/// A name to compare others with.
struct Wanted<'a> {
    name: &'a str,
    /// A word that the mangled form has to hold.
    word: &'a str,
}

impl<'a> Wanted<'a> {
    fn new(name: &'a str) -> Self {
        let last = name.rsplit("::").next().unwrap_or(name);
        let word = last.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
        Self { name, word }
    }

    fn is(&self, linkage: &str) -> bool {
        let plain = linkage.split('@').next().unwrap_or(linkage);
        let is_old_version = linkage.contains('@') && !linkage.contains("@@");
        if linkage == self.name || plain == self.name && !is_old_version {
            return true;
        }
        is_mangled(plain) && plain.contains(self.word) && demangle(plain) == self.name
    }
}

fn similar(tables: &[Symtab], name: &str) -> Vec<String> {
    let word = Wanted::new(name).word.to_lowercase();
    if word.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    for (linkage, _) in tables.iter().flat_map(Symtab::all) {
        if linkage.to_lowercase().contains(&word) {
            names.push(demangle(&linkage));
        }
    }
    names.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    names.dedup();
    names.truncate(OFFERED);
    names
}

/// Returns the functions that the loader may choose for a name, by glibc's convention: `__memcpy_avx_unaligned` for `memcpy`.
fn variants(tables: &[Symtab], name: &str, indirect: &HashSet<u64>) -> Vec<String> {
    let start = format!("__{}_", name.trim_start_matches('_'));
    let of = |table: &Symtab| {
        table
            .all()
            .filter(|(other, at)| other.starts_with(&start) && !indirect.contains(at))
            .collect::<Vec<_>>()
    };
    let mut names: Vec<String> = tables.iter().flat_map(of).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_linkers_or_those_of_reports() {
        let is = |name: &str, linkage: &str| Wanted::new(name).is(linkage);
        assert!(is("malloc", "malloc"));
        assert!(is("malloc", "malloc@@GLIBC_2.2.5"));
        assert!(!is("cfree", "cfree@GLIBC_2.2.5"), "an old version is not what new programs call");
        assert!(is("cfree@GLIBC_2.2.5", "cfree@GLIBC_2.2.5"));
        assert!(is("ns::f", "_ZN2ns1fEi"));
        assert!(is("_ZN2ns1fEi", "_ZN2ns1fEi"));
        assert!(!is("ns::f", "_ZN2ns1gEi"));
        assert!(!is("f", "_ZN2ns1fEi"), "all of the name is meant");
    }
}
