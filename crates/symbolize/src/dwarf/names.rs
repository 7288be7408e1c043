//! Function names from entries, and the locations of the definitions.
//!
//! An entry of an inlined call or of a clone refers to the abstract function, and that to its declaration: the names
//! may be in any of these.

use std::rc::Rc;

use gimli::{AttributeValue, UnitOffset, UnitSectionOffset};
use rustc_hash::FxHashMap;

use crate::dwarf::bytes::{Unit, Value};
use crate::dwarf::calls::Call;
use crate::dwarf::entries::Origin;
use crate::dwarf::side::Side;

/// Longest chain of references; compilers need three.
const MAX_REFERENCES: usize = 16;

/// The names of a function in DWARF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Linkage name, empty if DWARF has none.
    pub linkage_name: String,
    /// Name in the source, without its scope.
    pub name: String,
    /// Source file of the definition, empty if not known.
    pub source_file: String,
    /// Line of the definition, 0 if not known.
    pub start_line: u32,
}

/// Caches of names and paths.
#[derive(Default)]
pub(crate) struct Names {
    /// Keys: whether the entry is in the supplementary file, and its offset.
    names: FxHashMap<(bool, usize), Rc<Name>>,
    folders: FxHashMap<(bool, usize), Rc<str>>,
    paths: FxHashMap<(bool, usize, u64), Rc<str>>,
}

impl Names {
    /// Returns the name of the function whose entry is at `entry` of `unit`.
    pub fn of<'a>(&mut self, side: &Side<'a>, unit: &Rc<Unit<'a>>, entry: UnitOffset) -> Rc<Name> {
        let key = (false, start(unit).saturating_add(entry.0));
        self.known(key, |names| names.follow(side, unit, entry, false))
    }

    /// Returns the name of the function that was inlined as `call` of `unit`; all calls of it share one value.
    pub fn of_call<'a>(&mut self, side: &Side<'a>, unit: &Rc<Unit<'a>>, call: &Call) -> Rc<Name> {
        let (key, side) = match (call.origin, side.shared.as_deref()) {
            (Some(Origin::Elsewhere(offset)), _) => ((false, offset), side),
            (Some(Origin::Shared(offset)), Some(shared)) => ((true, offset), shared),
            (Some(Origin::Here(entry)), _) => return self.of(side, unit, entry),
            _ => return self.of(side, unit, call.entry),
        };
        self.known((key.0, key.1.0), |names| match side.unit_of(key.1) {
            Some((unit, entry)) => names.follow(side, &unit, entry, key.0),
            None => Name::default(),
        })
    }

    fn known(&mut self, key: (bool, usize), find: impl FnOnce(&mut Self) -> Name) -> Rc<Name> {
        if let Some(name) = self.names.get(&key) {
            return Rc::clone(name);
        }
        let name = Rc::new(find(self));
        self.names.insert(key, Rc::clone(&name));
        name
    }

    /// Returns the path of a file of a unit's line table; empty if not known.
    pub fn path<'a>(&mut self, side: &Side<'a>, unit: &Unit<'a>, index: u64, shared: bool) -> Rc<str> {
        let key = (shared, start(unit), index);
        if let Some(path) = self.paths.get(&key) {
            return Rc::clone(path);
        }
        let folder = self.folders.entry((key.0, key.1)).or_insert_with(|| side.folder(unit).into());
        let program = unit.line_program.as_ref();
        let path = program.and_then(|program| side.path(unit, folder, program.header(), index));
        let path: Rc<str> = path.unwrap_or_default().into();
        self.paths.insert(key, Rc::clone(&path));
        path
    }

    /// Sets the compilation directory for a unit that does not state it.
    pub fn set_folder(&mut self, unit: &Unit<'_>, folder: &str) {
        self.folders.insert((false, start(unit)), folder.into());
    }

    /// Follows the references from an entry; `shared`: of the supplementary file.
    fn follow<'a>(
        &mut self,
        mut side: &Side<'a>,
        unit: &Rc<Unit<'a>>,
        mut entry: UnitOffset,
        mut shared: bool,
    ) -> Name {
        let mut name = Name::default();
        let mut unit = Rc::clone(unit);
        for _ in 0..MAX_REFERENCES {
            let next = self.read(side, &unit, entry, shared, &mut name);
            if !name.linkage_name.is_empty() && !name.source_file.is_empty() {
                break;
            }
            match next {
                Some(AttributeValue::UnitRef(offset)) => entry = offset,
                Some(AttributeValue::DebugInfoRef(offset)) => {
                    let Some((other, inside)) = side.unit_of(offset) else { break };
                    (unit, entry) = (other, inside);
                }
                Some(AttributeValue::DebugInfoRefSup(offset)) => {
                    let Some(other) = side.shared.as_deref() else { break };
                    let Some((in_unit, inside)) = other.unit_of(offset) else { break };
                    (side, unit, entry, shared) = (other, in_unit, inside, true);
                }
                _ => break,
            }
        }
        name
    }

    /// Fills in missing fields from the entry itself and returns the entry that it refers to.
    fn read<'a>(
        &mut self,
        side: &Side<'a>,
        unit: &Rc<Unit<'a>>,
        entry: UnitOffset,
        shared: bool,
        name: &mut Name,
    ) -> Option<Value<'a>> {
        let mut entries = unit.entries_raw(Some(entry)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let mut next = None;
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec).ok()?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name
                    if name.linkage_name.is_empty() =>
                {
                    name.linkage_name = side.string(unit, attribute.value()).unwrap_or_default();
                }
                gimli::DW_AT_name if name.name.is_empty() => {
                    name.name = side.string(unit, attribute.value()).unwrap_or_default();
                }
                gimli::DW_AT_decl_file if name.source_file.is_empty() => {
                    let index = match attribute.value() {
                        AttributeValue::FileIndex(index) => Some(index),
                        value => value.udata_value(),
                    };
                    if let Some(index) = index {
                        name.source_file = self.path(side, unit, index, shared).as_ref().to_owned();
                    }
                }
                gimli::DW_AT_decl_line if name.start_line == 0 => {
                    let line = attribute.udata_value().and_then(|line| u32::try_from(line).ok());
                    name.start_line = line.unwrap_or(0);
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => next = Some(attribute.value()),
                _ => {}
            }
        }
        next
    }
}

/// Returns the start of a unit in its section.
fn start(unit: &Unit<'_>) -> usize {
    let UnitSectionOffset(offset) = unit.header.offset();
    offset
}
