//! Names of procedure linkage table stubs: `memcpy@plt`, as perf and objdump write them.
//!
//! A stub jumps through a slot of the global offset table, and a relocation names the slot's function. The jump
//! instruction itself is decoded, which works for every layout of the table that linkers produce for x86-64 (psABI, "Procedure
//! Linkage Table"; with and without `endbr64`; `.plt.sec`; `.plt.got`) and for aarch64 (`aarch64`). Stubs of other processors are not named.

mod aarch64;

use std::collections::BTreeMap;
use std::rc::Rc;

use object::elf::{self, Rela64, SHT_DYNSYM, Sym64};
use object::{Endianness, pod};

use crate::elf::Image;
use crate::headers::Section;
use crate::strings::Strings;
use crate::symtab::Named;

/// Sections with stubs.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];

/// The stubs of a file, decoded on request.
#[derive(Debug)]
pub(crate) struct Plt {
    image: Rc<Image>,
    /// The slots, read with the first stub.
    slots: Option<Slots>,
    /// End and name of each stub, by first address.
    stubs: BTreeMap<u64, (u64, String)>,
}

impl Plt {
    /// Creates it for `image`.
    pub fn new(image: &Rc<Image>) -> Self {
        Self { image: Rc::clone(image), slots: None, stubs: BTreeMap::new() }
    }

    /// Returns the addresses where stubs may begin and end.
    pub fn boundaries(image: &Image) -> impl Iterator<Item = u64> {
        let sections = SECTIONS.iter().filter_map(|name| image.section(name));
        // Stubs have 8, 16, 24 or 32 bytes, and the table ends with the last.
        sections.flat_map(|section| {
            let end = section.address.saturating_add(section.size.min(image.len()));
            (section.address..=end).step_by(8)
        })
    }

    /// Returns the stub that contains `address`.
    pub fn find(&mut self, address: u64) -> Option<Named> {
        if !self.is_known() {
            return None;
        }
        if let Some((&start, (end, name))) = self.stubs.range(..=address).next_back()
            && address < *end
        {
            return Some(Named::new(name.clone(), start, *end));
        }
        let (start, end, name) = match self.image.machine {
            elf::EM_AARCH64 => self.read_aarch64(address)?,
            _ => self.read(address)?,
        };
        self.stubs.insert(start, (end, name.clone()));
        Some(Named::new(name, start, end))
    }

    /// Returns the function of a global offset table slot.
    pub fn slot(&mut self, address: u64) -> Option<String> {
        if !self.is_known() {
            return None;
        }
        let slots = self.slots.get_or_insert_with(|| Slots::read(&self.image));
        slots.at(address)
    }

    /// Whether its processor's stubs are decoded.
    fn is_known(&self) -> bool {
        matches!(self.image.machine, elf::EM_X86_64 | elf::EM_AARCH64) && self.image.form.is_64
    }

    /// Returns start, end and name of the stub at `address` in an aarch64 file.
    fn read_aarch64(&mut self, address: u64) -> Option<(u64, u64, String)> {
        let image = &self.image;
        let section = section_at(image, address)?;
        let end = section.address.saturating_add(section.size);
        let from = address.saturating_sub(aarch64::LONGEST).max(section.address) & !3;
        let bytes = image
            .read_address(from, end.min(address.saturating_add(2 * aarch64::LONGEST)).saturating_sub(from));
        let slots = self.slots.get_or_insert_with(|| Slots::read(image));
        let stub = aarch64::find(&bytes, from, address);
        if let Some((stub, name)) = stub.and_then(|stub| slots.at(stub.slot).map(|name| (stub, name))) {
            return Some((stub.start, stub.end, format!("{name}@plt")));
        }
        // The first stub calls the dynamic linker on behalf of the others.
        let first_end = section.address.saturating_add(aarch64::FIRST).min(end);
        let is_first = section.name == ".plt" && address < first_end;
        is_first.then(|| (section.address, first_end, ".plt".to_owned()))
    }

    /// Returns start, end and name of the stub at `address`.
    fn read(&mut self, address: u64) -> Option<(u64, u64, String)> {
        let image = &self.image;
        let section = section_at(image, address)?;
        let size = if section.name == ".plt.got" && section.entry_size == 8 { 8 } else { 16 };
        let start = address - (address - section.address) % size;
        let slots = self.slots.get_or_insert_with(|| Slots::read(image));
        let name = match slots.name(start, &image.read_address(start, size)) {
            Some(name) => format!("{name}@plt"),
            // The first stub calls the dynamic linker on behalf of the others.
            None if start == section.address && section.name == ".plt" => ".plt".to_owned(),
            None => return None,
        };
        Some((start, start.saturating_add(size), name))
    }
}

