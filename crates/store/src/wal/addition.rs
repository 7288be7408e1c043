//! The addition of a batch to its head: samples, and the texts, frames, stacks and series that no earlier record of the segment has.
//!
//! A service sends the same stacks again and again, so most records are samples alone. Ids are those of the head, and each record has the first ids that
//! it defines: after a damaged record, the ids of the next one still have their meaning.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::record::encode;
use crate::batch::{Batch, StoredSample};
use crate::dictionary::{StackFrames, StackNodeId, StoredFrame};
use crate::labels::Labels;
use crate::taken::RequestKey;

/// Numbers of texts, frames, stacks and series of a head that are in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Logged {
    pub texts: u32,
    pub frames: u32,
    pub nodes: u32,
    pub series: u32,
}

impl Logged {
    /// All that a head has.
    pub fn all(head: &Batch) -> Self {
        let [texts, frames, nodes, _] = head.dictionary.lengths().map(id);
        Self { texts, frames, nodes, series: id(head.all_series().len()) }
    }
}

/// The addition of a batch to the head of its tenant.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Addition<'a> {
    pub tenant: Cow<'a, str>,
    /// First ids that it defines.
    pub from: Logged,
    pub texts: Vec<Cow<'a, str>>,
    pub frames: Vec<Cow<'a, StoredFrame>>,
    pub nodes: Vec<NewNode>,
    pub series: Vec<Cow<'a, Labels>>,
    /// Series of each sample, like the stack and the milliseconds as the difference from the sample before.
    pub series_steps: Vec<i64>,
    pub stack_steps: Vec<i64>,
    pub time_steps: Vec<i64>,
    pub values: Vec<i64>,
}

/// A new node of the tree of stacks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NewNode {
    /// Distance to the caller's id; 0 for the outermost frame.
    pub to_caller: u32,
    pub frame: u32,
}

/// Encodes what a head has beside `logged`, with its samples from `first_sample` on. Returns `None` if it exceeds 4 GiB.
pub(crate) fn encode_addition(
    tenant: &str,
    head: &Batch,
    logged: Logged,
    first_sample: usize,
    request: Option<RequestKey>,
) -> Option<Vec<u8>> {
    let dictionary = &head.dictionary;
    let new = head.samples().get(first_sample..)?;
    let node = |(place, node): (usize, &StackFrames)| NewNode {
        to_caller: node.caller.map_or(0, |StackNodeId(caller)| id(place).saturating_sub(caller)),
        frame: node.frame.0,
    };
    let addition = Addition {
        tenant: tenant.into(),
        from: logged,
        texts: dictionary.texts().skip(logged.texts as usize).map(Cow::Borrowed).collect(),
        frames: dictionary.frames().skip(logged.frames as usize).map(Cow::Borrowed).collect(),
        nodes: dictionary.nodes().enumerate().skip(logged.nodes as usize).map(node).collect(),
        series: head.all_series().skip(logged.series as usize).map(Cow::Borrowed).collect(),
        series_steps: differences(new, |sample| sample.series.0.into()),
        stack_steps: differences(new, |sample| sample.stack.0.into()),
        time_steps: differences(new, |sample| sample.time.0),
        values: new.iter().map(|sample| sample.value).collect(),
    };
    encode(&addition, request)
}

fn differences(samples: &[StoredSample], column: impl Fn(&StoredSample) -> i64) -> Vec<i64> {
    let before = std::iter::once(0).chain(samples.iter().map(&column));
    samples.iter().zip(before).map(|(sample, before)| column(sample).wrapping_sub(before)).collect()
}

fn id(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
