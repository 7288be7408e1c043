//! Turns stored records into records of an event: the layout, the event's id and the counters of groups.

use std::collections::HashMap;

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{
    AttrFlags, Endianness, RawData, RecordParseInfo, RecordType, SampleFormat, get_record_id,
    get_record_identifier, get_record_timestamp,
};

use super::error::Loss;
use super::features::Header;
use super::layout::{Counter, Layout};
use super::pipe::{self, Told};
use super::rounds::Rounds;
use super::stream::Head;

/// The location of the event id in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IdPlace {
    /// There is only one event.
    OnlyOne,
    /// All events have the id in the same place: that of the first.
    Same,
    /// Samples begin with it; other records end with it if `all` is set.
    Identifier { all: bool },
    /// Unknown: all records belong to the first event.
    None,
}

/// A record waiting to be sorted.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub kind: RecordType,
    pub misc: u16,
    pub event: usize,
    /// The event whose layout the record has: in a group, the one that fired.
    layout: usize,
}

/// The events of a recording, and what is needed to read their records.
pub(super) struct Decoder {
    pub header: Header,
    pub loss: Loss,
    endian: Endianness,
    layouts: Vec<Layout>,
    id_place: IdPlace,
    event_of: HashMap<u64, usize>,
    /// The value of each counter in the last sample with it.
    counters: HashMap<u64, u64>,
}

impl Decoder {
    pub(super) fn new(header: Header, loss: Loss, endian: Endianness) -> Self {
        let mut decoder = Decoder {
            header,
            loss,
            endian,
            layouts: Vec::new(),
            id_place: IdPlace::OnlyOne,
            event_of: HashMap::new(),
            counters: HashMap::new(),
        };
        decoder.events_changed();
        decoder
    }

    pub(super) fn endian(&self) -> Endianness {
        self.endian
    }

    /// Returns the parse information for a record.
    pub(super) fn info(&self, record: &Waiting) -> Option<RecordParseInfo> {
        Some(self.layouts.get(record.layout)?.info_for(record.kind))
    }

    /// Processes a record of perf itself.
    pub(super) fn own_record(&mut self, head: Head, body: &[u8]) {
        match pipe::record(&mut self.header, head.kind, head.misc, body, self.endian) {
            Some(Told::Event) => self.events_changed(),
            Some(Told::Fact | Told::Nothing) => {}
            None => self.loss.damaged(head.offset, &format!("a damaged record of type {}", head.kind)),
        }
    }

    /// Adds a record of the kernel to `rounds`.
    pub(super) fn kernel_record(&mut self, head: Head, mut body: Vec<u8>, rounds: &mut Rounds<Waiting>) {
        let kind = RecordType(head.kind);
        let event = self.event_of(kind, &body);
        let Some((event, layout)) = event.and_then(|event| Some((event, self.layouts.get(event)?))) else {
            self.loss.damaged(head.offset, "a record of an event that the file does not describe");
            return rounds.recycle(body);
        };
        let data = RawData::from(body.as_slice());
        let time = match self.endian {
            Endianness::LittleEndian => get_record_timestamp::<LittleEndian>(kind, data, &layout.info),
            Endianness::BigEndian => get_record_timestamp::<BigEndian>(kind, data, &layout.info),
        };
        let counters = match kind == RecordType::SAMPLE && layout.has_counters() {
            true => layout.counters(&body),
            false => None,
        };
        if let Err(message) = layout.normalise(kind, head.misc, &mut body) {
            self.loss.damaged(head.offset, message);
            return rounds.recycle(body);
        }
        let waiting = Waiting { kind, misc: head.misc, event, layout: event };
        match counters {
            Some(counters) => self.group_sample(time, waiting, &counters, &body, rounds),
            None => rounds.add(time, waiting, body),
        }
    }

    /// Creates a sample for each event of a group whose counter has changed, with the change as its period, as perf does.
    fn group_sample(
        &mut self,
        time: Option<u64>,
        waiting: Waiting,
        counters: &[Counter],
        body: &[u8],
        rounds: &mut Rounds<Waiting>,
    ) {
        for counter in counters {
            let last = match counter.id {
                Some(id) => self.counters.insert(id, counter.value).unwrap_or(0),
                None => 0,
            };
            let event =
                counter.id.and_then(|id| self.event_of.get(&id)).map_or(waiting.event, |event| *event);
            let period = counter.value.wrapping_sub(last);
            let (true, Some(layout)) = (period > 0, self.layouts.get(waiting.layout)) else { continue };
            let mut copy = rounds.buffer();
            copy.clear();
            copy.extend_from_slice(body);
            layout.set_period(&mut copy, period);
            rounds.add(time, Waiting { event, ..waiting }, copy);
        }
    }

    /// Returns the index of the event that a record belongs to.
    fn event_of(&self, kind: RecordType, body: &[u8]) -> Option<usize> {
        let data = RawData::from(body);
        let id = match (self.id_place, self.endian) {
            (IdPlace::OnlyOne | IdPlace::None, _) => return Some(0),
            (IdPlace::Same, Endianness::LittleEndian) => {
                get_record_id::<LittleEndian>(kind, data, &self.layouts.first()?.info.id_parse_info)
            }
            (IdPlace::Same, Endianness::BigEndian) => {
                get_record_id::<BigEndian>(kind, data, &self.layouts.first()?.info.id_parse_info)
            }
            (IdPlace::Identifier { all }, Endianness::LittleEndian) => {
                get_record_identifier::<LittleEndian>(kind, data, all)
            }
            (IdPlace::Identifier { all }, Endianness::BigEndian) => {
                get_record_identifier::<BigEndian>(kind, data, all)
            }
        };
        match id.map(|id| self.event_of.get(&id).copied()) {
            Some(Some(event)) => Some(event),
            // Records synthesized by perf, such as earlier mappings, have no id.
            _ if kind != RecordType::SAMPLE => Some(0),
            Some(None) if id != Some(0) => None,
            _ => Some(0),
        }
    }

    /// Updates everything that depends on the events.
    fn events_changed(&mut self) {
        let endian = self.endian;
        let events = &self.header.events;
        for event in events.iter().skip(self.layouts.len()) {
            let number = self.layouts.len();
            self.layouts.push(Layout::new(&event.raw, endian));
            self.event_of.extend(event.ids.iter().map(|&id| (id, number)));
        }
        let mut places = self.layouts.iter().map(|layout| layout.info.id_parse_info);
        let first = places.next();
        self.id_place = if events.len() <= 1 {
            IdPlace::OnlyOne
        } else if first.is_some_and(|first| {
            first.sample_record_id_offset_from_start.is_some() && places.all(|place| place == first)
        }) {
            IdPlace::Same
        } else if events.iter().all(|event| event.attr.sample_format.contains(SampleFormat::IDENTIFIER)) {
            let all = events.iter().all(|event| event.attr.flags.contains(AttrFlags::SAMPLE_ID_ALL));
            IdPlace::Identifier { all }
        } else {
            IdPlace::None
        };
    }
}
