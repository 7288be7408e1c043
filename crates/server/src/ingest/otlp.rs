//! OpenTelemetry profiles: one dictionary per request, a series for each resource and each set of text attributes of its samples.
//!
//! The wire format is still in development, and has moved fields without renaming them: a sample with neither values nor timestamps comes from
//! a sender of another version, and is rejected instead of being stored as nothing.

use std::collections::HashMap;

use plumb_formats::otlp::SAMPLES;
use plumb_formats::otlp::message::{
    AnyValue, Dictionary, KeyValue, OneValue, OtlpSample, Profile, ProfilesData, Resource,
};
use plumb_store::{
    Batch, FrameKey, Labels, NAME, ProfileType, SERVICE, SeriesKey, StackNodeId, StoredFrame, StoredSample,
    TextId,
};

use super::builder::{StackBuilder, check_batch};
use super::labels::{series_labels, with_sample_labels};
use super::location::{self, LineFunction, LocationLine};
use super::pprof::without_stack;
use super::texts::InternedTexts;
use super::time;
use crate::error::ApiError;
use crate::moment;
use crate::options::IngestLimits;

/// Resource attributes that identify one run of a program, or hold its arguments: a series for each would never end.
const OF_ONE_RUN: [&str; 8] = [
    "process.pid",
    "process.executable.path",
    "process.command",
    "process.command_line",
    "process.command_args",
    "service.instance.id",
    "container.id",
    "process.owner",
];

/// Adds all profiles of a request to a batch.
pub(crate) fn add(batch: &mut Batch, data: &ProfilesData, limits: &IngestLimits) -> Result<(), ApiError> {
    let empty = Dictionary::default();
    let dictionary = data.dictionary.as_ref().unwrap_or(&empty);
    let samples = data.resource_profiles.iter().flat_map(|one| &one.scope_profiles);
    let samples: usize = samples.flat_map(|one| &one.profiles).map(|one| one.samples.len()).sum();
    if samples > limits.samples {
        return Err(malformed(format!("it has {samples} samples; limit {}", limits.samples)));
    }
    let mut reading = Reading {
        dictionary,
        limits,
        texts: InternedTexts::new(dictionary.string_table.len(), limits),
        frames: vec![None; dictionary.location_table.len()],
        stacks: HashMap::new(),
        builder: StackBuilder::new(limits),
    };
    for of_resource in &data.resource_profiles {
        let resource = reading.resource(of_resource.resource.as_ref())?;
        for profile in of_resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
            reading.profile(batch, &resource, profile)?;
        }
    }
    Ok(())
}

fn malformed(message: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(format!("malformed profiles: {message}"))
}

/// Labels of a resource: names and values.
type Pairs<'d> = Vec<(&'d str, &'d str)>;

struct Reading<'d> {
    dictionary: &'d Dictionary,
    limits: &'d IngestLimits,
    texts: InternedTexts<'d>,
    /// Frames by location, outermost first.
    frames: Vec<Option<Vec<FrameKey>>>,
    stacks: HashMap<i32, StackNodeId>,
    builder: StackBuilder,
}

/// A row of a table of the dictionary.
fn row<'t, T>(table: &'t [T], index: i32, name: &str) -> Result<&'t T, ApiError> {
    let row = usize::try_from(index).ok().and_then(|index| table.get(index));
    row.ok_or_else(|| malformed(format!("there is no row {index} in {name}")))
}

