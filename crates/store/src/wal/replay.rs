//! Heads made of a segment's records again.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::addition::Addition;
use super::record::{Content, Record};
use crate::batch::{Batch, Millis, SeriesKey, StoredSample};
use crate::dictionary::{Dictionary, FrameKey, StackNodeId, StoredFrame, TextId};
use crate::taken::RequestKey;

/// Name of frames that only a damaged record had.
const DAMAGED: &str = "[damaged log]";

/// Contents of a segment.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// The content of each tenant's head.
    pub heads: HashMap<String, Batch>,
    /// Keys of the requests of all records.
    pub requests: Vec<RequestKey>,
    pub records: usize,
    /// Bytes that belong to no complete record.
    pub damaged: u64,
    /// Samples of complete records whose series only a damaged one had. They are left out.
    pub samples_without_series: u64,
    ids: HashMap<String, Ids>,
}

type ById<T> = HashMap<u32, T, RandomState>;

/// Ids in the head of what the records call by theirs. They differ after a damaged record.
#[derive(Debug, Default)]
struct Ids {
    texts: ById<TextId>,
    frames: ById<FrameKey>,
    nodes: ById<StackNodeId>,
    series: ById<SeriesKey>,
}

impl Replay {
    pub(super) fn take(&mut self, record: Record) {
        self.records += 1;
        self.requests.extend(record.request);
        match record.content {
            Content::Whole(whole) => self.heads.entry(whole.tenant).or_default().absorb(&whole.batch),
            Content::Addition(addition) => {
                let head = self.heads.entry(addition.tenant.to_string()).or_default();
                let ids = self.ids.entry(addition.tenant.to_string()).or_default();
                ids.define(&addition, head);
                self.samples_without_series += ids.add_samples(&addition, head);
            }
        }
    }
}

impl Ids {
    fn define(&mut self, addition: &Addition<'_>, head: &mut Batch) {
        let Addition { from, texts, frames, nodes, series, .. } = addition;
        let dictionary = &mut head.dictionary;
        for (id, text) in (from.texts..).zip(texts) {
            self.texts.insert(id, dictionary.text(text));
        }
        for (id, frame) in (from.frames..).zip(frames) {
            let frame = frame.with_texts(|text| self.text(text, dictionary));
            self.frames.insert(id, dictionary.frame(frame));
        }
        for (id, node) in (from.nodes..).zip(nodes) {
            let caller = (node.to_caller > 0).then(|| self.node(id.wrapping_sub(node.to_caller), dictionary));
            let frame = self.frame(node.frame, dictionary);
            self.nodes.insert(id, dictionary.call(caller, frame));
        }
        for (id, labels) in (from.series..).zip(series) {
            self.series.insert(id, head.series_of(labels));
        }
    }

    /// Adds the samples. Returns how many were left out, because no series is known for them.
    fn add_samples(&self, addition: &Addition<'_>, head: &mut Batch) -> u64 {
        let mut left_out = 0;
        let columns = addition.series_steps.iter().zip(&addition.stack_steps).zip(&addition.time_steps);
        let (mut series, mut stack, mut time) = (0_i64, 0_i64, 0_i64);
        for (((series_step, stack_step), time_step), &value) in columns.zip(&addition.values) {
            series = series.wrapping_add(*series_step);
            stack = stack.wrapping_add(*stack_step);
            time = time.wrapping_add(*time_step);
            let known = u32::try_from(series).ok().and_then(|id| self.series.get(&id));
            let Some(&series) = known else {
                left_out += 1;
                continue;
            };
            let stack = self.node(u32::try_from(stack).unwrap_or(u32::MAX), &mut head.dictionary);
            head.push(StoredSample { series, time: Millis(time), stack, value });
        }
        left_out
    }

    fn text(&self, id: TextId, dictionary: &mut Dictionary) -> TextId {
        match (id, self.texts.get(&id.0)) {
            (_, Some(&text)) => text,
            (TextId(0), None) => TextId(0),
            _ => dictionary.text(DAMAGED),
        }
    }

    fn frame(&self, id: u32, dictionary: &mut Dictionary) -> FrameKey {
        self.frames.get(&id).copied().unwrap_or_else(|| {
            let function = dictionary.text(DAMAGED);
            dictionary.frame(StoredFrame { function, ..StoredFrame::default() })
        })
    }

    /// The node, or an outermost frame that says that it is lost.
    fn node(&self, id: u32, dictionary: &mut Dictionary) -> StackNodeId {
        self.nodes.get(&id).copied().unwrap_or_else(|| {
            let frame = self.frame(u32::MAX, dictionary);
            dictionary.call(None, frame)
        })
    }
}
