//! Reads counted stacks: heap, block, mutex, threadcreate, and goroutines with `debug=1`.

use plumb_profile::{AddressSpace, EventId, FrameKind, Profile, StackId, ThreadId};

use super::traces;
use crate::foreign::{Assembly, Counted, ForeignError, Place, TOO_LARGE, whole};

/// The first words of each text.
const STARTS: [&[u8]; 6] = [
    b"heap profile: ",
    b"goroutine profile: total ",
    b"threadcreate profile: total ",
    b"--- contention:",
    b"--- mutex:",
    b"--- heapz 1 ---",
];

/// Whether the text begins like one of them.
pub(crate) fn is(bytes: &[u8]) -> bool {
    STARTS.iter().any(|start| bytes.starts_with(start)) || traces::is(bytes)
}

/// Reads the text.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    if traces::is(bytes) {
        return traces::read(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    let mut reading = Reading::new(text.lines().next().unwrap_or_default());
    for (at, line) in text.lines().enumerate().skip(1) {
        reading.line(line).map_err(|message| ForeignError::Line { line: at + 1, message })?;
    }
    reading.end().map_err(|message| ForeignError::Line { line: text.lines().count(), message })?;
    if reading.is_nameless {
        return Err(ForeignError::Unknown {
            looks: "a text of Go's runtime/pprof without the lines that name functions: save all of it, or the profile without `debug=`",
        });
    }
    reading.assembly.counted(std::mem::take(&mut reading.counted));
    reading.assembly.profile.meta.warnings.push(
        "imported from a text of Go's runtime/pprof, which tells neither times, processors nor threads"
            .into(),
    );
    Ok(reading.assembly.finish("Go runtime/pprof"))
}

/// The meaning of the numbers before a stack.
enum Kind {
    /// Objects and bytes in use, and allocated: one allocation is sampled every `rate` bytes (0: all).
    Heap { rate: f64 },
    /// CPU cycles and number of events; cycles per second, and the number of events per sampled one.
    Delay { cycles_per_second: f64, period: f64 },
    /// A count.
    Count,
}

struct Reading {
    assembly: Assembly,
    kind: Kind,
    events: Vec<EventId>,
    thread: ThreadId,
    counted: Vec<Counted>,
    record: Option<Record>,
    /// Whether no record has function names, though at least one has an address.
    is_nameless: bool,
    has_names: bool,
}

/// A stack's numbers, its addresses, and its functions so far, innermost first.
struct Record {
    values: Vec<(u64, EventId)>,
    addresses: Vec<u64>,
    functions: Vec<(String, String, u32)>,
}

