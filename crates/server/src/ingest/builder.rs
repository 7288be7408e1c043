//! Builds the stacks of a request frame by frame, within limits: a single stack of millions of frames takes a few kilobytes on the wire, and would make
//! each later query of its tenant slow.

use plumb_store::{Batch, Dictionary, FrameKey, StackNodeId};

use super::decoded::too_large;
use crate::error::ApiError;
use crate::options::{FrameLimits, IngestLimits};

/// Bytes of text that cost as much as a frame.
const BYTES_PER_FRAME: usize = 64;

/// Refuses a request of which more would be stored than memory is for.
pub(super) fn check_batch(batch: &Batch, limits: &IngestLimits) -> Result<(), ApiError> {
    if batch.memory() > limits.memory.batch { Err(too_large(limits.memory.batch)) } else { Ok(()) }
}

/// Refuses a text that is too long for a name: each answer that shows it would carry it.
pub(super) fn check_text(text: &str, limits: &IngestLimits) -> Result<(), ApiError> {
    if text.len() <= limits.memory.text {
        return Ok(());
    }
    let begin: String = text.chars().take(40).collect();
    let (length, most) = (text.len(), limits.memory.text);
    Err(ApiError::invalid(format!(
        "the name {begin:?}... has {length} bytes; limit {most}: shorten it before sending"
    )))
}

/// The stacks of a request.
pub(crate) struct StackBuilder {
    limits: FrameLimits,
    left: usize,
    depth: usize,
    caller: Option<StackNodeId>,
}

impl StackBuilder {
    /// A builder without stacks.
    pub fn new(limits: &IngestLimits) -> Self {
        let limits = limits.frames;
        Self { limits, left: limits.of_request, depth: 0, caller: None }
    }

    /// Adds the callee of the frame that was added last; the outermost frame first.
    pub fn add(&mut self, dictionary: &mut Dictionary, frame: FrameKey) -> Result<(), ApiError> {
        self.depth += 1;
        let most = self.limits.of_stack;
        if self.depth > most {
            return Err(ApiError::invalid(format!("a stack has more than {most} frames")));
        }
        self.spend(1)?;
        self.caller = Some(dictionary.call(self.caller, frame));
        Ok(())
    }

    /// Counts text that is read again for each stack.
    pub fn read(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.spend(bytes / BYTES_PER_FRAME)
    }

    fn spend(&mut self, frames: usize) -> Result<(), ApiError> {
        let left = self.left.checked_sub(frames).ok_or_else(|| {
            let most = self.limits.of_request;
            ApiError::invalid(format!("the stacks have more than {most} frames together"))
        })?;
        self.left = left;
        Ok(())
    }

    /// Ends a stack, and returns its innermost call; `None` without a frame.
    pub fn end(&mut self) -> Option<StackNodeId> {
        self.depth = 0;
        self.caller.take()
    }
}
