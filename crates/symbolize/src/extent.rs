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
    let mut starts: Vec<u64> = entries(image).into_iter().map(|(start, _)| start).collect();
    starts.dedup();
    starts
}

/// Returns start and end of each unwind entry, sorted by start.
pub(crate) fn entries(image: &Image) -> Vec<(u64, u64)> {
    if image.form.endian != Endianness::Little {
        return Vec::new();
    }
    let Some(bytes) = image.debug_section(".eh_frame").and_then(|section| image.read(section).ok()) else {
        return Vec::new();
    };
    let address_size = if image.form.is_64 { 8 } else { 4 };
    listed(&bytes, &bases(image), address_size)
}

/// Largest unwind information that is used, in bytes: it stays in memory as long as the file's symbols.
const MOST: u64 = 16 << 20;

/// Most entries that are kept of a file without a search table.
const MOST_ENTRIES: usize = 1 << 20;

/// The bounds of functions by the unwind information of a file.
#[derive(Debug)]
pub(crate) enum Extents {
    /// The unwind information with its search table.
    Searched { table: Vec<u8>, entries: Vec<u8>, bases: BaseAddresses, address_size: u8 },
    /// Start and end of each entry, sorted: static executables have no search table.
    Listed(Vec<(u64, u64)>),
}

impl Extents {
    /// Reads that of an image; `None` if it has none, or it is too large.
    pub fn read(image: &Image) -> Option<Self> {
        let entries = image.section(".eh_frame")?;
        let table = image.section(".eh_frame_hdr");
        let size = table.map_or(0, |table| table.size).saturating_add(entries.size);
        if image.form.endian != Endianness::Little || size > MOST {
            return None;
        }
        let address_size = if image.form.is_64 { 8 } else { 4 };
        let bases = bases(image);
        let entries = image.read(entries).ok()?;
        let Some(table) = table else { return Some(Self::Listed(listed(&entries, &bases, address_size))) };
        let bases = bases.set_eh_frame_hdr(table.address);
        Some(Self::Searched { table: image.read(table).ok()?, entries, bases, address_size })
    }

    /// Returns the start of the unwind entry that covers `address`.
    pub fn start(&self, address: u64) -> Option<u64> {
        match self {
            Self::Searched { table, entries, bases, address_size } => {
                let table = EhFrameHdr::new(table, LittleEndian).parse(bases, *address_size).ok()?;
                let mut entries = EhFrame::from(EndianSlice::new(entries, LittleEndian));
                entries.set_address_size(*address_size);
                let entry = table
                    .table()?
                    .fde_for_address(&entries, bases, address, EhFrame::cie_from_offset)
                    .ok()?;
                entry.contains(address).then(|| entry.initial_address())
            }
            Self::Listed(entries) => {
                let before = entries.partition_point(|&(start, _)| start <= address);
                entries[..before].last().filter(|&&(_, end)| address < end).map(|&(start, _)| start)
            }
        }
    }
}

/// Start and end of each entry, sorted. Damaged data ends the list.
fn listed(bytes: &[u8], bases: &BaseAddresses, address_size: u8) -> Vec<(u64, u64)> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(address_size);
    let mut entries = section.entries(bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(entry) = partial.parse(EhFrame::cie_from_offset) {
            found.push((entry.initial_address(), entry.end_address()));
        }
        if found.len() == MOST_ENTRIES {
            break;
        }
    }
    found.sort_unstable();
    found
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
