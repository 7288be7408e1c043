//! Converts events to samples: kind, weight, time, stack. Invariant: an incomplete chunk ends the reading; earlier chunks
//! are kept, and a warning reports it.

use plumb_profile::{EventId, Profile, StackId, ThreadId};

use super::chunk::{self, Chunk, Spot};
use super::event::JfrEvent;
use super::settings::Settings;
use super::stacks::{ChunkStacks, NameBudget};
use super::value::Value;
use crate::foreign::{Assembly, Counted, ForeignError, TOO_LARGE};

/// A sample.
#[derive(Clone, Copy, Debug)]
pub struct JfrSample {
    /// Kind of the sample.
    pub kind: JfrEvent,
    /// Event in the profile's table.
    pub event: EventId,
    /// The thread.
    pub thread: ThreadId,
    /// The stack; `None` if the recorder had none.
    pub stack: Option<StackId>,
    /// Time in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Number of times that it was seen.
    pub count: u64,
    /// Weight in the event's unit.
    pub weight: u64,
    /// The context that Pyroscope's agent set for the thread; 0 without one.
    pub context: i64,
}

/// A file that was read. Its samples, sorted by time, are also in the profile.
pub struct JfrRecording {
    /// The profile.
    pub profile: Profile,
    /// Samples as in the file.
    pub samples: Vec<JfrSample>,
}

/// Reads the decompressed file, with at most `most` samples.
///
/// # Errors
/// If it is not a JFR file, is damaged before the end of its first chunk, or has more samples.
pub fn decode(file: &[u8], most: usize) -> Result<JfrRecording, ForeignError> {
    let mut reading = Reading {
        assembly: Assembly::new(),
        settings: Settings::default(),
        names: NameBudget::of(file),
        samples: Vec::new(),
        most,
        times: None,
        period: None,
    };
    let mut offset = 0;
    while offset < file.len() {
        let length = match chunk::length(file, offset) {
            Ok(length) => length,
            Err(error) if offset > 0 => {
                let text = format!("the file is read up to its last whole chunk: {error}");
                reading.assembly.profile.meta.warnings.push(text);
                reading.assembly.profile.meta.damaged_records += 1;
                break;
            }
            Err(error) => return Err(error),
        };
        reading.chunk(&Chunk::read(&file[offset..offset + length], offset)?)?;
        offset += length;
    }
    Ok(reading.finish())
}

struct Reading {
    assembly: Assembly,
    settings: Settings,
    names: NameBudget,
    samples: Vec<JfrSample>,
    most: usize,
    /// Start of the first chunk and end of the last, in nanoseconds since 1970.
    times: Option<(u64, u64)>,
    /// Nanoseconds between samples of running threads.
    period: Option<u64>,
}

