//! Records in file order, decompressed if necessary.
//!
//! Memory is bounded: decompression continues only when the records decompressed so far are consumed.

use std::io::{BufReader, ErrorKind, Read};

use linux_perf_event_reader::Endianness;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::bytes::Bytes;
use super::error::Loss;

/// `PERF_RECORD_*` of tools/lib/perf/include/perf/event.h whose bodies are not just the record.
const TRACING_DATA: u32 = 66;
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// `struct perf_event_header`.
const HEADER: usize = 8;
/// Size of a read from the file.
const CHUNK: usize = 256 << 10;
/// Size of the buffers of several files together, and the smallest of one.
const SEVERAL: usize = 16 << 20;
const SMALLEST_CHUNK: usize = 8 << 10;
/// Size of a decompression step: more than the largest record.
const UNPACK: usize = 128 << 10;

/// A record's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub kind: u32,
    pub misc: u16,
    /// Offset of the record in the file; for a compressed one, that of the record containing it.
    pub offset: u64,
}

/// Records in the order of the file.
pub(super) struct Stream<R> {
    input: BufReader<R>,
    endian: Endianness,
    /// Offset of the next record in the file.
    offset: u64,
    /// End of the data.
    end: u64,
    unpacker: Option<Unpacker>,
}

impl<R: Read> Stream<R> {
    /// Creates a stream of the records in `input`, which is at `offset` of the file, up to `end`.
    pub(super) fn new(input: R, endian: Endianness, offset: u64, end: u64) -> Self {
        Stream { input: BufReader::with_capacity(CHUNK, input), endian, offset, end, unpacker: None }
    }

    /// As [`Stream::new`], for one of `files` files that are read at the same time: their buffers together take a few MiB.
    pub(super) fn of_several(input: R, endian: Endianness, end: u64, files: usize) -> Self {
        let chunk = (SEVERAL / files.max(1)).clamp(SMALLEST_CHUNK, CHUNK);
        let input = BufReader::with_capacity(chunk, input);
        Stream { input, endian, offset: 0, end, unpacker: None }
    }

    /// Reads the next record's body into `body`. `None` at the end, or if the data cannot be read further.
    pub(super) fn next(&mut self, body: &mut Vec<u8>, loss: &mut Loss) -> Option<Head> {
        loop {
            if let Some(unpacker) = &mut self.unpacker
                && let Some(head) = unpacker.next(self.endian, body, loss)
            {
                return Some(head);
            }
            let head = self.next_stored(body, loss)?;
            match head.kind {
                COMPRESSED | COMPRESSED2 => self.begin_unpacking(head, body, loss),
                AUXTRACE => {
                    // The first field is the size of the trace data that follows the record.
                    let size = Bytes::new(body, self.endian).u64().unwrap_or(0);
                    self.pass_over(size, loss)?;
                }
                TRACING_DATA => {
                    let size = Bytes::new(body, self.endian).u32().unwrap_or(0);
                    self.pass_over(u64::from(size).next_multiple_of(8), loss)?;
                }
                _ => return Some(head),
            }
        }
    }

    /// Reads the next record as stored in the file.
    fn next_stored(&mut self, body: &mut Vec<u8>, loss: &mut Loss) -> Option<Head> {
        let offset = self.offset;
        let left = self.end.saturating_sub(offset);
        if left == 0 {
            return None;
        }
        let mut header = [0; HEADER];
        let read = fill(&mut self.input, &mut header[..HEADER.min(usize::try_from(left).unwrap_or(HEADER))]);
        let (kind, misc, size) = match read {
            // In pipe mode the data ends at the end of the input.
            Ok(0) if self.end == u64::MAX => return None,
            Ok(HEADER) => parse_header(&header, self.endian)?,
            Ok(_) => return self.stop(loss, "the data end in the middle of a record"),
            Err(error) => return self.stop(loss, &error.to_string()),
        };
        let Some(length) = usize::from(size).checked_sub(HEADER) else {
            let message = format!("a record that claims {size} bytes; what follows can't be read");
            return self.stop(loss, &message);
        };
        body.resize(length, 0);
        match fill(&mut self.input, body) {
            Ok(read) if read == length && u64::from(size) <= left => {}
            Ok(_) => return self.stop(loss, "the data end in the middle of a record"),
            Err(error) => return self.stop(loss, &error.to_string()),
        }
        self.offset += u64::from(size);
        Some(Head { kind, misc, offset })
    }

