//! pprof profiles: each type of their values becomes a series, and each set of labels of their samples another one.
//!
//! The message is decoded by `formats`. It is added to the batch directly, not through plumb's own profile: an import that keeps threads and
//! addresses apart would take several times as long as storing it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use plumb_formats::pprof::message::{Label, Location, Profile};
use plumb_formats::pprof::{self, Most};
use plumb_store::{
    Batch, FrameKey, Labels, Millis, NAME, ProfileType, SeriesKey, StackNodeId, StoredFrame, StoredSample,
    TextId,
};

use super::builder::{StackBuilder, check_batch};
use super::decoded::{PPROF_TABLES, check_message, too_large};
use super::labels::with_sample_labels;
use super::location::{self, LineFunction, LocationLine};
use super::texts::InternedTexts;
use super::time;
use crate::connect::inflate;
use crate::error::ApiError;
use crate::options::IngestLimits;

/// Most encoded bytes of a sample, or of a location with its inlined calls: ten times what the deepest stack takes.
const ROW: usize = 1 << 20;
/// Most types of values.
const TYPES: usize = 100;

/// A profile's message: its tables, and the bytes that its samples are decoded from one by one.
pub(crate) struct PprofMessage<'b> {
    pub tables: Profile,
    bytes: Cow<'b, [u8]>,
}

/// Adds profiles to a batch.
pub(crate) struct PprofReader<'l> {
    limits: &'l IngestLimits,
    now: u128,
}

/// The series IDs of the types, in the order of a sample's values.
type SeriesOfTypes = Vec<SeriesKey>;

impl<'l> PprofReader<'l> {
    pub fn new(limits: &'l IngestLimits) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Self { limits, now }
    }

    /// Reads the message, gzipped or not.
    pub fn decode<'b>(&self, bytes: &'b [u8]) -> Result<PprofMessage<'b>, ApiError> {
        match bytes.starts_with(b"\x1f\x8b") {
            true => self.decode_owned(inflate(bytes, self.limits.unpacked)?),
            false => self.decode_plain(Cow::Borrowed(bytes)),
        }
    }

    /// Reads the unpacked message.
    pub fn decode_owned(&self, bytes: Vec<u8>) -> Result<PprofMessage<'static>, ApiError> {
        self.decode_plain(Cow::Owned(bytes))
    }

    fn decode_plain<'b>(&self, bytes: Cow<'b, [u8]>) -> Result<PprofMessage<'b>, ApiError> {
        if bytes.len() > self.limits.unpacked {
            return Err(too_large(self.limits.unpacked));
        }
        check_message(&bytes, &PPROF_TABLES, self.limits.memory.decoded)?;
        let limits = self.limits;
        let most = Most { samples: limits.samples, rows: limits.rows, types: TYPES, location: ROW };
        let tables = pprof::decode_tables(&bytes, most)?;
        Ok(PprofMessage { tables, bytes })
    }

    /// Adds a profile to a series.
    pub fn add(
        &self,
        batch: &mut Batch,
        labels: &Labels,
        message: &PprofMessage<'_>,
    ) -> Result<(), ApiError> {
        let profile = &message.tables;
        if profile.sample_type.is_empty() {
            return Err(malformed("it has no sample types"));
        }
        let time = self.time(profile.time_nanos, labels)?;
        let mut reading = Reading::new(profile, self.limits)?;
        let types = reading.types(labels.get(NAME).unwrap_or_default())?;
        let mut series: HashMap<Vec<(i64, i64)>, SeriesOfTypes> = HashMap::new();
        let mut totals = vec![0_i64; types.len()];
        for (row, sample) in pprof::samples(&message.bytes, ROW).enumerate() {
            let sample = sample?;
            if row >= self.limits.samples {
                return Err(malformed(format!(
                    "it has more than {} samples, which is the limit",
                    self.limits.samples
                )));
            }
            if sample.value.len() != types.len() {
                let (values, types) = (sample.value.len(), types.len());
                return Err(malformed(format!("sample {row} has {values} values of {types} types")));
            }
            if sample.label.len() > self.limits.sample_labels {
                let (labels, most) = (sample.label.len(), self.limits.sample_labels);
                return Err(malformed(format!("sample {row} has {labels} labels; limit {most}")));
            }
            let key = label_key(&sample.label);
            let keys = match series.get(&key) {
                Some(known) => known,
                None => {
                    let with = reading.labels(&key).collect::<Result<Vec<_>, _>>()?;
                    let with = with_sample_labels(labels, with.into_iter(), self.limits)?;
                    let keys = series_of_types(batch, &with, &types);
                    if batch.all_series().len() > self.limits.series {
                        let most = self.limits.series;
                        return Err(malformed(format!("its samples are of more than {most} series")));
                    }
                    series.entry(key).or_insert(keys)
                }
            };
            let stack = reading.stack(batch, row, &sample.location_id)?;
            let stack = stack.unwrap_or_else(|| without_stack(batch));
            for (place, &value) in sample.value.iter().enumerate() {
                let sum = totals[place].checked_add(value).filter(|_| value >= 0);
                totals[place] = sum.ok_or_else(|| unfit(row, value, &types[place]))?;
                batch.push(StoredSample { series: keys[place], time, stack, value });
            }
            check_batch(batch, self.limits)?;
        }
        Ok(())
    }

    /// Time of the profile; the current time if it has none.
    fn time(&self, nanos: i64, labels: &Labels) -> Result<Millis, ApiError> {
        let Ok(nanos) = u64::try_from(nanos) else {
            return Err(malformed(format!("its time is {nanos} ns, before 1970")));
        };
        time::checked(nanos, self.now, labels, self.limits)
    }
}

