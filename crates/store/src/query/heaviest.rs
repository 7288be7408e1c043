//! The heaviest stacks of a selection with their complete frames, in bounded memory.
//!
//! Stacks are chosen by the numbers they have in each block, before any frame is read: all frames of a large selection would not fit into memory.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{Selected, in_block, in_head};
use crate::batch::{Batch, SeriesKey, StoredSample};
use crate::block::{Block, BlockIndex};
use crate::dictionary::StackNodeId;
use crate::error::StoreError;
use crate::head::Head;
use crate::labels::{Labels, PROFILE_TYPE};

/// Most stacks of a selection that are weighed at a time, as a multiple of those that are kept.
const WEIGHED: usize = 4;

/// The heaviest stacks of a selection. Each sample is the sum of all values that a series has for a stack, at the start of the selection.
pub struct HeaviestStacks {
    /// The sums.
    pub batch: Batch,
    /// Number of stacks that were taken. Equal stacks count once for each block.
    pub taken: u64,
    /// Number of all stacks.
    pub of: u64,
}

/// A head or block that samples are read from.
enum Source<'s> {
    Head(&'s Head),
    Block(&'s Arc<Block>, Arc<BlockIndex>),
}

/// A stack of a source, by its number there.
#[derive(Clone, Copy)]
struct WeighedStack {
    source: u32,
    stack: u32,
    weight: u64,
}

/// Value of each series and stack of a source, by number.
type SeriesSums = HashMap<(u32, u32), i64, RandomState>;

impl Selected {
    /// The at most `most` stacks with the largest values of `profile_type`; fewer if their frames take more memory than a query may.
    ///
    /// # Errors
    /// A block cannot be read, the query is cancelled, or there is not even memory for one stack.
    pub fn heaviest_stacks(&self, profile_type: &str, most: usize) -> Result<HeaviestStacks, StoreError> {
        let sources = self.sources()?;
        let (mut chosen, of) = self.weigh(&sources, profile_type, most)?;
        loop {
            match self.sums_of(&sources, &mut chosen) {
                Err(StoreError::TooLarge { .. }) if chosen.len() > 1 => {
                    let half = chosen.len() / 2;
                    keep_heaviest(&mut chosen, half);
                }
                batch => {
                    return Ok(HeaviestStacks { batch: batch?, taken: chosen.len() as u64, of });
                }
            }
        }
    }

    /// The heaviest stacks of all sources, and the number of all.
    fn weigh(
        &self,
        sources: &[Source<'_>],
        profile_type: &str,
        most: usize,
    ) -> Result<(Vec<WeighedStack>, u64), StoreError> {
        let (mut all, mut of) = (Vec::new(), 0);
        for (place, source) in sources.iter().enumerate() {
            let stacks =
                or_skipped(self, source, self.weighed(source, place, profile_type))?.unwrap_or_default();
            of += stacks.len() as u64;
            all.extend(stacks);
            if all.len() > most.saturating_mul(WEIGHED) {
                keep_heaviest(&mut all, most);
            }
        }
        keep_heaviest(&mut all, most);
        Ok((all, of))
    }

    /// The sums of these stacks, with their frames. Sorts the stacks.
    fn sums_of(&self, sources: &[Source<'_>], chosen: &mut [WeighedStack]) -> Result<Batch, StoreError> {
        chosen.sort_unstable_by_key(|one| (one.source, one.stack));
        let mut batch = Batch::default();
        for stacks in chosen.chunk_by(|one, other| one.source == other.source) {
            let source = &sources[stacks[0].source as usize];
            let numbers: Vec<u32> = stacks.iter().map(|one| one.stack).collect();
            or_skipped(self, source, self.add_stacks(source, &numbers, &mut batch))?;
        }
        Ok(batch)
    }

    fn sources(&self) -> Result<Vec<Source<'_>>, StoreError> {
        let mut sources: Vec<Source<'_>> = self.heads.iter().map(|head| Source::Head(head)).collect();
        self.each_block(|block| {
            sources.push(Source::Block(block, block.index(&self.shared.bucket, &self.shared.cache)?));
            Ok(())
        })?;
        Ok(sources)
    }

    /// The selected stacks of a source.
    fn weighed(
        &self,
        source: &Source<'_>,
        place: usize,
        kind: &str,
    ) -> Result<Vec<WeighedStack>, StoreError> {
        let mut weights: HashMap<u32, u64, RandomState> = HashMap::default();
        let is_weighed = source.of_series(|labels| labels.get(PROFILE_TYPE) == Some(kind));
        self.each_row(source, |series, stack, value| {
            let weight = weights.entry(stack).or_default();
            if is_weighed.get(series as usize) == Some(&true) {
                *weight = weight.saturating_add(value.unsigned_abs());
            }
        })?;
        let source = place as u32;
        Ok(weights.into_iter().map(|(stack, weight)| WeighedStack { source, stack, weight }).collect())
    }

    /// Adds the sums of stacks of a source, whose numbers are ascending.
    fn add_stacks(&self, source: &Source<'_>, chosen: &[u32], all: &mut Batch) -> Result<(), StoreError> {
        let mut sums = SeriesSums::default();
        self.each_row(source, |series, stack, value| {
            if chosen.binary_search(&stack).is_ok() {
                let sum = sums.entry((series, stack)).or_default();
                *sum = sum.saturating_add(value);
            }
        })?;
        match source {
            Source::Head(head) => {
                let batch = head.read();
                let names = self.names(&batch.dictionary);
                let stacks = chosen.iter().map(|&stack| StackNodeId(stack));
                let go_on = || self.cancellation.check();
                let nodes = all.dictionary.absorb_stacks(&batch.dictionary, stacks, &names, go_on)?;
                self.limit_stacks(all)?;
                let node = |stack: u32| nodes.get(&StackNodeId(stack)).copied();
                self.push(sums, |series| batch.labels(SeriesKey(series)), node, all);
            }
            Source::Block(block, index) => {
                let used: Vec<i32> = chosen.iter().map(|&stack| stack.cast_signed()).collect();
                let nodes = in_block::add_used_stacks(block, self, &used, all)?;
                let node = |stack: u32| nodes.get(stack as usize).copied().flatten();
                self.push(sums, |series| &index.series[series as usize], node, all);
            }
        }
        self.limit_stacks(all)
    }

    /// A view of stacks exists in more forms than an export: as a profile, and as what is shown of it.
    fn limit_stacks(&self, all: &Batch) -> Result<(), StoreError> {
        StoreError::check_memory(all.memory(), self.most_batch() / 4 * 3)
    }

    fn push<'l>(
        &self,
        sums: SeriesSums,
        labels: impl Fn(u32) -> &'l Labels,
        node: impl Fn(u32) -> Option<StackNodeId>,
        all: &mut Batch,
    ) {
        let mut sums: Vec<((u32, u32), i64)> = sums.into_iter().collect();
        sums.sort_unstable();
        for of_series in sums.chunk_by(|one, other| one.0.0 == other.0.0) {
            let series = all.series_of(labels(of_series[0].0.0));
            for &((_, stack), value) in of_series {
                if let Some(stack) = node(stack) {
                    all.push(StoredSample { series, time: self.selection.from, stack, value });
                }
            }
        }
    }

    /// Calls `visit` with series, stack and value of each selected row.
    fn each_row(&self, source: &Source<'_>, mut visit: impl FnMut(u32, u32, i64)) -> Result<(), StoreError> {
        match source {
            Source::Head(head) => in_head::each_row(head, self, &mut visit),
            Source::Block(block, index) => in_block::each_row((block, index), self, &mut visit),
        }
    }
}

impl Source<'_> {
    /// Tests each series, by number.
    fn of_series(&self, is: impl Fn(&Labels) -> bool) -> Vec<bool> {
        match self {
            Self::Head(head) => head.read().all_series().map(is).collect(),
            Self::Block(_, index) => index.series.iter().map(is).collect(),
        }
    }
}

/// `None` for a block that turns out to be damaged, which is left out of all answers.
fn or_skipped<T>(
    selected: &Selected,
    source: &Source<'_>,
    result: Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    match (result, source) {
        (Err(error @ StoreError::Damaged { .. }), Source::Block(block, _)) => {
            selected.shared.set_aside(block, &error);
            Ok(None)
        }
        (result, _) => result.map(Some),
    }
}

/// Keeps `most` of the stacks.
fn keep_heaviest(stacks: &mut Vec<WeighedStack>, most: usize) {
    if stacks.len() > most {
        stacks.select_nth_unstable_by_key(most, |one| (Reverse(one.weight), one.source, one.stack));
        stacks.truncate(most);
    }
}