    fn pass_over(&mut self, size: u64, loss: &mut Loss) -> Option<()> {
        let size = size.min(self.end.saturating_sub(self.offset));
        let passed = std::io::copy(&mut self.input.by_ref().take(size), &mut std::io::sink());
        match passed {
            Ok(passed) if passed == size => {
                self.offset += size;
                Some(())
            }
            Ok(_) => self.stop(loss, "the data end in the middle of a record"),
            Err(error) => self.stop(loss, &error.to_string()),
        }
    }

    /// Counts unreadable data as one damaged record and ends the stream.
    fn stop<T>(&mut self, loss: &mut Loss, message: &str) -> Option<T> {
        loss.damaged(self.offset, message);
        self.end = self.offset;
        None
    }

    fn begin_unpacking(&mut self, head: Head, body: &[u8], loss: &mut Loss) {
        let packed = match head.kind {
            COMPRESSED => Some(body),
            _ => {
                // The size excludes padding.
                let mut bytes = Bytes::new(body, self.endian);
                let size = bytes.u64().and_then(|size| usize::try_from(size).ok());
                size.and_then(|size| bytes.take(size))
            }
        };
        if self.unpacker.is_none() {
            self.unpacker = Unpacker::new();
        }
        match (packed, &mut self.unpacker) {
            (Some(packed), Some(unpacker)) => unpacker.feed(packed, head.offset, loss),
            _ => loss.damaged(head.offset, "a compressed record that can't be"),
        }
    }
}

fn parse_header(bytes: &[u8], endian: Endianness) -> Option<(u32, u16, u16)> {
    let mut bytes = Bytes::new(bytes, endian);
    Some((bytes.u32()?, bytes.u16()?, bytes.u16()?))
}

/// Reads until `to` is full or the input ends; returns the number of bytes read.
fn fill<R: Read>(input: &mut R, to: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match input.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// One zstd stream that spans all compressed records of the file.
struct Unpacker {
    decoder: Decoder<'static>,
    packed: Vec<u8>,
    packed_used: usize,
    /// Decompressed records; the last may be incomplete.
    records: Vec<u8>,
    records_used: usize,
    offset: u64,
    /// Whether the decoder may have more output although all input is consumed.
    more: bool,
    /// Set when the stream is damaged: nothing after that can be decompressed.
    broken: bool,
}

impl Unpacker {
    fn new() -> Option<Self> {
        Some(Unpacker {
            decoder: Decoder::new().ok()?,
            packed: Vec::new(),
            packed_used: 0,
            records: Vec::new(),
            records_used: 0,
            offset: 0,
            more: false,
            broken: false,
        })
    }

    fn feed(&mut self, packed: &[u8], offset: u64, loss: &mut Loss) {
        if self.broken {
            loss.damaged(offset, "a compressed record after a damaged one");
            return;
        }
        self.packed.clear();
        self.packed.extend_from_slice(packed);
        (self.packed_used, self.offset) = (0, offset);
    }

    fn next(&mut self, endian: Endianness, body: &mut Vec<u8>, loss: &mut Loss) -> Option<Head> {
        loop {
            let unread = &self.records[self.records_used..];
            if let Some((kind, misc, size)) = parse_header(unread, endian) {
                let size = usize::from(size);
                if size < HEADER {
                    loss.damaged(self.offset, "a compressed record of impossible size inside");
                    self.give_up();
                    return None;
                }
                if let Some(record) = unread.get(HEADER..size) {
                    body.clear();
                    body.extend_from_slice(record);
                    self.records_used += size;
                    return Some(Head { kind, misc, offset: self.offset });
                }
            }
            if (self.packed_used == self.packed.len() && !self.more) || self.broken {
                return None;
            }
            if let Err(error) = self.unpack() {
                loss.damaged(
                    self.offset,
                    &format!("a damaged compressed record ({error}); later ones are lost too"),
                );
                self.give_up();
                return None;
            }
        }
    }

    /// Decompresses the next piece after the remainder of the last one.
    fn unpack(&mut self) -> std::io::Result<()> {
        self.records.drain(..self.records_used);
        self.records_used = 0;
        let old = self.records.len();
        self.records.resize(old + UNPACK, 0);
        let mut input = InBuffer::around(&self.packed[self.packed_used..]);
        let mut output = OutBuffer::around(&mut self.records[old..]);
        let result = self.decoder.run(&mut input, &mut output);
        let (read, written) = (input.pos(), output.pos());
        self.records.truncate(old + written);
        self.packed_used += read;
        self.more = written == UNPACK;
        result.map(|_| ())
    }

    fn give_up(&mut self) {
        self.broken = true;
        self.records.clear();
        self.records_used = 0;
    }
}