/// Placeholder frame for a sample without frames, so that the sum is preserved.
pub(super) fn without_stack(batch: &mut Batch) -> StackNodeId {
    let function = batch.dictionary.text("[no stack]");
    let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
    batch.dictionary.call(None, frame)
}

/// The part of a sample's labels that distinguishes series: key and text of the labels with a text.
fn label_key(labels: &[Label]) -> Vec<(i64, i64)> {
    let mut key: Vec<(i64, i64)> =
        labels.iter().filter(|label| label.text != 0).map(|label| (label.key, label.text)).collect();
    key.sort_unstable();
    key
}

fn series_of_types(batch: &mut Batch, labels: &Labels, types: &[ProfileType]) -> SeriesOfTypes {
    let series = types.iter().map(|kind| {
        let mut labels = labels.clone();
        kind.label(&mut labels);
        batch.series(labels)
    });
    series.collect()
}

fn malformed(message: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(format!("malformed profile: {message}"))
}

fn unfit(row: usize, value: i64, kind: &ProfileType) -> ApiError {
    let why = if value < 0 { "is negative" } else { "makes the sum larger than 64 bits hold" };
    malformed(format!("sample {row} has {value} {}, which {why}", kind.sample_unit))
}

/// A message being read.
struct Reading<'p> {
    profile: &'p Profile,
    locations: HashMap<u64, &'p Location>,
    functions: HashMap<u64, usize>,
    mappings: HashMap<u64, usize>,
    texts: InternedTexts<'p>,
    /// Frames by location, outermost first.
    frames: HashMap<u64, Vec<FrameKey>>,
    stacks: StackBuilder,
}

impl<'p> Reading<'p> {
    fn new(profile: &'p Profile, limits: &'p IngestLimits) -> Result<Self, ApiError> {
        if profile.string_table.first().is_some_and(|first| !first.is_empty()) {
            return Err(malformed("its first string is not empty"));
        }
        let mut reading = Self {
            profile,
            locations: HashMap::with_capacity(profile.location.len()),
            functions: HashMap::with_capacity(profile.function.len()),
            mappings: HashMap::new(),
            texts: InternedTexts::new(profile.string_table.len(), limits),
            frames: HashMap::with_capacity(profile.location.len()),
            stacks: StackBuilder::new(limits),
        };
        for location in &profile.location {
            if location.id == 0 || reading.locations.insert(location.id, location).is_some() {
                return Err(malformed(format!("location id {} is zero or not unique", location.id)));
            }
        }
        for (place, function) in profile.function.iter().enumerate() {
            if function.id == 0 || reading.functions.insert(function.id, place).is_some() {
                return Err(malformed(format!("function id {} is zero or not unique", function.id)));
            }
        }
        for (place, mapping) in profile.mapping.iter().enumerate() {
            if mapping.id == 0 || reading.mappings.insert(mapping.id, place).is_some() {
                return Err(malformed(format!("mapping id {} is zero or not unique", mapping.id)));
            }
        }
        Ok(reading)
    }

