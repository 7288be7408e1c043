//! Opens a perf.data file and returns the kernel's records sorted by time.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{
    AttrFlags, Endianness, RawData, RawEventRecord, RecordType, SampleFormat, get_record_id,
    get_record_identifier, get_record_timestamp,
};

use super::error::{Loss, ReadError};
use super::event::EventDesc;
use super::features::Header;
use super::header::{self, Magic, Section};
use super::layout::{Counter, Layout};
use super::pipe::{self, FINISHED_ROUND, FIRST_OWN, Told};
use super::rounds::Rounds;
use super::stream::{Head, Stream};

/// A kernel record.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Index of its event in `events`.
    pub event: usize,
    /// All events known so far, as in [`Header::events`]: in pipe mode more may follow.
    pub events: &'a [EventDesc],
    /// The record. Parsing it may fail but not panic.
    pub raw: RawEventRecord<'a>,
}

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
struct Waiting {
    kind: RecordType,
    misc: u16,
    event: usize,
    /// The event whose layout the record has: in a group, the one that fired.
    layout: usize,
}

/// An opened perf.data file.
pub struct PerfData<R> {
    header: Header,
    loss: Loss,
    stream: Stream<R>,
    layouts: Vec<Layout>,
    id_place: IdPlace,
    event_of: HashMap<u64, usize>,
    rounds: Rounds<Waiting>,
    /// The value of each counter in the last sample with it.
    counters: HashMap<u64, u64>,
    at_end: bool,
    current: Vec<u8>,
}

impl<R: Read + Seek> PerfData<R> {
    /// Opens a perf.data file, in file mode or in pipe mode (`perf record -o -`).
    ///
    /// Memory is bounded by the ring buffers that perf drained in one round, not by the file.
    pub fn open(mut input: R) -> Result<Self, ReadError> {
        let failed = |error| ReadError::Input { offset: 0, error };
        let size = input.seek(SeekFrom::End(0)).map_err(failed)?;
        let start = header::section(&mut input, Section { offset: 0, size: Magic::BYTES }).map_err(failed)?;
        let magic = Magic::parse(&start).ok_or(ReadError::NotPerfData)?;
        let mut loss = Loss::default();
        let (header, data) = if magic.size == Magic::BYTES {
            // In pipe mode the recorder cannot know where the data ends.
            (Header::default(), Section { offset: Magic::BYTES, size: size.saturating_sub(Magic::BYTES) })
        } else {
            header::read(&mut input, magic.endian, size, &mut loss)?
        };
        input.seek(SeekFrom::Start(data.offset)).map_err(failed)?;
        let mut perf_data = PerfData {
            header,
            loss,
            stream: Stream::new(input, magic.endian, data.offset, data.end()),
            layouts: Vec::new(),
            id_place: IdPlace::OnlyOne,
            event_of: HashMap::new(),
            rounds: Rounds::new(),
            counters: HashMap::new(),
            at_end: false,
            current: Vec::new(),
        };
        perf_data.events_changed();
        // In pipe mode the first records describe the events.
        perf_data.fill();
        if perf_data.header.events.is_empty() {
            return Err(ReadError::Header { offset: Magic::BYTES, message: "it describes no events".into() });
        }
        Ok(perf_data)
    }

    /// Returns the file's metadata. In pipe mode it may change until the end.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns what could not be read so far.
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// Returns the next record by time; `None` at the end. Damage ends the reading or skips records, and is counted in
    /// [`PerfData::loss`].
    pub fn next_record(&mut self) -> Option<Record<'_>> {
        let mut next = self.rounds.next();
        while next.is_none() && !self.at_end {
            self.fill();
            next = self.rounds.next();
        }
        let (Waiting { kind: record_type, misc, event, layout }, body) = next?;
        self.rounds.recycle(std::mem::replace(&mut self.current, body));
        let parse_info = self.layouts.get(layout)?.info_for(record_type);
        let data = RawData::from(self.current.as_slice());
        Some(Record {
            event,
            events: &self.header.events,
            raw: RawEventRecord { record_type, misc, data, parse_info },
        })
    }

    /// Reads until the end of a round or of the data.
    fn fill(&mut self) {
        loop {
            let mut body = self.rounds.buffer();
            let Some(head) = self.stream.next(&mut body, &mut self.loss) else {
                self.rounds.finish();
                self.at_end = true;
                return;
            };
            if head.kind == FINISHED_ROUND {
                self.rounds.recycle(body);
                self.rounds.finish_round();
                return;
            }
            if head.kind >= FIRST_OWN {
                self.own_record(head, &body);
                self.rounds.recycle(body);
            } else {
                self.kernel_record(head, body);
                // So much is waiting that some records had to be released before the round's end.
                if self.rounds.has_ready() {
                    return;
                }
            }
        }
    }

    fn own_record(&mut self, head: Head, body: &[u8]) {
        let endian = self.stream.endian();
        match pipe::record(&mut self.header, head.kind, head.misc, body, endian) {
            Some(Told::Event) => self.events_changed(),
            Some(Told::Fact | Told::Nothing) => {}
            None => self.loss.damaged(head.offset, &format!("a damaged record of type {}", head.kind)),
        }
    }

    fn kernel_record(&mut self, head: Head, mut body: Vec<u8>) {
        let kind = RecordType(head.kind);
        let event = self.event_of(kind, &body);
        let Some((event, layout)) = event.and_then(|event| Some((event, self.layouts.get(event)?))) else {
            self.loss.damaged(head.offset, "a record of an event that the file does not describe");
            return self.rounds.recycle(body);
        };
        let data = RawData::from(body.as_slice());
        let time = match self.stream.endian() {
            Endianness::LittleEndian => get_record_timestamp::<LittleEndian>(kind, data, &layout.info),
            Endianness::BigEndian => get_record_timestamp::<BigEndian>(kind, data, &layout.info),
        };
        let counters = match kind == RecordType::SAMPLE && layout.has_counters() {
            true => layout.counters(&body),
            false => None,
        };
        if let Err(message) = layout.normalise(kind, head.misc, &mut body) {
            self.loss.damaged(head.offset, message);
            return self.rounds.recycle(body);
        }
        let waiting = Waiting { kind, misc: head.misc, event, layout: event };
        match counters {
            Some(counters) => self.group_sample(time, waiting, &counters, &body),
            None => self.rounds.add(time, waiting, body),
        }
    }

    /// Creates a sample for each event of a group whose counter has changed, with the change as its period, as perf does.
    fn group_sample(&mut self, time: Option<u64>, waiting: Waiting, counters: &[Counter], body: &[u8]) {
        for counter in counters {
            let last = match counter.id {
                Some(id) => self.counters.insert(id, counter.value).unwrap_or(0),
                None => 0,
            };
            let event =
                counter.id.and_then(|id| self.event_of.get(&id)).map_or(waiting.event, |event| *event);
            let period = counter.value.wrapping_sub(last);
            let (true, Some(layout)) = (period > 0, self.layouts.get(waiting.layout)) else { continue };
            let mut copy = self.rounds.buffer();
            copy.clear();
            copy.extend_from_slice(body);
            layout.set_period(&mut copy, period);
            self.rounds.add(time, Waiting { event, ..waiting }, copy);
        }
    }

    /// Returns the index of the event that a record belongs to.
    fn event_of(&self, kind: RecordType, body: &[u8]) -> Option<usize> {
        let data = RawData::from(body);
        let id = match (self.id_place, self.stream.endian()) {
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
        let endian = self.stream.endian();
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
