//! Queries: select series and a time range, return sums. Heads and blocks are queried alike.
//!
//! A block that turns out to be damaged is skipped, and [`Selected`] counts these.

mod heaviest;
mod in_block;
mod in_head;
mod name_table;
mod named_stacks;
mod own_calls;
mod prepare;
mod stack_parts;
mod thinning;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use self::heaviest::HeaviestStacks;
use self::own_calls::OwnCalls;
pub(crate) use self::prepare::prepare;
use self::thinning::LevelCounts;
pub use self::thinning::RowsTaken;
pub(crate) use self::thinning::Thinning;
use crate::batch::{Batch, Millis};
use crate::block::{Block, Part};
use crate::calls::{CALL_BYTES, CallTree, SharedCalls};
use crate::cancellation::Cancellation;
use crate::dictionary::Dictionary;
use crate::error::StoreError;
use crate::head::Head;
use crate::labels::Labels;
use crate::resolved::FrameNames;
use crate::selector::Selector;
use crate::shared::Shared;
use crate::tenant::Tenant;

/// Calls that a query keeps while it reads, for each one that is needed: a call may be small in the blocks that are read first.
const NEEDED: usize = 16;
/// Average number of calls that only one stack has, where there are many different stacks.
const CALLS_OF_STACK: usize = 20;
/// A selection is a small part of its blocks' samples if it has fewer than 1/SMALL_PART of them.
const SMALL_PART: u64 = 8;
/// Stacks that are added to the shared calls whatever part of them is selected.
const FEW_STACKS: usize = 20_000;

/// The samples that a query selects.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Selects the series.
    pub selector: Selector,
    /// First timestamp, inclusive.
    pub from: Millis,
    /// Last timestamp, inclusive.
    pub until: Millis,
}

impl Selection {
    fn includes(&self, time: Millis) -> bool {
        (self.from..=self.until).contains(&time)
    }

    /// Whether each series is selected.
    fn chosen<'l>(&self, series: impl Iterator<Item = &'l Labels>) -> Vec<bool> {
        series.map(|labels| self.selector.matches(labels)).collect()
    }
}

/// Snapshot of a tenant's data for a selection, taken when it was requested.
pub struct Selected {
    pub(crate) selection: Selection,
    pub(crate) thinning: Thinning,
    pub(crate) heads: Vec<Arc<Head>>,
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) calls: Arc<RwLock<SharedCalls>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) tenant: Tenant,
    pub(crate) cancellation: Cancellation,
}

/// Total of a profile: all samples of a series with the same timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileTotal {
    /// Index of the series in the list returned with it.
    pub series: usize,
    /// Timestamp.
    pub time: Millis,
    /// Sum of its samples.
    pub total: i64,
}

/// Sums by series and time.
type Totals = BTreeMap<Labels, BTreeMap<Millis, i64>>;

impl Selected {
    /// Sets the cancellation: once it is cancelled, queries fail with [`StoreError::Cancelled`].
    pub fn with_cancellation(self, cancellation: Cancellation) -> Self {
        Self { cancellation, ..self }
    }

    /// Limits the selection to `rows` rows, keeping whole profiles spread over its time, or to more if a single timestamp has more. Returns the
    /// counts if rows are left out.
    ///
    /// # Errors
    /// An index of a block cannot be read, or the query is cancelled.
    pub fn at_most(self, rows: usize) -> Result<(Self, Option<RowsTaken>), StoreError> {
        let mut counts = LevelCounts::default();
        self.each_head(|head| in_head::count_rows(head, &self, &mut counts))?;
        self.each_block(|block| in_block::count_rows(block, &self, &mut counts))?;
        let (thinning, rows) = counts.thinning(rows);
        Ok((Self { thinning, ..self }, (rows.taken < rows.of).then_some(rows)))
    }

    fn includes(&self, time: Millis) -> bool {
        self.selection.includes(time) && self.thinning.takes(time)
    }

    /// The series with samples in the selection, sorted.
    pub fn series(&self) -> Result<Vec<Labels>, StoreError> {
        let mut found = BTreeSet::new();
        self.each_head(|head| in_head::series(head, self, &mut found))?;
        self.each_block(|block| in_block::series(block, self, &mut found))?;
        Ok(found.into_iter().collect())
    }

    /// The total of each series. Unlike [`Self::profiles`], takes no memory per profile.
    pub fn series_totals(&self) -> Result<Vec<(Labels, i64)>, StoreError> {
        let mut totals = BTreeMap::new();
        self.each_head(|head| in_head::series_totals(head, self, &mut totals))?;
        self.each_block(|block| in_block::series_totals(block, self, &mut totals))?;
        Ok(totals.into_iter().collect())
    }