impl Reading {
    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), ForeignError> {
        let begin = u64::try_from(chunk.clock.start_unix_ns).unwrap_or(0);
        let end = begin.saturating_add(u64::try_from(chunk.clock.duration_ns).unwrap_or(0));
        let (first, last) = self.times.unwrap_or((begin, end));
        self.times = Some((first.min(begin), last.max(end)));
        self.settings.add(chunk)?;
        let mut stacks = ChunkStacks::new(self.settings.is_async_profiler());
        // Commands show the first event by default: that of running threads, if there is one.
        let mut samples = chunk.samples.clone();
        samples.sort_by_key(|&(kind, _)| kind);
        for (kind, spot) in samples {
            self.sample(chunk, kind, spot, &mut stacks)?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        chunk: &Chunk<'_>,
        kind: JfrEvent,
        spot: Spot,
        stacks: &mut ChunkStacks,
    ) -> Result<(), ForeignError> {
        if self.samples.len() >= self.most {
            return Err(
                chunk.wrong(spot, format!("it has more than {} samples, which is the limit", self.most))
            );
        }
        let event = chunk.event(spot)?;
        let state = if kind == JfrEvent::Cpu { chunk.text(&event, "state")? } else { String::new() };
        let kind = self.settings.kind(kind, &state);
        let (id, count, weight) = self.weight(chunk, kind, spot, &event)?;
        let assembly = &mut self.assembly;
        let weight = assembly.weigh(weight).ok_or_else(|| chunk.wrong(spot, TOO_LARGE))?;
        let stack = stacks.stack(chunk, &event, assembly, &mut self.names)?;
        let pid = self.settings.machine.pid;
        let thread = stacks.thread(chunk, &event, pid, assembly, &mut self.names)?;
        let time = chunk.clock.unix(chunk.number(&event, "startTime"));
        self.samples.push(JfrSample {
            kind,
            event: id,
            thread,
            stack,
            unix_ns: u64::try_from(time).unwrap_or(0),
            count,
            weight,
            context: chunk.number(&event, "contextId"),
        });
        Ok(())
    }

    /// Returns the profile's event, the number of samples, and the weight.
    fn weight(
        &mut self,
        chunk: &Chunk<'_>,
        kind: JfrEvent,
        spot: Spot,
        event: &Value<'_>,
    ) -> Result<(EventId, u64, u64), ForeignError> {
        let negative = |what: &str, number: i64| chunk.wrong(spot, format!("its {what} is {number}"));
        let (name, unit) = kind.name();
        if let Some(field) = kind.weight() {
            let number = chunk.number(event, field);
            let number = if kind.is_wait() { chunk.clock.nanoseconds(number) } else { number };
            let weight = u64::try_from(number).map_err(|_| negative(field, number))?;
            return Ok((self.assembly.event(name, unit), 1, weight));
        }
        let count = match event.field(&chunk.types, "samples") {
            Some(&Value::Number(count)) => u64::try_from(count).map_err(|_| negative("samples", count))?,
            _ => 1,
        };
        let period = self.settings.period(kind, spot.class);
        if kind == JfrEvent::Cpu {
            self.period = self.period.or(period);
        }
        let id = match (kind, period) {
            (JfrEvent::Counter, _) => self.assembly.event(self.settings.event.as_deref().unwrap_or(name), ""),
            (_, Some(_)) => self.assembly.event(name, unit),
            // Without a known period samples are counted.
            (JfrEvent::Cpu, None) => self.assembly.event("samples", ""),
            (_, None) => self.assembly.event(&format!("{name}-samples"), ""),
        };
        let weight = count.checked_mul(period.unwrap_or(1)).ok_or_else(|| chunk.wrong(spot, TOO_LARGE))?;
        Ok((id, count, weight))
    }

    fn finish(mut self) -> JfrRecording {
        let (start, end) = self.times.unwrap_or_default();
        for one in &self.samples {
            let &JfrSample { thread, event, stack, count, weight, .. } = one;
            let counted = Counted { thread, event, stack, count, weight };
            self.assembly.sample(one.unix_ns.saturating_sub(start), &counted);
        }
        let (settings, meta) = (&self.settings, &mut self.assembly.profile.meta);
        meta.start_unix_ns = start;
        meta.duration_ns = end.saturating_sub(start);
        // The profile's frequency applies to all events.
        let is_cpu_alone = self.samples.iter().all(|one| one.kind == JfrEvent::Cpu);
        meta.frequency_hz = self
            .period
            .filter(|_| is_cpu_alone)
            .filter(|&period| period > 0)
            .and_then(|period| u32::try_from(1_000_000_000_u64.saturating_add(period / 2) / period).ok())
            .filter(|&frequency| frequency > 0);
        if !settings.machine.arguments.is_empty() {
            meta.command = vec!["java".into(), settings.machine.arguments.clone()];
        }
        let is_async = settings.is_async_profiler();
        let has_cpu = self.samples.iter().any(|one| one.kind == JfrEvent::Cpu);
        if has_cpu && !is_async {
            meta.warnings.push(
                "imported from the JDK's JFR, which samples at most 5 threads that run Java code at a time, and neither the garbage \
                 collector nor the compiler: cpu-clock is less than the processor time that the program used"
                    .into(),
            );
        }
        let recorder = match &settings.profiler {
            Some(version) if is_async => format!("async-profiler {version}"),
            _ if is_async => "async-profiler".to_owned(),
            _ => format!("JFR of JDK {}", settings.machine.release()).trim_end().to_owned(),
        };
        let mut profile = self.assembly.finish(&recorder);
        // Times are relative to the start of the first chunk; the JDK reports truncated stacks.
        profile.meta.start_ns = 0;
        profile.meta.untold.cuts = is_async;
        JfrRecording { profile, samples: self.samples }
    }
}
