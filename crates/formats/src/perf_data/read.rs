//! Opens a perf.data file, or the files of a directory, and returns the kernel's records sorted by time.
//!
//! `perf record --threads` writes a directory: `data` with the header and what perf itself knew, and for each ring buffer a file (`data.0`,
//! `data.1`, …) of bare records (`tools/perf/Documentation/perf.data-directory-format.txt`). The records of all files are merged by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Seek, SeekFrom};

use linux_perf_event_reader::{RawData, RawEventRecord};

use super::decoder::{Decoder, Waiting};
use super::error::{Loss, PerfDataError};
use super::event::EventDesc;
use super::features::Header;
use super::header::{self, Magic, Section};
use super::pipe::{FINISHED_ROUND, FIRST_OWN};
use super::rounds::Rounds;
use super::stream::Stream;

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

/// A file whose records are merged with those of others.
struct Source<R> {
    /// Name in warnings; empty for the file with the header.
    name: String,
    stream: Stream<R>,
    rounds: Rounds<Waiting>,
    at_end: bool,
}

/// An opened perf.data file, or the files of a directory.
pub struct PerfData<R> {
    decoder: Decoder,
    /// The file with the header first.
    sources: Vec<Source<R>>,
    /// The sources with a record, by the record's time; equal times in the order of the sources.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// The source whose next record is not in `next` yet.
    behind: Option<usize>,
    current: Vec<u8>,
}

impl<R: Read + Seek> PerfData<R> {
    /// Opens a perf.data file, in file mode or in pipe mode (`perf record -o -`).
    ///
    /// Memory is bounded by the ring buffers that perf drained in one round, not by the file.
    pub fn open(mut input: R) -> Result<Self, PerfDataError> {
        let failed = |error| PerfDataError::Input { offset: 0, error };
        let size = input.seek(SeekFrom::End(0)).map_err(failed)?;
        let start = header::section(&mut input, Section { offset: 0, size: Magic::BYTES }).map_err(failed)?;
        let magic = Magic::parse(&start).ok_or(PerfDataError::NotPerfData)?;
        let mut loss = Loss::default();
        let (header, data) = if magic.size == Magic::BYTES {
            // In pipe mode the recorder cannot know where the data ends.
            (Header::default(), Section { offset: Magic::BYTES, size: size.saturating_sub(Magic::BYTES) })
        } else {
            header::read(&mut input, magic.endian, size, &mut loss)?
        };
        input.seek(SeekFrom::Start(data.offset)).map_err(failed)?;
        let source = Source {
            name: String::new(),
            stream: Stream::new(input, magic.endian, data.offset, data.end()),
            rounds: Rounds::new(),
            at_end: false,
        };
        let mut perf_data = PerfData {
            decoder: Decoder::new(header, loss, magic.endian),
            sources: vec![source],
            next: BinaryHeap::new(),
            behind: Some(0),
            current: Vec::new(),
        };
        // In pipe mode the first records describe the events.
        perf_data.sources[0].fill(&mut perf_data.decoder);
        if perf_data.header().events.is_empty() {
            return Err(PerfDataError::Header {
                offset: Magic::BYTES,
                message: "it describes no events".into(),
            });
        }
        Ok(perf_data)
    }

    /// Adds the other files of the directory, with their names in warnings. Call it once, before the first record is taken.
    pub fn add_files(&mut self, files: Vec<(String, R)>) -> Result<(), PerfDataError> {
        let count = files.len();
        for (name, mut input) in files {
            let failed = |error| PerfDataError::Input { offset: 0, error };
            let size = input.seek(SeekFrom::End(0)).map_err(failed)?;
            input.rewind().map_err(failed)?;
            let mut source = Source {
                name,
                stream: Stream::of_several(input, self.decoder.endian(), size, count),
                rounds: Rounds::of_ring(count),
                at_end: false,
            };
            if let Some(time) = source.next_time(&mut self.decoder) {
                self.next.push(Reverse((time, self.sources.len())));
            }
            self.sources.push(source);
        }
        Ok(())
    }

    /// Returns the file's metadata. In pipe mode it may change until the end.
    pub fn header(&self) -> &Header {
        &self.decoder.header
    }

    /// Returns what could not be read so far.
    pub fn loss(&self) -> &Loss {
        &self.decoder.loss
    }

    /// Returns the next record by time; `None` at the end. Damage ends the reading of its file or skips records, and is counted in
    /// [`PerfData::loss`].
    pub fn next_record(&mut self) -> Option<Record<'_>> {
        if let Some(number) = self.behind.take()
            && let Some(time) = self.sources[number].next_time(&mut self.decoder)
        {
            self.next.push(Reverse((time, number)));
        }
        let Reverse((_, number)) = self.next.pop()?;
        self.behind = Some(number);
        let source = self.sources.get_mut(number)?;
        let (waiting, body) = source.rounds.next()?;
        source.rounds.recycle(std::mem::replace(&mut self.current, body));
        let parse_info = self.decoder.info(&waiting)?;
        let data = RawData::from(self.current.as_slice());
        Some(Record {
            event: waiting.event,
            events: &self.decoder.header.events,
            raw: RawEventRecord { record_type: waiting.kind, misc: waiting.misc, data, parse_info },
        })
    }
}

impl<R: Read> Source<R> {
    /// Returns the time of the next record; `None` at the end.
    fn next_time(&mut self, decoder: &mut Decoder) -> Option<u64> {
        while !self.rounds.has_ready() && !self.at_end {
            self.fill(decoder);
        }
        self.rounds.next_time()
    }

    /// Reads until the end of a round or of the data.
    fn fill(&mut self, decoder: &mut Decoder) {
        decoder.loss.in_file(&self.name);
        loop {
            let mut body = self.rounds.buffer();
            let Some(head) = self.stream.next(&mut body, &mut decoder.loss) else {
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
                decoder.own_record(head, &body);
                self.rounds.recycle(body);
            } else {
                decoder.kernel_record(head, body, &mut self.rounds);
                // So much is waiting that some records had to be released before the round's end.
                if self.rounds.has_ready() {
                    return;
                }
            }
        }
    }
}