    /// The series, and the totals of their profiles by series and time.
    pub fn profiles(&self) -> Result<(Vec<Labels>, Vec<ProfileTotal>), StoreError> {
        let mut totals = Totals::new();
        self.each_head(|head| in_head::profiles(head, self, &mut totals))?;
        self.each_block(|block| in_block::profiles(block, self, &mut totals))?;
        let (mut series, mut profiles) = (Vec::new(), Vec::new());
        for (place, (labels, times)) in totals.into_iter().enumerate() {
            profiles.extend(times.into_iter().map(|(time, total)| ProfileTotal {
                series: place,
                time,
                total,
            }));
            series.push(labels);
        }
        Ok((series, profiles))
    }

    /// The calls by function name, with their values. If there are very many, the smallest are summed up as `other`.
    pub fn call_tree(&self) -> Result<CallTree<1>, StoreError> {
        tree([self], usize::MAX)
    }

    /// The calls as [`Self::call_tree`] has them. Only the `most` largest are needed.
    pub fn largest_calls(&self, most: usize) -> Result<CallTree<1>, StoreError> {
        tree([self], most)
    }

    /// The samples with their complete frames.
    pub fn batch(&self) -> Result<Batch, StoreError> {
        let mut all = Batch::default();
        self.each_head(|head| in_head::batch(head, self, &mut all))?;
        self.each_block(|block| {
            in_block::batch(block, self, &mut all)?;
            StoreError::check_memory(all.memory(), self.most_batch())
        })?;
        Ok(all)
    }

    /// The selected samples of one of its heads.
    pub(crate) fn of_head(&self, head: &Head) -> Result<Batch, StoreError> {
        let mut batch = Batch::default();
        in_head::raw_batch(head, self, &mut batch)?;
        Ok(batch)
    }

    /// Number of blocks skipped so far because they are damaged.
    pub fn damaged(&self) -> usize {
        self.blocks.iter().filter(|block| block.set_aside.load(Ordering::Relaxed)).count()
    }

    /// Names for the nameless frames of a dictionary.
    fn names(&self, dictionary: &Dictionary) -> FrameNames {
        self.shared.symbols.names(&self.shared.bucket, &self.tenant, dictionary)
    }

    fn each_head(&self, visit: impl FnMut(&Arc<Head>) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.heads.iter().try_for_each(visit)
    }

    fn each_block<'s>(
        &'s self,
        mut visit: impl FnMut(&'s Arc<Block>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for block in &self.blocks {
            self.cancellation.check()?;
            match visit(block) {
                Err(error @ StoreError::Damaged { .. }) => self.shared.set_aside(block, &error),
                other => other?,
            }
        }
        Ok(())
    }

    /// Memory that a batch may take, in bytes: what is made of it takes as much.
    fn most_batch(&self) -> usize {
        self.shared.options.query_bytes / 2
    }
}

/// Discards all calls if there was no room for more. Returns whether there are none.
fn begin_anew_if_full(calls: &RwLock<SharedCalls>) -> bool {
    let mut calls = calls.write().unwrap_or_else(PoisonError::into_inner);
    if calls.is_full {
        *calls = SharedCalls { generation: calls.generation + 1, ..SharedCalls::default() };
    }
    calls.calls.len() == 0
}

/// Value spent in each call itself, by call index; for several selections of one tenant.
fn sums<const SIDES: usize>(
    sides: [&Selected; SIDES],
) -> Result<(RwLockReadGuard<'_, SharedCalls>, [Vec<i64>; SIDES]), StoreError> {
    let were_none = begin_anew_if_full(&sides[0].calls);
    for side in sides {
        prepare(&side.shared, &side.tenant, &side.calls, &side.blocks, &side.cancellation);
    }
    let mut calls = sides[0].calls.write().unwrap_or_else(PoisonError::into_inner);
    // Waiting for the lock may have taken long.
    sides[0].cancellation.check()?;
    for side in sides {
        side.each_head(|head| in_head::extend(head, side, &mut calls))?;
        side.each_block(|block| {
            let added = in_block::calls(block, side, &mut calls);
            if were_none && matches!(added, Err(StoreError::TooLarge { .. })) {
                // The blocks before it are kept: discarding them would not make room.
                block.is_alone.store(true, Ordering::Relaxed);
                calls.is_full = false;
            }
            added.map(drop)
        })?;
    }
    // From here on other queries may sum up too, and none can discard the calls.
    let calls = RwLockWriteGuard::downgrade(calls);
    let mut all: [Vec<i64>; SIDES] = std::array::from_fn(|_| vec![0; calls.calls.len()]);
    for (side, own) in sides.into_iter().zip(&mut all) {
        side.each_head(|head| in_head::sum(head, side, own))?;
        side.each_block(|block| in_block::sum(block, side, &calls, own))?;
    }
    Ok((calls, all))
}

