//! A pass over the entries of a unit that decodes functions and inlined calls and skips all others.
//!
//! Invariant: every step moves forwards, so a pass ends. Damaged data ends it too; the entries before are used.

use gimli::{
    AttributeValue, DebugAddrIndex, DebugInfoOffset, DebugRngListsIndex, DwForm, DwTag, RawRangeListsOffset,
    UnitOffset, UnitRef,
};

use crate::dwarf::bytes::{Bytes, Value};
use crate::dwarf::cursor::Cursor;
use crate::dwarf::shapes::{self, Form, Shapes, Slot, Step, Stored};

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Offset in the unit.
    pub offset: UnitOffset,
    /// Tag of the entry.
    pub tag: DwTag,
    /// Nesting depth, relative to the start of the pass.
    pub depth: usize,
}

/// Location of the function that an inlined call is a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the same unit as the call.
    Here(UnitOffset),
    /// In any unit of the file.
    Elsewhere(DebugInfoOffset),
    /// In the supplementary file.
    Shared(DebugInfoOffset),
}

/// A pass over entries.
pub(crate) struct Entries<'u, 'a> {
    unit: UnitRef<'u, Bytes<'a>>,
    shapes: &'u mut Shapes,
    cursor: Cursor<'a>,
    /// Offset in the unit of the cursor's first byte.
    base: usize,
    depth: usize,
    /// Whether the last entry has children.
    is_outer: bool,
    found: Attributes,
}

/// The wanted attributes of an entry; each is optional.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    low: Option<Raw>,
    high: Option<Raw>,
    ranges: Option<Raw>,
    sibling: Option<Raw>,
    origin: Option<Raw>,
    call_file: Option<Raw>,
    call_line: Option<Raw>,
}

/// An attribute value as stored.
#[derive(Clone, Copy, Debug)]
struct Raw {
    form: DwForm,
    value: u64,
}

impl<'u, 'a> Entries<'u, 'a> {
    /// Starts a pass at the entry at `start`, or over the whole unit.
    pub fn new(
        unit: UnitRef<'u, Bytes<'a>>,
        shapes: &'u mut Shapes,
        start: Option<UnitOffset>,
    ) -> Option<Self> {
        let start = start.unwrap_or(unit.header.root_offset());
        let bytes: Bytes<'a> = unit.header.range_from(start..).ok()?;
        let cursor = Cursor::new(bytes.slice());
        Some(Self {
            unit,
            shapes,
            cursor,
            base: start.0,
            depth: 0,
            is_outer: false,
            found: Attributes::default(),
        })
    }

    /// Reads the next entry. `None` at the end of the unit.
    pub fn next(&mut self) -> Option<Entry> {
        loop {
            if self.cursor.is_at_end() {
                return None;
            }
            let offset = UnitOffset(self.base + self.cursor.at());
            let code = self.cursor.uleb()?;
            if code == 0 {
                self.depth = self.depth.saturating_sub(1);
                continue;
            }
            let shape = self.shapes.get(code, &self.unit.header)?;
            let (tag, has_children, depth) = (shape.tag, shape.has_children, self.depth);
            self.found = Attributes::default();
            for &step in &shape.steps {
                let step = match step {
                    Step::Indirect(spec) => {
                        shapes::indirect(&spec, self.cursor.uleb()?, tag, &self.unit.header)?
                    }
                    step => step,
                };
                pass(step, &mut self.cursor, &mut self.found)?;
            }
            self.depth += usize::from(has_children);
            self.is_outer = has_children;
            return Some(Entry { offset, tag, depth });
        }
    }