impl Reading {
    fn new(first: &str) -> Self {
        let mut assembly = Assembly::new();
        let thread = assembly.thread(None, None, "", "");
        let (kind, events): (Kind, &[(&str, &str)]) = if first.starts_with("heap profile: ") {
            // The text contains twice the rate.
            let rate = first.rsplit_once('/').and_then(|(_, rate)| rate.trim().parse::<f64>().ok());
            let events = &[
                ("inuse_space", "bytes"),
                ("inuse_objects", ""),
                ("alloc_space", "bytes"),
                ("alloc_objects", ""),
            ];
            (Kind::Heap { rate: rate.unwrap_or(0.0) / 2.0 }, events)
        } else if first.starts_with("---") {
            (Kind::Delay { cycles_per_second: 0.0, period: 1.0 }, &[("delay", "ns"), ("contentions", "")])
        } else if first.starts_with("goroutine") {
            (Kind::Count, &[("goroutines", "")])
        } else {
            (Kind::Count, &[("threads", "")])
        };
        let events = events.iter().map(|(name, unit)| assembly.event(name, unit)).collect();
        Reading {
            assembly,
            kind,
            events,
            thread,
            counted: Vec::new(),
            record: None,
            is_nameless: false,
            has_names: false,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(frame) = line.strip_prefix("#\t") {
            if let (Some(record), Some(function)) = (&mut self.record, function(frame)) {
                record.functions.push(function);
            }
            return Ok(());
        }
        if line.starts_with('#') {
            return Ok(());
        }
        self.end()?;
        if line.is_empty() {
            return Ok(());
        }
        if let Some((key, value)) = line.split_once('=')
            && let Kind::Delay { cycles_per_second, period } = &mut self.kind
        {
            let value = value.trim().parse::<f64>().map_err(|_| "there is no number behind `=`")?;
            match key {
                "cycles/second" => *cycles_per_second = value,
                "sampling period" => *period = value,
                _ => {}
            }
            return Ok(());
        }
        let (values, addresses) = line
            .split_once('@')
            .ok_or("no record of a Go profile: there is no `@` between counts and addresses")?;
        let addresses = addresses.split_ascii_whitespace().map(address).collect::<Option<Vec<u64>>>();
        let addresses = addresses.ok_or("behind `@` there are not only addresses")?;
        self.record = Some(Record { values: self.values(values)?, addresses, functions: Vec::new() });
        Ok(())
    }

    fn values(&self, text: &str) -> Result<Vec<(u64, EventId)>, &'static str> {
        let words = text.split(|one: char| " :[]".contains(one)).filter(|word| !word.is_empty());
        let numbers = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
        let values: Vec<f64> = match (&self.kind, numbers.as_deref()) {
            (Kind::Heap { rate }, Some(&[in_use, in_use_bytes, allocated, allocated_bytes])) => {
                let in_use = all_of(in_use, in_use_bytes, *rate);
                let allocated = all_of(allocated, allocated_bytes, *rate);
                vec![in_use.1, in_use.0, allocated.1, allocated.0]
            }
            (Kind::Delay { cycles_per_second, .. }, _) if *cycles_per_second <= 0.0 => {
                return Err("the cycles a second are not told before it");
            }
            (Kind::Delay { cycles_per_second, period }, Some(&[cycles, times])) => {
                vec![cycles as f64 / cycles_per_second * 1e9 * period, times as f64 * period]
            }
            (Kind::Count, Some(&[count])) => vec![count as f64],
            _ => return Err("not as many numbers before `@` as this kind of profile has"),
        };
        let weights = values.into_iter().map(|value| whole(value).map(|(weight, _)| weight));
        weights.zip(&self.events).map(|(weight, event)| Ok((weight?, *event))).collect()
    }

    /// Adds the record read so far.
    fn end(&mut self) -> Result<(), &'static str> {
        let Some(record) = self.record.take() else { return Ok(()) };
        self.has_names |= !record.functions.is_empty();
        self.is_nameless = !self.has_names && (self.is_nameless || record.addresses.iter().any(|&at| at > 0));
        let stack = self.stack(&record);
        for (weight, event) in record.values {
            if weight > 0 {
                let weight = self.assembly.weigh(weight).ok_or(TOO_LARGE)?;
                let count = if matches!(self.kind, Kind::Count) { weight } else { 1 };
                self.counted.push(Counted { thread: self.thread, event, stack, count, weight });
            }
        }
        Ok(())
    }

    /// Returns the stack by function names, or by addresses if there are none.
    fn stack(&mut self, record: &Record) -> Option<StackId> {
        let mut frames = Vec::new();
        for (name, file, line) in &record.functions {
            let place = Place { name, file, line: *line, ..Place::default() };
            frames.push(self.assembly.frame(FrameKind::User, "", &[place]));
        }
        if frames.is_empty() {
            for &address in record.addresses.iter().filter(|&&address| address > 0) {
                let dso = self.assembly.dso("", None, AddressSpace::Avma, address);
                frames.push(self.assembly.frame_at(dso, address, &[]));
            }
        }
        self.assembly.profile.add_stack(&frames)
    }
}

/// Estimates all objects and bytes that the sampled ones represent: larger objects are sampled with a higher probability.
fn all_of(count: u64, bytes: u64, rate: f64) -> (f64, f64) {
    let (count, bytes) = (count as f64, bytes as f64);
    if rate <= 1.0 || count == 0.0 || bytes == 0.0 {
        return (count, bytes);
    }
    let scale = 1.0 / (1.0 - (-(bytes / count) / rate).exp());
    ((count * scale).trunc(), (bytes * scale).trunc())
}

fn address(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Parses name, source file and line of `0x48b2f0  main.work+0x30  /src/main.go:12`, in columns separated by tabs.
fn function(text: &str) -> Option<(String, String, u32)> {
    let mut cells = text.split('\t').filter(|cell| !cell.is_empty());
    address(cells.next()?)?;
    let name = cells.next()?;
    let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
    let (file, line) = cells.next().and_then(|place| place.rsplit_once(':')).unwrap_or_default();
    Some((name.into(), file.into(), line.parse().unwrap_or(0)))
}
