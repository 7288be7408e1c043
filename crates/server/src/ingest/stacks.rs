//! Stacks of names with counts: folded text, single lines, and the two tree formats of Pyroscope's older agents.

use plumb_store::{Batch, FrameKey, Millis, SeriesKey, StackNodeId, StoredFrame, StoredSample};

use super::builder::{StackBuilder, check_batch, check_text};
use super::decoded::too_large;
use crate::error::ApiError;
use crate::options::IngestLimits;

/// Deepest tree.
const MOST_LEVELS: usize = 4096;

/// Formats of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackFormat {
    /// `a;b;c 3`, a stack and its count on each line.
    Groups,
    /// `a;b;c`, a line for each sample.
    Lines,
    /// A tree of prefixes of such lines.
    Trie,
    /// A tree of frames.
    Tree,
}

/// The destination of stacks: series, time, and the value of one count.
pub(crate) struct Target<'b> {
    pub batch: &'b mut Batch,
    pub series: SeriesKey,
    /// Series of the counts, where values are times.
    pub counts: Option<SeriesKey>,
    pub time: Millis,
    pub factor: i64,
    pub stacks: StackBuilder,
    pub limits: &'b IngestLimits,
}

impl Target<'_> {
    fn frame(&mut self, name: &str) -> Result<FrameKey, ApiError> {
        check_text(name, self.limits)?;
        let function = self.batch.dictionary.text(name);
        Ok(self.batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() }))
    }

    fn sample(&mut self, stack: StackNodeId, count: u64) -> Result<(), ApiError> {
        check_batch(self.batch, self.limits)?;
        let value = i64::try_from(count).ok().and_then(|count| count.checked_mul(self.factor));
        let value = value.ok_or_else(|| ApiError::invalid(format!("the count {count} is too large")))?;
        let (series, time) = (self.series, self.time);
        self.batch.push(StoredSample { series, time, stack, value });
        if let Some(series) = self.counts {
            self.batch.push(StoredSample { series, time, stack, value: value / self.factor });
        }
        Ok(())
    }

    fn folded(&mut self, stack: &str, count: u64) -> Result<(), ApiError> {
        self.stacks.read(stack.len())?;
        for name in stack.split(';').map(str::trim).filter(|name| !name.is_empty()) {
            let frame = self.frame(name)?;
            self.stacks.add(&mut self.batch.dictionary, frame)?;
        }
        self.stacks.end().map_or(Ok(()), |stack| self.sample(stack, count))
    }
}

/// Parses the stacks in the bytes and adds them.
pub(crate) fn add(format: StackFormat, bytes: &[u8], target: &mut Target<'_>) -> Result<(), ApiError> {
    let most = target.limits.unpacked;
    if bytes.len() > most {
        return Err(too_large(most));
    }
    match format {
        StackFormat::Groups | StackFormat::Lines => text(format, bytes, target),
        StackFormat::Trie => trie(bytes, target),
        StackFormat::Tree => tree(bytes, target),
    }
}

fn text(format: StackFormat, bytes: &[u8], target: &mut Target<'_>) -> Result<(), ApiError> {
    let text = str::from_utf8(bytes);
    let text = text.map_err(|error| ApiError::invalid(format!("the stacks are no UTF-8 text: {error}")))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        let (stack, count) = match format {
            StackFormat::Lines => (line, 1),
            _ => {
                let parts =
                    line.rsplit_once(' ').and_then(|(stack, count)| Some((stack, count.parse().ok()?)));
                parts.ok_or_else(|| {
                    let number = number + 1;
                    ApiError::invalid(format!("line {number} does not end with a count: write a;b;c 12"))
                })?
            }
        };
        target.folded(stack, count)?;
    }
    Ok(())
}

/// The unread bytes.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn number(&mut self) -> Result<u64, ApiError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(cut)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ApiError::invalid("malformed tree: a number has too many bytes"))
    }

    fn node(&mut self) -> Result<Node<'b>, ApiError> {
        let length = usize::try_from(self.number()?).map_err(|_| cut())?;
        let (name, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        let value = self.number()?;
        let children = self.number()?;
        // Each child takes at least three bytes.
        if children > self.0.len() as u64 / 3 {
            return Err(cut());
        }
        Ok(Node { name, value, children })
    }
}

fn cut() -> ApiError {
    ApiError::invalid("malformed tree: it ends early")
}

struct Node<'b> {
    name: &'b [u8],
    value: u64,
    children: u64,
}

/// A node comes before its children, which are complete before its next sibling starts.
fn tree(bytes: &[u8], target: &mut Target<'_>) -> Result<(), ApiError> {
    let mut bytes = Bytes(bytes);
    // Number of children still to come, and their caller.
    let mut open: Vec<(u64, Option<StackNodeId>)> = vec![(1, None)];
    while let Some((left, caller)) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        let caller = *caller;
        let node = bytes.node()?;
        // The root is common to all stacks and has no name.
        let stack = if node.name.is_empty() {
            caller
        } else {
            let frame = target.frame(&String::from_utf8_lossy(node.name))?;
            Some(target.batch.dictionary.call(caller, frame))
        };
        if let Some(stack) = stack.filter(|_| node.value > 0) {
            target.sample(stack, node.value)?;
        }
        if open.len() > MOST_LEVELS {
            return Err(ApiError::invalid(format!("the tree has more than {MOST_LEVELS} levels")));
        }
        open.push((node.children, stack));
    }
    Ok(())
}

/// As [`tree`], for nodes whose names are parts of folded stacks to be concatenated.
fn trie(bytes: &[u8], target: &mut Target<'_>) -> Result<(), ApiError> {
    let mut bytes = Bytes(bytes);
    let mut prefix: Vec<u8> = Vec::new();
    // Number of children still to come, and the length of their prefix.
    let mut open: Vec<(u64, usize)> = vec![(1, 0)];
    while let Some((left, length)) = open.last_mut() {
        prefix.truncate(*length);
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        let node = bytes.node()?;
        prefix.extend_from_slice(node.name);
        if node.value > 0 {
            target.folded(&String::from_utf8_lossy(&prefix), node.value)?;
        }
        if open.len() > MOST_LEVELS {
            return Err(ApiError::invalid(format!("the tree has more than {MOST_LEVELS} levels")));
        }
        open.push((node.children, prefix.len()));
    }
    Ok(())
}
