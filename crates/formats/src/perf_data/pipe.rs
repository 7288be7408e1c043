//! Records that perf itself writes, not the kernel: in pipe mode they are the header.

use linux_perf_event_reader::Endianness;

use super::attr::Attr;
use super::bytes::{Bytes, text};
use super::event::EventDesc;
use super::features::Header;

/// `PERF_RECORD_*` of tools/lib/perf/include/perf/event.h.
const HEADER_ATTR: u32 = 64;
const HEADER_BUILD_ID: u32 = 67;
pub(super) const FINISHED_ROUND: u32 = 68;
const EVENT_UPDATE: u32 = 78;
const HEADER_FEATURE: u32 = 80;
/// The first record type of perf itself (`PERF_RECORD_USER_TYPE_START`).
pub(super) const FIRST_OWN: u32 = 64;

/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// Largest number of events in a recording; a file that claims more is damaged.
const EVENTS: usize = 4096;

/// The effect of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// Nothing of interest.
    Nothing,
    /// A metadata value was set.
    Fact,
    /// An event was added.
    Event,
}

/// Processes one of perf's own records. `None` if it is damaged.
pub(super) fn record(
    header: &mut Header,
    kind: u32,
    misc: u16,
    body: &[u8],
    endian: Endianness,
) -> Option<Told> {
    let mut bytes = Bytes::new(body, endian);
    match kind {
        HEADER_ATTR => {
            let attr = Attr::parse(body, endian)?;
            bytes.skip(attr.size)?;
            let ids: Vec<u64> = std::iter::from_fn(|| bytes.u64()).collect();
            // File mode repeats the header's contents.
            if header.events.iter().any(|event| !ids.is_empty() && event.ids == ids) {
                return Some(Told::Nothing);
            }
            if header.events.len() >= EVENTS {
                return None;
            }
            header.events.push(EventDesc::new(attr, ids));
            Some(Told::Event)
        }
        HEADER_BUILD_ID => header.build_id(misc, body).map(|()| Told::Fact),
        HEADER_FEATURE => {
            let feature = u32::try_from(bytes.u64()?).ok()?;
            header.feature(feature, bytes.rest(), endian).map(|()| Told::Fact)
        }
        EVENT_UPDATE => {
            let (what, id) = (bytes.u64()?, bytes.u64()?);
            let event = header.events.iter_mut().find(|event| event.ids.contains(&id));
            match event.filter(|_| what == UPDATE_NAME) {
                Some(event) => {
                    event.set_name(text(bytes.rest()));
                    Some(Told::Fact)
                }
                None => Some(Told::Nothing),
            }
        }
        _ => Some(Told::Nothing),
    }
}
