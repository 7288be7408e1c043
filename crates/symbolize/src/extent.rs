//! Bounds of functions without a symbol, from the unwind information, which survives stripping.

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection,
};
use object::Endianness;

use crate::elf::Image;
use crate::file::Images;

/// Returns the first address, and one past the last, of the unwind entry that covers `address`.
pub(crate) fn extent(images: &Images, address: u64) -> Option<(u64, u64)> {
    let debug = images.debug.as_ref();
    let found = [Some(&images.image), debug].into_iter().flatten();
    found.filter(|image| image.form.endian == Endianness::Little).find_map(|image| of_image(image, address))
}

/// Returns the start addresses of all unwind entries, sorted.
pub(crate) fn starts(image: &Image) -> Vec<u64> {
    if image.form.endian != Endianness::Little {
        return Vec::new();
    }
    let bases = bases(image);
    let Some(bytes) = image.debug_section(".eh_frame").and_then(|section| image.read(section).ok()) else {
        return Vec::new();
    };
    let mut section = EhFrame::new(&bytes, LittleEndian);
    section.set_address_size(if image.form.is_64 { 8 } else { 4 });
    let mut entries = section.entries(&bases);
    let mut starts = Vec::new();
    // Damaged data ends the list; each entry consumes bytes of the file, so the loop ends.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(entry) = partial.parse(EhFrame::cie_from_offset) {
            starts.push(entry.initial_address());
        }
    }
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Largest unwind information that is used, in bytes: it stays in memory as long as the file's symbols.
const MOST: u64 = 16 << 20;

/// The unwind information of a file with its search table.
#[derive(Debug)]
pub(crate) struct Extents {
    table: Vec<u8>,
    entries: Vec<u8>,
    bases: BaseAddresses,
    address_size: u8,
}

impl Extents {
    /// Reads that of an image; `None` if it has none, or no search table, or it is too large.
    pub fn read(image: &Image) -> Option<Self> {
        let (table, entries) = (image.section(".eh_frame_hdr")?, image.section(".eh_frame")?);
        if image.form.endian != Endianness::Little || table.size.saturating_add(entries.size) > MOST {
            return None;
        }
        let bases = bases(image).set_eh_frame_hdr(table.address);
        let (table, entries) = (image.read(table).ok()?, image.read(entries).ok()?);
        Some(Self { table, entries, bases, address_size: if image.form.is_64 { 8 } else { 4 } })
    }

    /// Returns the start of the unwind entry that covers `address`.
    pub fn start(&self, address: u64) -> Option<u64> {
        let table = EhFrameHdr::new(&self.table, LittleEndian).parse(&self.bases, self.address_size).ok()?;
        let mut entries = EhFrame::from(EndianSlice::new(&self.entries, LittleEndian));
        entries.set_address_size(self.address_size);
        let entry =
            table.table()?.fde_for_address(&entries, &self.bases, address, EhFrame::cie_from_offset).ok()?;
        entry.contains(address).then(|| entry.initial_address())
    }
}

fn of_image(image: &Image, address: u64) -> Option<(u64, u64)> {
    let size = if image.form.is_64 { 8 } else { 4 };
    let bases = bases(image);
    let read = |name: &str| image.read(image.debug_section(name)?).ok();
    let loaded = read(".eh_frame").and_then(|bytes| {
        let mut section = EhFrame::new(&bytes, LittleEndian);
        section.set_address_size(size);
        let entry = section.fde_for_address(&bases, address, EhFrame::cie_from_offset).ok()?;
        Some((entry.initial_address(), entry.end_address()))
    });
    loaded.or_else(|| {
        let bytes = read(".debug_frame")?;
        let mut section = DebugFrame::new(&bytes, LittleEndian);
        section.set_address_size(size);
        let entry = section.fde_for_address(&bases, address, DebugFrame::cie_from_offset).ok()?;
        Some((entry.initial_address(), entry.end_address()))
    })
}

fn bases(image: &Image) -> BaseAddresses {
    let mut bases = BaseAddresses::default();
    for section in &image.sections {
        match section.name.as_str() {
            ".text" => bases = bases.set_text(section.address),
            ".eh_frame" => bases = bases.set_eh_frame(section.address),
            ".got" => bases = bases.set_got(section.address),
            _ => {}
        }
    }
    bases
}
