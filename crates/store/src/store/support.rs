//! Helpers of the tests of stores.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::batch::{Batch, Millis, StoredSample};
use crate::dictionary::StoredFrame;
use crate::labels::Labels;

/// Runs a store operation to its end.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A profile with one sample.
pub(super) fn one_sample(time: Millis) -> Batch {
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", "a")]));
    let function = batch.dictionary.text("main");
    let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
    let stack = batch.dictionary.call(None, frame);
    batch.push(StoredSample { series, time, stack, value: 1 });
    batch
}
