//! Sources that a block is written from: a head, or blocks to compact.

use crate::batch::{Batch, StoredSample};
use crate::dictionary::{Dictionary, StackNodeId};
use crate::error::StoreError;
use crate::labels::Labels;

/// Samples by series, with their stacks in a dictionary that several sources share.
pub(crate) trait BlockSource {
    /// Adds strings, frames and stacks to the dictionary. Comes before samples are read.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] if the dictionary would take more than `most_bytes`.
    fn add_stacks(&mut self, all: &mut Dictionary, most_bytes: usize) -> Result<(), StoreError>;
    /// The series.
    fn series(&self) -> Vec<&Labels>;
    /// The stacks of a series' samples, in any order and any number of times.
    fn stacks(&self, series: usize) -> Result<Vec<StackNodeId>, StoreError>;
    /// The samples of a series, in any order.
    fn samples(&self, series: usize) -> Result<Vec<StoredSample>, StoreError>;
}

/// A batch with its samples indexed by series.
pub(crate) struct BatchSource<'b> {
    batch: &'b Batch,
    by_series: Vec<Vec<u32>>,
    /// Node in the shared dictionary by node of the batch.
    nodes: Vec<StackNodeId>,
}

impl<'b> BatchSource<'b> {
    pub fn new(batch: &'b Batch) -> Self {
        let mut by_series = vec![Vec::new(); batch.series.len()];
        for (place, sample) in batch.samples.iter().enumerate() {
            by_series[sample.series.0 as usize].push(place as u32);
        }
        Self { batch, by_series, nodes: Vec::new() }
    }

    fn of_series(&self, series: usize) -> impl Iterator<Item = StoredSample> {
        self.by_series[series].iter().map(|&place| {
            let sample = self.batch.samples[place as usize];
            StoredSample { stack: self.nodes[sample.stack.0 as usize], ..sample }
        })
    }
}

impl BlockSource for BatchSource<'_> {
    fn add_stacks(&mut self, all: &mut Dictionary, _: usize) -> Result<(), StoreError> {
        self.nodes = all.absorb(&self.batch.dictionary);
        Ok(())
    }

    fn series(&self) -> Vec<&Labels> {
        self.batch.series.iter().collect()
    }

    fn stacks(&self, series: usize) -> Result<Vec<StackNodeId>, StoreError> {
        Ok(self.of_series(series).map(|sample| sample.stack).collect())
    }

    fn samples(&self, series: usize) -> Result<Vec<StoredSample>, StoreError> {
        Ok(self.of_series(series).collect())
    }
}