/// The call tree of selections of one tenant, side by side. `most`: number of the largest calls that are needed.
fn tree<const SIDES: usize>(sides: [&Selected; SIDES], most: usize) -> Result<CallTree<SIDES>, StoreError> {
    let cancellation = &sides[0].cancellation;
    if shares_calls(&sides)? {
        match sums(sides) {
            // There was less room than it seemed.
            Err(StoreError::TooLarge { .. }) => {}
            sums => {
                let (shared, own) = sums?;
                return shared.calls.tree(&own, cancellation);
            }
        }
    }
    // An eighth of the memory: while they are reduced, they are there twice.
    let most = most.saturating_mul(NEEDED).min(room(sides[0]) / 8);
    let mut calls = OwnCalls::<SIDES>::new(most, sides[0].shared.options.query_bytes / 4);
    for (place, side) in sides.into_iter().enumerate() {
        side.each_head(|head| in_head::add_calls(head, side, place, &mut calls))?;
        add_blocks(side, place, &mut calls)?;
    }
    calls.tree(cancellation)
}

/// Adds the blocks of a side to the calls of a query. Several are read at a time.
fn add_blocks<const SIDES: usize>(
    side: &Selected,
    place: usize,
    calls: &mut OwnCalls<SIDES>,
) -> Result<(), StoreError> {
    let blocks: Vec<&Arc<Block>> = side.blocks.iter().collect();
    for some in prepare::groups(&blocks) {
        let names = calls.names();
        let read = prepare::read_all(some, |block| in_block::selected_stacks(block, side, place, names));
        let mut parts = Vec::new();
        for (block, read) in some.iter().zip(read) {
            match read {
                Ok(part) => parts.extend(part),
                Err(error @ StoreError::Damaged { .. }) => side.shared.set_aside(block, &error),
                Err(error) => return Err(error),
            }
        }
        calls.add_parts(parts, &side.cancellation)?;
    }
    Ok(())
}

/// Number of calls for which a query has memory.
fn room(selected: &Selected) -> usize {
    selected.shared.options.query_bytes / CALL_BYTES
}

/// Whether to answer from the shared calls: if all blocks are among them, or few stacks have to be added, or most of those are selected and there is
/// room for them.
fn shares_calls(sides: &[&Selected]) -> Result<bool, StoreError> {
    let generation = sides[0].calls.read().unwrap_or_else(PoisonError::into_inner).generation;
    let is_new = |side: &Selected, block: &Block| {
        side.shared.cache.get(&(block.folder.clone(), Part::Calls(generation))).is_none()
    };
    let is_alone = |side: &Selected| {
        let mut heads = side.heads.iter().map(|head| &head.is_alone);
        let mut blocks = side.blocks.iter().map(|block| &block.is_alone);
        heads.any(|one| one.load(Ordering::Relaxed)) || blocks.any(|one| one.load(Ordering::Relaxed))
    };
    if sides.iter().any(|side| is_alone(side)) {
        return Ok(false);
    }
    let (mut added, mut samples) = (0_u64, 0_u64);
    for side in sides {
        for head in &side.heads {
            added = added.saturating_add(in_head::stacks_to_add(head, generation));
        }
        for block in side.blocks.iter().filter(|block| is_new(side, block)) {
            added = added.saturating_add(block.meta.counts.stacks);
            samples = samples.saturating_add(block.meta.counts.samples);
        }
    }
    let most = sides[0].shared.options.shared_call_bytes() / CALL_BYTES / CALLS_OF_STACK;
    if added <= most.min(FEW_STACKS) as u64 || added > most as u64 {
        return Ok(added <= most as u64);
    }
    let mut selected = LevelCounts::default();
    for side in sides {
        side.each_block(|block| match is_new(side, block) {
            true => in_block::count_rows(block, side, &mut selected),
            false => Ok(()),
        })?;
    }
    Ok(selected.rows() >= samples / SMALL_PART)
}

/// The call tree of two selections of one tenant, side by side. `most`: number of the largest calls that are needed.
pub fn diff(left: &Selected, right: &Selected, most: usize) -> Result<CallTree<2>, StoreError> {
    tree([left, right], most)
}