    fn string(&self, index: i64) -> Result<&'p str, ApiError> {
        // An empty string table still has the empty string.
        let text = usize::try_from(index).ok().and_then(|index| self.profile.string_table.get(index));
        match text {
            Some(text) => Ok(text),
            None if index == 0 => Ok(""),
            None => Err(malformed(format!("there is no string {index}"))),
        }
    }

    fn text(&mut self, batch: &mut Batch, index: i64) -> Result<TextId, ApiError> {
        let text = self.string(index)?;
        self.texts.id(batch, index as usize, text)
    }

    fn types(&self, name: &str) -> Result<Vec<ProfileType>, ApiError> {
        let period = self.profile.period_type.unwrap_or_default();
        let (period_type, period_unit) = (self.string(period.kind)?, self.string(period.unit)?);
        let kind = |one: &pprof::message::ValueType| {
            let (sample_type, sample_unit) = (self.string(one.kind)?, self.string(one.unit)?);
            let parts = [name, sample_type, sample_unit, period_type, period_unit];
            if let Some(wrong) = parts.iter().find(|part| part.contains([':', '{', '"'])) {
                return Err(malformed(format!("invalid name in its sample types: {wrong:?}")));
            }
            Ok(ProfileType {
                name: name.into(),
                sample_type: sample_type.into(),
                sample_unit: sample_unit.into(),
                period_type: period_type.into(),
                period_unit: period_unit.into(),
            })
        };
        let types: Vec<ProfileType> = self.profile.sample_type.iter().map(kind).collect::<Result<_, _>>()?;
        for (place, one) in types.iter().enumerate() {
            if types[..place].contains(one) {
                let (kind, unit) = (&one.sample_type, &one.sample_unit);
                return Err(malformed(format!(
                    "it has two sample types {kind}/{unit}, whose values would be added up"
                )));
            }
        }
        Ok(types)
    }

    fn labels<'k>(
        &'k self,
        key: &'k [(i64, i64)],
    ) -> impl Iterator<Item = Result<(&'p str, &'p str), ApiError>> + 'k {
        key.iter().map(|&(key, text)| Ok((self.string(key)?, self.string(text)?)))
    }

    fn stack(
        &mut self,
        batch: &mut Batch,
        row: usize,
        leaf_first: &[u64],
    ) -> Result<Option<StackNodeId>, ApiError> {
        for &id in leaf_first.iter().rev() {
            if !self.frames.contains_key(&id) {
                let location = self.locations.get(&id).copied();
                let location =
                    location.ok_or_else(|| malformed(format!("sample {row}: there is no location {id}")))?;
                let frames = self.location(batch, location)?;
                self.frames.insert(id, frames);
            }
            for &frame in &self.frames[&id] {
                self.stacks.add(&mut batch.dictionary, frame)?;
            }
        }
        Ok(self.stacks.end())
    }

    /// The frames of a location, with one for each inlined call.
    fn location(&mut self, batch: &mut Batch, location: &Location) -> Result<Vec<FrameKey>, ApiError> {
        let mut file = StoredFrame { address: location.address, ..StoredFrame::default() };
        if location.mapping_id != 0 {
            let place = self.mappings.get(&location.mapping_id).copied();
            let place = place.ok_or_else(|| {
                malformed(format!("location {}: there is no mapping {}", location.id, location.mapping_id))
            })?;
            let mapping = self.profile.mapping[place];
            file.mapping = self.text(batch, mapping.filename)?;
            file.build_id = self.text(batch, mapping.build_id)?;
            let is_kernel = self.string(mapping.filename)?.starts_with('[');
            // A file is mapped at another address in each process: the file's own addresses are kept.
            if let Some(inside) = location.address.checked_sub(mapping.memory_start)
                && mapping.memory_start > 0
                && !is_kernel
            {
                file.address = inside.saturating_add(mapping.file_offset);
                file.is_file_offset = true;
            }
        }
        let mut lines = Vec::with_capacity(location.line.len());
        for line in &location.line {
            let function = match line.function_id {
                0 => None,
                id => Some(self.line_function(batch, location.id, id)?),
            };
            lines.push(LocationLine { function, line: line.line });
        }
        Ok(location::frames(&mut batch.dictionary, file, &lines))
    }

    fn line_function(&mut self, batch: &mut Batch, location: u64, id: u64) -> Result<LineFunction, ApiError> {
        let place = self.functions.get(&id).copied();
        let place =
            place.ok_or_else(|| malformed(format!("location {location}: there is no function {id}")))?;
        let function = self.profile.function[place];
        Ok(LineFunction {
            name: self.text(batch, function.name)?,
            system_name: self.text(batch, function.system_name)?,
            file: self.text(batch, function.filename)?,
            start_line: function.start_line,
        })
    }
}