    /// Skips the children of the last entry, if it has a sibling reference.
    pub fn skip_children(&mut self) {
        let Some(sibling) = self.found.sibling.filter(|_| self.is_outer).and_then(Raw::in_unit) else {
            return;
        };
        // Only forwards, so that the pass ends.
        match sibling.0.checked_sub(self.base) {
            Some(at) if at > self.cursor.at() => {
                self.cursor.go(at);
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// Returns the attributes of the last entry.
    pub fn attributes(&self) -> &Attributes {
        &self.found
    }
}

#[inline]
fn pass(step: Step, cursor: &mut Cursor<'_>, found: &mut Attributes) -> Option<()> {
    match step {
        Step::Bytes(count) => cursor.skip(count),
        Step::Leb => cursor.skip_leb()?,
        Step::Text => cursor.skip_text()?,
        Step::Block(size) => {
            let length = cursor.number(size)?;
            cursor.skip(usize::try_from(length).ok()?);
        }
        Step::LebBlock => {
            let length = cursor.uleb()?;
            cursor.skip(usize::try_from(length).ok()?);
        }
        Step::Take(slot, form) => found.set(slot, read(form, cursor)?),
        // An indirect form must not be indirect again.
        Step::Indirect(_) => return None,
    }
    Some(())
}

#[inline]
fn read(Form { form, stored }: Form, cursor: &mut Cursor<'_>) -> Option<Raw> {
    let value = match stored {
        Stored::Bytes(size) => cursor.number(size)?,
        Stored::Uleb => cursor.uleb()?,
        Stored::Sleb => cursor.sleb()?.cast_unsigned(),
        Stored::Here(value) => value.cast_unsigned(),
    };
    Some(Raw { form, value })
}

impl Raw {
    /// Returns the entry of the same unit that the value refers to.
    fn in_unit(self) -> Option<UnitOffset> {
        match self.form {
            gimli::DW_FORM_ref1
            | gimli::DW_FORM_ref2
            | gimli::DW_FORM_ref4
            | gimli::DW_FORM_ref8
            | gimli::DW_FORM_ref_udata => self.offset().map(UnitOffset),
            _ => None,
        }
    }

    fn offset(self) -> Option<usize> {
        usize::try_from(self.value).ok()
    }

    /// Returns the value if its form is a number.
    fn number(self) -> Option<u64> {
        match self.form {
            gimli::DW_FORM_data1
            | gimli::DW_FORM_data2
            | gimli::DW_FORM_data4
            | gimli::DW_FORM_data8
            | gimli::DW_FORM_udata => Some(self.value),
            gimli::DW_FORM_sdata | gimli::DW_FORM_implicit_const => {
                (self.value.cast_signed() >= 0).then_some(self.value)
            }
            _ => None,
        }
    }

    /// Returns the index into the address table.
    fn address_index(self) -> Option<DebugAddrIndex<usize>> {
        match self.form {
            gimli::DW_FORM_addrx
            | gimli::DW_FORM_addrx1
            | gimli::DW_FORM_addrx2
            | gimli::DW_FORM_addrx3
            | gimli::DW_FORM_addrx4
            | gimli::DW_FORM_GNU_addr_index => self.offset().map(DebugAddrIndex),
            _ => None,
        }
    }

    fn address(self, unit: UnitRef<'_, Bytes<'_>>) -> Option<u64> {
        match self.form {
            gimli::DW_FORM_addr => Some(self.value),
            _ => unit.address(self.address_index()?).ok(),
        }
    }
}

impl Attributes {
    #[inline]
    fn set(&mut self, slot: Slot, value: Raw) {
        let place = match slot {
            Slot::Low => &mut self.low,
            Slot::High => &mut self.high,
            Slot::Ranges => &mut self.ranges,
            Slot::Sibling => &mut self.sibling,
            Slot::Origin => &mut self.origin,
            Slot::CallFile => &mut self.call_file,
            Slot::CallLine => &mut self.call_line,
        };
        *place = Some(value);
    }

    /// Whether the entry may have code.
    pub fn has_code(&self) -> bool {
        self.ranges.is_some() || self.low.is_some()
    }

    /// Returns the entry's own first address: that of the function's hot part.
    pub fn entry(&self, unit: UnitRef<'_, Bytes<'_>>) -> Option<u64> {
        self.low?.address(unit)
    }

    /// Returns the start and end of its single address range, if it has one.
    pub fn range(&self, unit: UnitRef<'_, Bytes<'_>>) -> Option<(u64, u64)> {
        let low = self.low?.address(unit)?;
        let high = self.high?;
        let high = match high.number() {
            Some(size) => low.checked_add(size),
            None => high.address(unit),
        };
        Some((low, high?))
    }

    /// Returns the value that refers to its range list, if it has one.
    pub fn list<'a>(&self) -> Option<Value<'a>> {
        let ranges = self.ranges?;
        match ranges.form {
            gimli::DW_FORM_sec_offset | gimli::DW_FORM_data4 | gimli::DW_FORM_data8 => {
                Some(AttributeValue::RangeListsRef(RawRangeListsOffset(ranges.offset()?)))
            }
            gimli::DW_FORM_rnglistx => {
                Some(AttributeValue::DebugRngListsIndex(DebugRngListsIndex(ranges.offset()?)))
            }
            _ => None,
        }
    }

    /// Returns the function that an inlined call is a copy of.
    pub fn origin(&self) -> Option<Origin> {
        let origin = self.origin?;
        match origin.form {
            gimli::DW_FORM_ref_addr => origin.offset().map(DebugInfoOffset).map(Origin::Elsewhere),
            gimli::DW_FORM_GNU_ref_alt | gimli::DW_FORM_ref_sup4 | gimli::DW_FORM_ref_sup8 => {
                origin.offset().map(DebugInfoOffset).map(Origin::Shared)
            }
            _ => origin.in_unit().map(Origin::Here),
        }
    }

    /// Returns the call's file as a number in the unit's line table.
    pub fn call_file(&self) -> Option<u64> {
        self.call_file?.number()
    }

    /// Returns the call's line, 0 if not known.
    pub fn call_line(&self) -> u32 {
        let line = self.call_line.and_then(Raw::number).unwrap_or(0);
        u32::try_from(line).unwrap_or(0)
    }
}
