//! One open DWARF file: its units by offset, its strings, and the paths in its line tables.
//!
//! A lookup needs up to three: the file itself, a supplementary file shared by several (`dwz`), and the `.dwo`
//! of a unit.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, LineProgramHeader, UnitHeader, UnitOffset, UnitSectionOffset,
};

use crate::dwarf::bytes::{Bytes, Unit, Value};
use crate::dwarf::store::Store;

/// One file's DWARF.
pub(crate) struct Side<'a> {
    /// The DWARF as gimli reads it.
    pub dwarf: Dwarf<Bytes<'a>>,
    /// The store with its strings; `None` if they are in [`Side::dwarf`].
    store: Option<&'a Store>,
    /// The supplementary file.
    pub shared: Option<Rc<Side<'a>>>,
    /// Whether units were requested that were not read.
    is_lacking: Cell<bool>,
    headers: OnceCell<Vec<UnitHeader<Bytes<'a>>>>,
    units: RefCell<HashMap<usize, Option<Rc<Unit<'a>>>>>,
}

impl<'a> Side<'a> {
    /// Creates it for the DWARF in `store`.
    pub fn new(store: &'a Store, shared: Option<Rc<Side<'a>>>) -> Self {
        Self::with(store, store.view(), shared)
    }

    /// Creates it for `dwarf`, whose strings are in `store`.
    pub fn with(store: &'a Store, dwarf: Dwarf<Bytes<'a>>, shared: Option<Rc<Side<'a>>>) -> Self {
        Self { store: Some(store), shared, ..Self::whole(dwarf) }
    }

    /// Creates it for `dwarf`, which contains its strings.
    pub fn whole(dwarf: Dwarf<Bytes<'a>>) -> Self {
        Self {
            dwarf,
            store: None,
            shared: None,
            is_lacking: Cell::default(),
            headers: OnceCell::new(),
            units: RefCell::default(),
        }
    }

    /// Whether units were requested that are not in the part that was read, so that results are incomplete.
    pub fn is_lacking(&self) -> bool {
        self.is_lacking.get()
    }

    /// Notes that a requested unit may be in the part that was not read.
    fn lack(&self) {
        self.is_lacking.set(self.store.is_some_and(|store| store.is_part));
    }

    /// Returns the headers of all units, by offset.
    pub fn headers(&self) -> &[UnitHeader<Bytes<'a>>] {
        self.headers.get_or_init(|| {
            self.lack();
            let mut headers = Vec::new();
            let mut iter = self.dwarf.units();
            // Damaged data ends the list; the headers before are used.
            while let Ok(Some(header)) = iter.next() {
                headers.push(header);
            }
            headers
        })
    }

    /// Returns the unit whose header is at `offset`.
    pub fn unit_at(&self, offset: DebugInfoOffset) -> Option<Rc<Unit<'a>>> {
        if let Some(unit) = self.units.borrow().get(&offset.0) {
            return unit.clone();
        }
        let header = self.dwarf.debug_info.header_from_offset(offset);
        let unit = header.and_then(|header| self.dwarf.unit(header)).ok().map(Rc::new);
        if unit.is_none() {
            self.lack();
        }
        self.units.borrow_mut().insert(offset.0, unit.clone());
        unit
    }

    /// Drops all units; they are parsed again when they are needed.
    pub fn forget_units(&mut self) {
        self.units.get_mut().clear();
    }

    /// Returns the unit that contains an entry, and the entry's offset in it.
    pub fn unit_of(&self, entry: DebugInfoOffset) -> Option<(Rc<Unit<'a>>, UnitOffset)> {
        let start = |header: &UnitHeader<Bytes<'a>>| match header.offset() {
            UnitSectionOffset(offset) => offset,
        };
        let headers = self.headers();
        let index = headers.partition_point(|header| start(header) <= entry.0).checked_sub(1)?;
        let unit = self.unit_at(DebugInfoOffset(start(&headers[index])))?;
        let inside = entry.to_unit_offset(&unit.header)?;
        Some((unit, inside))
    }

    /// Returns the text of an attribute's value.
    pub fn string(&self, unit: &Unit<'a>, value: Value<'a>) -> Option<String> {
        let offset = match value {
            AttributeValue::DebugStrRef(offset) => offset,
            AttributeValue::DebugStrRefSup(offset) => return self.shared.as_ref()?.debug_str(offset.0),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let (format, base) = (unit.header.format(), unit.str_offsets_base);
                self.dwarf.debug_str_offsets.get_str_offset(format, base, index).ok()?
            }
            value => {
                let bytes = self.dwarf.attr_string(unit, value).ok()?;
                return Some(bytes.to_string_lossy().into_owned());
            }
        };
        self.debug_str(offset.0)
    }

    fn debug_str(&self, offset: usize) -> Option<String> {
        match self.store {
            Some(store) => Some(store.string(offset)),
            None => {
                let bytes = self.dwarf.debug_str.get_str(gimli::DebugStrOffset(offset)).ok()?;
                Some(bytes.to_string_lossy().into_owned())
            }
        }
    }

    /// Returns the compilation directory.
    pub fn folder(&self, unit: &Unit<'a>) -> String {
        let find = || {
            let mut entries = unit.entries_raw(None).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            for &spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(spec).ok()?;
                if attribute.name() == gimli::DW_AT_comp_dir {
                    return self.string(unit, attribute.value());
                }
            }
            None
        };
        find().unwrap_or_default()
    }

    /// Returns the path of a file of a line table, absolute if possible. `folder` is the unit's.
    pub fn path(
        &self,
        unit: &Unit<'a>,
        folder: &str,
        header: &LineProgramHeader<Bytes<'a>>,
        index: u64,
    ) -> Option<String> {
        // Before version 5 file 0 means "none"; since then LLVM and GCC use 0 for the unit's own file.
        if index == 0 && header.version() < 5 {
            return None;
        }
        let file = header.file(index)?;
        let name = self.string(unit, file.path_name())?;
        let below = match file.directory_index() {
            0 => None,
            index => header.directory(index).and_then(|value| self.string(unit, value)),
        };
        Some(join(folder, &join(below.as_deref().unwrap_or_default(), &name)))
    }
}

/// Resolves `path` relative to `folder`.
fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') {
        return path.to_owned();
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    format!("{}/{path}", folder.strip_suffix('/').unwrap_or(folder))
}
