//! A batch: the contents of one request, whatever format it came in.

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::dictionary::{Dictionary, StackNodeId};
use crate::labels::{LabelTexts, Labels};
use crate::taken::RequestKey;

/// Bytes of a label beside its name and value: two strings and their allocations.
const LABEL: usize = 80;

/// Index of a series in a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesKey(pub(crate) u32);

impl SeriesKey {
    /// Index into [`Batch::all_series`].
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

/// Milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl Millis {
    /// Converts nanoseconds since 1970. Saturates at the largest value.
    pub fn of_nanos(nanos: u64) -> Self {
        Self(i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX))
    }
}

/// The value of one stack in one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSample {
    /// Series that it belongs to.
    pub series: SeriesKey,
    /// Timestamp. Samples of a series with the same timestamp form one profile.
    pub time: Millis,
    /// The stack.
    pub stack: StackNodeId,
    /// Value, in the unit of the series' profile type.
    pub value: i64,
}

/// Samples of any number of series, with everything that they refer to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// Strings, frames and stacks.
    pub dictionary: Dictionary,
    pub(crate) series: IndexSet<Labels, RandomState>,
    pub(crate) samples: Vec<StoredSample>,
    /// Bytes of the labels of all series. 0 after reading from the log: a batch read from there only moves into a head.
    #[serde(skip)]
    label_bytes: usize,
    /// Texts of labels that came from other batches.
    #[serde(skip)]
    label_texts: LabelTexts,
    /// Key of its request, if a repetition of that request must be ignored.
    #[serde(skip)]
    pub request: Option<RequestKey>,
}

impl Batch {
    /// Returns the key of a series, adding the series if needed.
    pub fn series(&mut self, labels: Labels) -> SeriesKey {
        let bytes: usize = labels.iter().map(|(name, value)| name.len() + value.len() + LABEL).sum();
        let (place, is_new) = self.series.insert_full(labels);
        self.label_bytes += if is_new { bytes } else { 0 };
        SeriesKey(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Adds a sample, unless its value is zero.
    pub fn push(&mut self, sample: StoredSample) {
        if sample.value != 0 {
            self.samples.push(sample);
        }
    }

    /// The labels of a series.
    pub fn labels(&self, series: SeriesKey) -> &Labels {
        &self.series[series.0 as usize]
    }

    /// All series, by id.
    pub fn all_series(&self) -> impl ExactSizeIterator<Item = &Labels> {
        self.series.iter()
    }

    /// All samples.
    pub fn samples(&self) -> &[StoredSample] {
        &self.samples
    }

    /// Approximate memory use in bytes.
    pub fn memory(&self) -> usize {
        self.dictionary.memory() + self.label_bytes + self.samples.len() * size_of::<StoredSample>()
    }

    /// Adds the contents of another batch.
    pub(crate) fn absorb(&mut self, other: &Batch) {
        let nodes = self.dictionary.absorb(&other.dictionary);
        let series: Vec<SeriesKey> = other.series.iter().map(|labels| self.series_of(labels)).collect();
        self.samples.extend(other.samples.iter().map(|&sample| StoredSample {
            series: series[sample.series.0 as usize],
            stack: nodes[sample.stack.0 as usize],
            ..sample
        }));
    }

    pub(crate) fn series_of(&mut self, labels: &Labels) -> SeriesKey {
        match self.series.get_index_of(labels) {
            Some(place) => SeriesKey(u32::try_from(place).unwrap_or(u32::MAX)),
            None => {
                let labels = self.label_texts.of(labels);
                self.series(labels)
            }
        }
    }

    /// Whether all ids are valid: those read from a file may not be.
    pub(crate) fn is_whole(&self) -> bool {
        let dictionary = &self.dictionary;
        let (texts, frames, nodes) =
            (dictionary.texts().len(), dictionary.frames().len(), dictionary.nodes().len());
        let text = |id: crate::dictionary::TextId| (id.0 as usize) < texts;
        dictionary.frames().all(|frame| {
            [frame.function, frame.system_name, frame.file, frame.mapping, frame.build_id]
                .into_iter()
                .all(text)
        }) && dictionary.nodes().enumerate().all(|(place, node)| {
            (node.frame.0 as usize) < frames && node.caller.is_none_or(|caller| (caller.0 as usize) < place)
        }) && self
            .samples
            .iter()
            .all(|sample| (sample.series.0 as usize) < self.series.len() && (sample.stack.0 as usize) < nodes)
    }
}