/// Returns the section with stubs that contains `address`.
fn section_at(image: &Image, address: u64) -> Option<&Section> {
    SECTIONS
        .iter()
        .filter_map(|name| image.section(name))
        .find(|section| (section.address..section.address.saturating_add(section.size)).contains(&address))
}

/// The function of each global offset table slot. Few of thousands are needed, so names are read on demand.
#[derive(Debug, Default)]
struct Slots {
    /// By address; if several have one address, the last.
    by_address: Vec<(u64, Target)>,
    /// Slots of `.rela.plt`, in order.
    in_order: Vec<Option<Target>>,
    strings: Strings,
}

/// The value that a relocation puts into a slot.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// The address of the symbol with the name at this offset of the strings.
    Named(u32),
    /// The result of the resolver function at this address of the file (an indirect function).
    Chosen(i64),
}

impl Slots {
    fn read(image: &Rc<Image>) -> Self {
        let symbols = image.section_of(SHT_DYNSYM);
        let strings = symbols.and_then(|symbols| image.sections.get(symbols.link));
        let read = |section: Option<&Section>| section.and_then(|section| image.read(section).ok());
        let strings = strings.and_then(|section| Strings::read(image, section).ok());
        let (Some(symbols), Some(strings)) = (read(symbols), strings) else { return Self::default() };
        let symbols: &[Sym64<Endianness>] = pod::slice_from_all_bytes(&symbols).unwrap_or_default();
        let endian = image.form.endian;
        let chosen =
            if image.machine == elf::EM_AARCH64 { elf::R_AARCH64_IRELATIVE } else { elf::R_X86_64_IRELATIVE };
        let mut slots = Self { strings, ..Self::default() };
        for table in [".rela.plt", ".rela.dyn"] {
            let Some(rows) = read(image.section(table)) else { continue };
            let rows: &[Rela64<Endianness>] = pod::slice_from_all_bytes(&rows).unwrap_or_default();
            for row in rows {
                let symbol = symbols.get(row.r_sym(endian, false) as usize);
                let target = match symbol.map_or(0, |symbol| symbol.st_name.get(endian)) {
                    0 if row.r_type(endian, false) == chosen => {
                        Some(Target::Chosen(row.r_addend.get(endian)))
                    }
                    0 => None,
                    name => Some(Target::Named(name)),
                };
                slots.by_address.extend(target.map(|target| (row.r_offset.get(endian), target)));
                if table == ".rela.plt" {
                    slots.in_order.push(target);
                }
            }
        }
        slots.by_address.sort_by_key(|&(address, _)| address);
        slots
    }

    /// Returns the name for the slot at an address.
    fn at(&self, address: u64) -> Option<String> {
        let behind = self.by_address.partition_point(|&(slot, _)| slot <= address);
        let &(slot, target) = self.by_address.get(behind.checked_sub(1)?)?;
        if slot == address { self.text(target) } else { None }
    }

    fn text(&self, target: Target) -> Option<String> {
        match target {
            Target::Named(name) => Some(self.strings.get(name.into())).filter(|name| !name.is_empty()),
            // Only the resolver is known (written as binutils and perf write it).
            Target::Chosen(address) => Some(format!("*ABS*+{address:#x}")),
        }
    }

    /// Returns the function that the stub at `start` jumps to.
    fn name(&self, start: u64, stub: &[u8]) -> Option<String> {
        const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
        let body = stub.strip_prefix(ENDBR64).unwrap_or(stub);
        // `push index`, before a jump to the first stub.
        if let Some(index) = body.strip_prefix(&[0x68]).and_then(word) {
            return self.text((*self.in_order.get(usize::try_from(index).ok()?)?)?);
        }
        // `jmp *slot(%rip)`, optionally with a `bnd` prefix.
        let jump = body.strip_prefix(&[0xf2]).unwrap_or(body);
        let offset = i64::from(word(jump.strip_prefix(&[0xff, 0x25])?)?);
        let length = (stub.len() - jump.len()) as u64 + 6;
        let slot = start.wrapping_add(length).wrapping_add_signed(offset);
        self.at(slot)
    }
}

fn word(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|word| i32::from_le_bytes(*word))
}
