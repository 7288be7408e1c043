//! The header of a perf.data file in file mode, with its attribute and feature sections.

use std::io::{Read, Seek, SeekFrom};

use linux_perf_event_reader::Endianness;

use super::attr::Attr;
use super::bytes::Bytes;
use super::error::{Loss, PerfDataError};
use super::event::EventDesc;
use super::features::Header;

/// Largest section that is read: the largest real ones are build id tables.
const SECTION_LIMIT: u64 = 64 << 20;

/// Size of the rest of `struct perf_file_header` after the magic and its own size: attribute size, three sections, feature bits.
const REST: u64 = 8 + 3 * 16 + 4 * 8;

/// A byte range of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub offset: u64,
    pub size: u64,
}

impl Section {
    fn parse(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(Section { offset: bytes.u64()?, size: bytes.u64()? })
    }

    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The file's first 16 bytes, which both modes have.
pub(super) struct Magic {
    pub endian: Endianness,
    /// Size of the header: 16 in pipe mode.
    pub size: u64,
}

impl Magic {
    pub(super) const BYTES: u64 = 16;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let endian = match bytes.get(..8)? {
            b"PERFILE2" => Endianness::LittleEndian,
            b"2ELIFREP" => Endianness::BigEndian,
            _ => return None,
        };
        Some(Magic { endian, size: Bytes::new(&bytes[8..], endian).u64()? })
    }
}

/// Reads the bytes of `section` that the file has, at most [`SECTION_LIMIT`].
pub(super) fn section<R: Read + Seek>(input: &mut R, section: Section) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(section.offset))?;
    input.take(section.size.min(SECTION_LIMIT)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the header after the magic, and everything that it refers to except the data.
/// Returns the position of the data: up to the end of the file if the recorder was killed before it could write it.
pub(super) fn read<R: Read + Seek>(
    input: &mut R,
    endian: Endianness,
    file_size: u64,
    loss: &mut Loss,
) -> Result<(Header, Section), PerfDataError> {
    let failed = |offset| move |error| PerfDataError::Input { offset, error };
    let bytes = section(input, Section { offset: Magic::BYTES, size: REST }).map_err(failed(Magic::BYTES))?;
    let mut bytes = Bytes::new(&bytes, endian);
    let cut_off =
        || PerfDataError::Header { offset: file_size, message: "the file ends in its header".into() };
    let attr_size = bytes.u64().ok_or_else(cut_off)?;
    let attrs = Section::parse(&mut bytes).ok_or_else(cut_off)?;
    let mut data = Section::parse(&mut bytes).ok_or_else(cut_off)?;
    Section::parse(&mut bytes).ok_or_else(cut_off)?; // event types, not written since Linux 3.7
    let features: Vec<u64> = std::iter::from_fn(|| bytes.u64()).collect();

    let mut header = Header { events: events(input, attrs, attr_size, endian)?, ..Header::default() };
    if data.offset > file_size {
        let message = format!("the data should begin at {}, beyond the end of the file", data.offset);
        return Err(PerfDataError::Header { offset: 40, message });
    }
    if data.size == 0 {
        data.size = file_size - data.offset;
        loss.warn(
            "perf record did not end properly: facts about the machine and build ids are missing".into(),
        );
    } else if data.end() > file_size {
        loss.warn(format!(
            "the file is cut off: its data should end at offset {}, but it has {file_size} bytes; facts about the \
             machine and build ids are missing too",
            data.end()
        ));
    } else {
        read_features(input, &features, data.end(), endian, &mut header, loss);
    }
    Ok((header, data))
}

/// Reads the events from the attribute section: entries of `attr_size` bytes that end with the section of their ids.
fn events<R: Read + Seek>(
    input: &mut R,
    attrs: Section,
    attr_size: u64,
    endian: Endianness,
) -> Result<Vec<EventDesc>, PerfDataError> {
    let failed = |error| PerfDataError::Input { offset: attrs.offset, error };
    let wrong = |message: &str| PerfDataError::Header { offset: attrs.offset, message: message.into() };
    let bytes = section(input, attrs).map_err(failed)?;
    let entry = usize::try_from(attr_size).ok().filter(|&size| (16 + 64..=1 << 16).contains(&size));
    let entry = entry.ok_or_else(|| wrong("attributes of an impossible size"))?;
    let mut events = Vec::new();
    for chunk in bytes.chunks_exact(entry) {
        let (attr, ids) = chunk.split_at(entry - 16);
        let attr = Attr::parse(attr, endian).ok_or_else(|| wrong("an attribute that can't be"))?;
        let ids = Section::parse(&mut Bytes::new(ids, endian)).ok_or_else(|| wrong("no ids"))?;
        let ids = section(input, ids).map_err(failed)?;
        let mut ids = Bytes::new(&ids, endian);
        events.push(EventDesc::new(attr, std::iter::from_fn(|| ids.u64()).collect()));
    }
    match events.is_empty() {
        true => Err(wrong("no events")),
        false => Ok(events),
    }
}

/// Reads the feature sections, whose positions are listed after the data in the order of the features' bits.
fn read_features<R: Read + Seek>(
    input: &mut R,
    features: &[u64],
    offset: u64,
    endian: Endianness,
    header: &mut Header,
    loss: &mut Loss,
) {
    let bits =
        (0..features.len() as u32 * 64).filter(|bit| features[*bit as usize / 64] >> (bit % 64) & 1 == 1);
    let list = section(input, Section { offset, size: 256 * 16 }).unwrap_or_default();
    let mut list = Bytes::new(&list, endian);
    for feature in bits {
        let Some(place) = Section::parse(&mut list) else {
            loss.warn(format!("at offset {offset}: the list of header sections is cut off"));
            return;
        };
        if !Header::wants(feature) {
            continue;
        }
        let read = section(input, place).ok().filter(|bytes| bytes.len() as u64 == place.size);
        if read.and_then(|bytes| header.feature(feature, &bytes, endian)).is_none() {
            loss.warn(format!("at offset {}: header section {feature} is damaged", place.offset));
        }
    }
}
