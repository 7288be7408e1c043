//! Entry layouts, prepared for fast skipping: one [`Shape`] per abbreviation.
//!
//! Of a million entries of a unit a few thousand matter. Unneeded attributes of known size are
//! added up, so that skipping most entries takes an addition or two.
//!
//! Elsewhere: the meaning of attributes (`entries`).

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{Abbreviations, AttributeSpecification, DwForm, DwTag, UnitHeader};

use crate::dwarf::bytes::Bytes;

/// Abbreviations with codes up to this are found by index; no compiler has as many.
const DENSE: usize = 1 << 14;

/// The layout of an abbreviation.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Tag of the entries.
    pub tag: DwTag,
    /// Whether the entries have children.
    pub has_children: bool,
    /// The steps to skip or read the attributes.
    pub steps: Box<[Step]>,
}

/// A step over attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Total size of one or more attributes.
    Bytes(usize),
    /// A LEB128 number.
    Leb,
    /// NUL-terminated text.
    Text,
    /// Bytes after a length field of this size.
    Block(usize),
    /// Bytes after a LEB128 length field.
    LebBlock,
    /// The form of the attribute is stored in the entry.
    Indirect(AttributeSpecification),
    /// A wanted attribute.
    Take(Slot, Form),
}

/// The wanted attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Low,
    High,
    Ranges,
    Sibling,
    Origin,
    CallFile,
    CallLine,
}

/// The form of a wanted attribute and the encoding of its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// `DW_FORM_*`.
    pub form: DwForm,
    /// Encoding of its value.
    pub stored: Stored,
}

/// The encoding of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    /// In this many bytes.
    Bytes(usize),
    Uleb,
    Sleb,
    /// In the abbreviation.
    Here(i64),
}

/// The layouts of a unit's abbreviations, each prepared on first use.
pub(crate) struct Shapes {
    abbreviations: Arc<Abbreviations>,
    dense: Vec<Option<Option<Arc<Shape>>>>,
    sparse: HashMap<u64, Option<Arc<Shape>>>,
}

impl Shapes {
    /// Starts with none prepared.
    pub fn new(abbreviations: &Arc<Abbreviations>) -> Self {
        Self { abbreviations: Arc::clone(abbreviations), dense: Vec::new(), sparse: HashMap::new() }
    }

    /// Returns the layout of the abbreviation with a code; `None` if there is none, or one that cannot be read.
    #[inline]
    pub fn get(&mut self, code: u64, header: &UnitHeader<Bytes<'_>>) -> Option<&Shape> {
        let index = usize::try_from(code).unwrap_or(usize::MAX);
        if index < DENSE {
            if index >= self.dense.len() {
                self.dense.resize(index + 1, None);
            }
            let slot = &mut self.dense[index];
            if slot.is_none() {
                *slot = Some(shape(&self.abbreviations, code, header).map(Arc::new));
            }
            return slot.as_ref()?.as_deref();
        }
        let make = || shape(&self.abbreviations, code, header).map(Arc::new);
        self.sparse.entry(code).or_insert_with(make).as_deref()
    }
}

fn shape(abbreviations: &Abbreviations, code: u64, header: &UnitHeader<Bytes<'_>>) -> Option<Shape> {
    let abbreviation = abbreviations.get(code)?;
    let (tag, has_children) = (abbreviation.tag(), abbreviation.has_children());
    let mut steps = Vec::new();
    for spec in abbreviation.attributes() {
        let step = step(spec, tag, header)?;
        match (steps.last_mut(), step) {
            (_, Step::Bytes(0)) => {}
            (Some(Step::Bytes(before)), Step::Bytes(more)) => *before += more,
            (_, step) => steps.push(step),
        }
    }
    Some(Shape { tag, has_children, steps: steps.into() })
}

/// Returns the step over an attribute whose form is stored in the entry.
pub(crate) fn indirect(
    spec: &AttributeSpecification,
    form: u64,
    tag: DwTag,
    header: &UnitHeader<Bytes<'_>>,
) -> Option<Step> {
    let form = DwForm(u16::try_from(form).ok()?);
    if form == gimli::DW_FORM_indirect || form == gimli::DW_FORM_implicit_const {
        return None;
    }
    step(&AttributeSpecification::new(spec.name(), form, None), tag, header)
}

/// Returns the step over an attribute of an entry with this `tag`; `None` for an unknown form.
fn step(spec: &AttributeSpecification, tag: DwTag, header: &UnitHeader<Bytes<'_>>) -> Option<Step> {
    let size = spec.size(header);
    if let Some(slot) = slot(spec, tag)
        && let Some(stored) = stored(spec, size)
    {
        return Some(Step::Take(slot, Form { form: spec.form(), stored }));
    }
    Some(match (size, spec.form()) {
        (Some(size), _) => Step::Bytes(size),
        (None, gimli::DW_FORM_string) => Step::Text,
        (None, gimli::DW_FORM_block1) => Step::Block(1),
        (None, gimli::DW_FORM_block2) => Step::Block(2),
        (None, gimli::DW_FORM_block4) => Step::Block(4),
        (None, gimli::DW_FORM_block | gimli::DW_FORM_exprloc) => Step::LebBlock,
        (None, gimli::DW_FORM_indirect) => Step::Indirect(*spec),
        (
            None,
            gimli::DW_FORM_sdata
            | gimli::DW_FORM_udata
            | gimli::DW_FORM_ref_udata
            | gimli::DW_FORM_strx
            | gimli::DW_FORM_addrx
            | gimli::DW_FORM_loclistx
            | gimli::DW_FORM_rnglistx
            | gimli::DW_FORM_GNU_addr_index
            | gimli::DW_FORM_GNU_str_index,
        ) => Step::Leb,
        _ => return None,
    })
}

/// Returns which wanted attribute this is: of units, functions, inlined calls, and sibling references.
fn slot(spec: &AttributeSpecification, tag: DwTag) -> Option<Slot> {
    let name = spec.name();
    if name == gimli::DW_AT_sibling {
        return Some(Slot::Sibling);
    }
    let is_inlined = tag == gimli::DW_TAG_inlined_subroutine;
    let is_unit = [gimli::DW_TAG_compile_unit, gimli::DW_TAG_skeleton_unit].contains(&tag);
    if !is_inlined && !is_unit && tag != gimli::DW_TAG_subprogram {
        return None;
    }
    match name {
        gimli::DW_AT_low_pc => Some(Slot::Low),
        gimli::DW_AT_high_pc => Some(Slot::High),
        gimli::DW_AT_ranges => Some(Slot::Ranges),
        gimli::DW_AT_abstract_origin if is_inlined => Some(Slot::Origin),
        gimli::DW_AT_call_file if is_inlined => Some(Slot::CallFile),
        gimli::DW_AT_call_line if is_inlined => Some(Slot::CallLine),
        _ => None,
    }
}

/// Returns the encoding of a wanted attribute's value; `None` for a form that none of them has.
fn stored(spec: &AttributeSpecification, size: Option<usize>) -> Option<Stored> {
    if let Some(value) = spec.implicit_const_value() {
        return Some(Stored::Here(value));
    }
    match (size, spec.form()) {
        (Some(size @ 1..=8), _) => Some(Stored::Bytes(size)),
        (None, gimli::DW_FORM_sdata) => Some(Stored::Sleb),
        (
            None,
            gimli::DW_FORM_udata
            | gimli::DW_FORM_ref_udata
            | gimli::DW_FORM_addrx
            | gimli::DW_FORM_rnglistx
            | gimli::DW_FORM_GNU_addr_index,
        ) => Some(Stored::Uleb),
        _ => None,
    }
}