impl<'d> Reading<'d> {
    fn string(&self, index: i32) -> Result<&'d str, ApiError> {
        if index == 0 {
            return Ok("");
        }
        row(&self.dictionary.string_table, index, "string_table").map(String::as_str)
    }

    fn text(&mut self, batch: &mut Batch, index: i32) -> Result<TextId, ApiError> {
        let text = self.string(index)?;
        self.texts.id(batch, index as usize, text)
    }

    /// The labels of a resource. Its service is the given one, or the name of the program.
    fn resource(&self, resource: Option<&'d Resource>) -> Result<Pairs<'d>, ApiError> {
        let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
        let mut texts = Pairs::with_capacity(attributes.len());
        for attribute in attributes {
            let name = self.name(attribute)?;
            if let Some(value) = self.text_of(attribute.value.as_ref())? {
                texts.push((name, value));
            }
        }
        let text = |name: &str| texts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let service = text("service.name").or_else(|| text("process.executable.name"));
        let service = (SERVICE, service.unwrap_or("unknown_service"));
        texts.retain(|(name, _)| *name != "service.name" && !OF_ONE_RUN.contains(name));
        texts.insert(0, service);
        Ok(texts)
    }

    /// The name of an attribute: its own, or one of the dictionary, as written by collectors.
    fn name(&self, attribute: &'d KeyValue) -> Result<&'d str, ApiError> {
        match attribute.key_strindex {
            0 => Ok(&attribute.key),
            index => self.string(index),
        }
    }

    /// A text value: its own, or one of the dictionary.
    fn text_of(&self, value: Option<&'d AnyValue>) -> Result<Option<&'d str>, ApiError> {
        match value.and_then(|value| value.value.as_ref()) {
            Some(OneValue::Text(text)) => Ok(Some(text)),
            Some(OneValue::TextIndex(index)) => self.string(*index).map(Some),
            Some(OneValue::Number(_)) | None => Ok(None),
        }
    }

    fn profile(
        &mut self,
        batch: &mut Batch,
        resource: &Pairs<'_>,
        profile: &Profile,
    ) -> Result<(), ApiError> {
        if profile.samples.is_empty() {
            return Ok(());
        }
        let (kind, factor) = self.kind(profile)?;
        let counts = kind.sample_count().filter(|_| factor > 1 || has_timestamps(profile));
        let pairs = resource.iter().copied();
        let labels = series_labels(pairs.chain([(NAME, &*kind.name)]), self.limits)?;
        let now = u128::from(moment::now().unsigned_abs()) * 1_000_000;
        let time = time::checked(profile.time_unix_nano, now, &labels, self.limits)?;
        let mut series: HashMap<Vec<i32>, (SeriesKey, Option<SeriesKey>)> = HashMap::new();
        let mut total = 0_i64;
        for (place, sample) in profile.samples.iter().enumerate() {
            let value = value_of(place, sample)?;
            let value = value.checked_mul(factor).filter(|value| *value >= 0);
            let sum = value.and_then(|value| total.checked_add(value));
            let (Some(value), Some(sum)) = (value, sum) else {
                return Err(malformed(format!("the value of sample {place} is negative or too large")));
            };
            total = sum;
            let key = &sample.attribute_indices;
            let known = series.get(key).copied();
            let (values, numbers) = match known {
                Some(known) => known,
                None => {
                    let values = self.series(batch, &labels, &kind, key)?;
                    let numbers = counts.as_ref().map(|counts| self.series(batch, &labels, counts, key));
                    let both = (values, numbers.transpose()?);
                    series.insert(key.clone(), both);
                    both
                }
            };
            let stack = self.stack(batch, sample.stack_index)?;
            batch.push(StoredSample { series: values, time, stack, value });
            if let Some(series) = numbers {
                let number = number_of(sample, value / factor);
                batch.push(StoredSample { series, time, stack, value: number });
            }
            check_batch(batch, self.limits)?;
        }
        Ok(())
    }

    /// The profile type of the values, and the factor for one value: samples of a clock become time.
    fn kind(&self, profile: &Profile) -> Result<(ProfileType, i64), ApiError> {
        let (sample, period) =
            (profile.sample_type.unwrap_or_default(), profile.period_type.unwrap_or_default());
        let [sample_type, sample_unit, period_type, period_unit] = [
            self.string(sample.type_strindex)?,
            self.string(sample.unit_strindex)?,
            self.string(period.type_strindex)?,
            self.string(period.unit_strindex)?,
        ];
        let is_clock = (sample_type, sample_unit) == (SAMPLES, "count")
            && (period_type, period_unit) == ("cpu", "nanoseconds")
            && profile.period > 0;
        // The numbers of samples of CPU time, as plumb sends them beside that time.
        let is_count = (sample_type, sample_unit) == (SAMPLES, "count")
            && (period_type, period_unit) == (SAMPLES, "count")
            && profile.period == 1;
        if is_count {
            return Ok((ProfileType::cpu_samples(), 1));
        }
        let (name, sample_type, sample_unit, factor) = match (sample_type, sample_unit) {
            _ if is_clock => ("process_cpu", "cpu", "nanoseconds", profile.period),
            ("cpu", unit) => ("process_cpu", "cpu", unit, 1),
            ("off_cpu" | "off-cpu", unit) => ("off_cpu", "off_cpu", unit, 1),
            ("wall", unit) => ("wall", "wall", unit, 1),
            ("", _) => return Err(malformed("a profile has no sample type")),
            (other, unit) => (other, other, unit, 1),
        };
        // A period of one count, as plumb writes for events that are not clocks: no period.
        let counts_each = profile.period == 1 && (period_type, period_unit) == (sample_type, sample_unit);
        let (period_type, period_unit) =
            if counts_each && sample_type != "cpu" { ("", "") } else { (period_type, period_unit) };
        let parts = [name, sample_type, sample_unit, period_type, period_unit];
        if let Some(wrong) = parts.iter().find(|part| part.contains([':', '{', '"'])) {
            return Err(malformed(format!("invalid name of a sample type: {wrong:?}")));
        }
        let [name, sample_type, sample_unit, period_type, period_unit] = parts.map(str::to_owned);
        Ok((ProfileType { name, sample_type, sample_unit, period_type, period_unit }, factor))
    }

    fn series(
        &self,
        batch: &mut Batch,
        labels: &Labels,
        kind: &ProfileType,
        attributes: &[i32],
    ) -> Result<SeriesKey, ApiError> {
        if attributes.len() > self.limits.sample_labels {
            let (count, most) = (attributes.len(), self.limits.sample_labels);
            return Err(malformed(format!("a sample has {count} attributes; limit {most}")));
        }
        let mut pairs = Vec::new();
        for &index in attributes {
            let attribute = row(&self.dictionary.attribute_table, index, "attribute_table")?;
            if let Some(value) = self.text_of(attribute.value.as_ref())? {
                pairs.push((self.string(attribute.key_strindex)?, value));
            }
        }
        let mut labels = with_sample_labels(labels, pairs.into_iter(), self.limits)?;
        kind.label(&mut labels);
        let key = batch.series(labels);
        if batch.all_series().len() > self.limits.series {
            return Err(malformed(format!("its samples are of more than {} series", self.limits.series)));
        }
        Ok(key)
    }

    fn stack(&mut self, batch: &mut Batch, index: i32) -> Result<StackNodeId, ApiError> {
        if let Some(&known) = self.stacks.get(&index) {
            return Ok(known);
        }
        let stack = row(&self.dictionary.stack_table, index, "stack_table")?;
        for &location in stack.location_indices.iter().rev() {
            let place = location as usize;
            if self.frames.get(place).is_none_or(Option::is_none) {
                let frames = self.location(batch, location)?;
                self.frames[place] = Some(frames);
            }
            for &frame in self.frames[place].iter().flatten() {
                self.builder.add(&mut batch.dictionary, frame)?;
            }
        }
        let node = self.builder.end().unwrap_or_else(|| without_stack(batch));
        self.stacks.insert(index, node);
        Ok(node)
    }

    /// The frames of a location, outermost first. Native frames have an address in their file and get names later.
    fn location(&mut self, batch: &mut Batch, index: i32) -> Result<Vec<FrameKey>, ApiError> {
        let dictionary = self.dictionary;
        let location = row(&dictionary.location_table, index, "location_table")?;
        let mut file = StoredFrame { address: location.address, ..StoredFrame::default() };
        if location.mapping_index != 0 {
            let mapping = row(&dictionary.mapping_table, location.mapping_index, "mapping_table")?;
            file.mapping = self.text(batch, mapping.filename_strindex)?;
            if mapping.memory_start > 0
                && (mapping.memory_start..mapping.memory_limit).contains(&location.address)
            {
                file.address = (location.address - mapping.memory_start).saturating_add(mapping.file_offset);
                file.is_file_offset = true;
            }
            for &attribute in &mapping.attribute_indices {
                let attribute = row(&dictionary.attribute_table, attribute, "attribute_table")?;
                let is_build_id = self.string(attribute.key_strindex)? == "process.executable.build_id.gnu";
                if let Some(build_id) = self.text_of(attribute.value.as_ref())?.filter(|_| is_build_id) {
                    file.build_id = batch.dictionary.text(build_id);
                }
            }
        }
        let mut lines = Vec::with_capacity(location.lines.len());
        for line in &location.lines {
            let function = row(&dictionary.function_table, line.function_index, "function_table")?;
            let function = LineFunction {
                name: self.text(batch, function.name_strindex)?,
                system_name: self.text(batch, function.system_name_strindex)?,
                file: self.text(batch, function.filename_strindex)?,
                start_line: function.start_line,
            };
            lines.push(LocationLine { function: Some(function), line: line.line });
        }
        Ok(location::frames(&mut batch.dictionary, file, &lines))
    }
}

/// Whether all samples of a profile have a value for each of their times, or only times.
fn has_timestamps(profile: &Profile) -> bool {
    profile.samples.iter().all(|sample| {
        let times = sample.timestamps_unix_nano.len();
        times > 0 && [0, times].contains(&sample.values.len())
    })
}

/// Number of samples that a sample of the message stands for: one for each of its times, else what its values `sum` up to.
fn number_of(sample: &OtlpSample, sum: i64) -> i64 {
    match sample.timestamps_unix_nano.len() {
        0 => sum,
        times => i64::try_from(times).unwrap_or(i64::MAX),
    }
}

/// The sum of a sample's values; without values, the number of its timestamps: each is one period.
fn value_of(place: usize, sample: &OtlpSample) -> Result<i64, ApiError> {
    if sample.values.is_empty() && sample.timestamps_unix_nano.is_empty() {
        return Err(malformed(format!(
            "sample {place} has neither values nor timestamps: the sender speaks another version of OpenTelemetry's profiles; this server reads opentelemetry-proto 1.10 and later"
        )));
    }
    if sample.values.is_empty() {
        return Ok(i64::try_from(sample.timestamps_unix_nano.len()).unwrap_or(i64::MAX));
    }
    let mut sum = 0_i64;
    for &value in &sample.values {
        sum = sum
            .checked_add(value)
            .filter(|_| value >= 0)
            .ok_or_else(|| malformed(format!("the values of sample {place} are negative or too large")))?;
    }
    Ok(sum)
}
