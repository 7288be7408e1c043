//! Queries: series and times in, sums out. Heads and blocks answer alike.
//!
//! A block that turns out to be damaged is left out, and [`Selected`] says how many were.

mod in_block;
mod in_head;
mod prepare;
mod thinning;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use self::prepare::prepare;
use self::thinning::LevelCounts;
pub use self::thinning::RowsTaken;
pub(crate) use self::thinning::Thinning;
use crate::batch::{Batch, Millis};
use crate::block::Block;
use crate::calls::{CallTree, Calls, SharedCalls};
use crate::cancellation::Cancellation;
use crate::dictionary::Dictionary;
use crate::error::StoreError;
use crate::head::Head;
use crate::labels::Labels;
use crate::resolved::FrameNames;
use crate::selector::Selector;
use crate::shared::Shared;
use crate::tenant::Tenant;

/// Calls of a tenant that are kept between queries, at most.
const MOST_CALLS: usize = 3 << 20;
/// Bytes of memory for a call, with what is summed up for it.
pub(crate) const CALL_BYTES: usize = 64;

/// Which samples a query is about.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Of which series.
    pub selector: Selector,
    /// The first moment.
    pub from: Millis,
    /// The last moment.
    pub until: Millis,
}

impl Selection {
    fn includes(&self, time: Millis) -> bool {
        (self.from..=self.until).contains(&time)
    }

    /// By series whether it is selected.
    fn chosen<'l>(&self, series: impl Iterator<Item = &'l Labels>) -> Vec<bool> {
        series.map(|labels| self.selector.matches(labels)).collect()
    }
}

/// What a tenant has of a selection, as it was when it was asked for.
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

/// What a profile amounts to: all samples of a series that have one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileTotal {
    /// The series, as its place among those that come with it.
    pub series: usize,
    /// When.
    pub time: Millis,
    /// The sum of its samples.
    pub total: i64,
}

/// Sums by series and time.
type Totals = BTreeMap<Labels, BTreeMap<Millis, i64>>;

impl Selected {
    /// The same, whose questions fail with [`StoreError::Cancelled`] once that is cancelled.
    pub fn with_cancellation(self, cancellation: Cancellation) -> Self {
        Self { cancellation, ..self }
    }

    /// The same with at most so many rows, by profiles that are spread over its time; more, if a single time has more. Says what is left if not all is.
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

    /// The series that have samples in the selection, sorted.
    pub fn series(&self) -> Result<Vec<Labels>, StoreError> {
        let mut found = BTreeSet::new();
        self.each_head(|head| in_head::series(head, self, &mut found))?;
        self.each_block(|block| in_block::series(block, self, &mut found))?;
        Ok(found.into_iter().collect())
    }

    /// The sum of each series. Takes no memory for single profiles, as [`Self::profiles`] does.
    pub fn series_totals(&self) -> Result<Vec<(Labels, i64)>, StoreError> {
        let mut totals = BTreeMap::new();
        self.each_head(|head| in_head::series_totals(head, self, &mut totals))?;
        self.each_block(|block| in_block::series_totals(block, self, &mut totals))?;
        Ok(totals.into_iter().collect())
    }

    /// Series, and the totals of their profiles by series and time.
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

    /// All calls by function name, with what was spent in them.
    pub fn call_tree(&self) -> Result<CallTree<1>, StoreError> {
        let (shared, [own]) = sums([self])?;
        shared.calls.tree(&[own], &self.cancellation)
    }

    /// The samples themselves with their whole frames.
    pub fn batch(&self) -> Result<Batch, StoreError> {
        let mut all = Batch::default();
        self.each_head(|head| in_head::batch(head, self, &mut all))?;
        self.each_block(|block| {
            in_block::batch(block, self, &mut all)?;
            self.limit(all.memory())
        })?;
        Ok(all)
    }

    /// What one of its heads has.
    pub(crate) fn of_head(&self, head: &Head) -> Result<Batch, StoreError> {
        let mut batch = Batch::default();
        in_head::raw_batch(head, self, &mut batch)?;
        Ok(batch)
    }

    /// How many blocks were left out so far because they are damaged.
    pub fn damaged(&self) -> usize {
        self.blocks.iter().filter(|block| block.set_aside.load(Ordering::Relaxed)).count()
    }

    /// Names for frames of a dictionary that came without.
    fn names(&self, dictionary: &Dictionary) -> FrameNames {
        self.shared.symbols.names(&self.shared.bucket, &self.tenant, dictionary)
    }

    fn each_head(&self, visit: impl FnMut(&Arc<Head>) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.heads.iter().try_for_each(visit)
    }

    fn each_block(
        &self,
        mut visit: impl FnMut(&Arc<Block>) -> Result<(), StoreError>,
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

    fn limit(&self, needed: usize) -> Result<(), StoreError> {
        let limit = self.shared.options.query_bytes;
        if needed <= limit { Ok(()) } else { Err(StoreError::TooLarge { needed, limit }) }
    }
}

/// Begins anew where there are more calls than are kept.
fn begin_anew_if_full(calls: &RwLock<SharedCalls>) {
    let mut calls = calls.write().unwrap_or_else(PoisonError::into_inner);
    if calls.calls.len() > MOST_CALLS {
        *calls = SharedCalls { generation: calls.generation + 1, calls: Calls::default() };
    }
}

/// What was spent in each call itself, by the calls' places; of several selections of one tenant.
fn sums<const SIDES: usize>(
    sides: [&Selected; SIDES],
) -> Result<(RwLockReadGuard<'_, SharedCalls>, [Vec<i64>; SIDES]), StoreError> {
    begin_anew_if_full(&sides[0].calls);
    for side in sides {
        prepare(&side.shared, &side.tenant, &side.calls, &side.blocks, &side.cancellation);
    }
    let mut calls = sides[0].calls.write().unwrap_or_else(PoisonError::into_inner);
    // Others may have taken their time.
    sides[0].cancellation.check()?;
    for side in sides {
        side.each_head(|head| in_head::extend(head, side, &mut calls))?;
        side.each_block(|block| {
            in_block::calls(block, side, &mut calls)?;
            side.limit(calls.calls.len() * CALL_BYTES)
        })?;
    }
    // From here on others may sum up too, and nobody begins anew.
    let calls = RwLockWriteGuard::downgrade(calls);
    let mut all: [Vec<i64>; SIDES] = std::array::from_fn(|_| vec![0; calls.calls.len()]);
    for (side, own) in sides.into_iter().zip(&mut all) {
        side.each_head(|head| in_head::sum(head, side, own))?;
        side.each_block(|block| in_block::sum(block, side, &calls, own))?;
    }
    Ok((calls, all))
}

/// The calls of two selections of one tenant side by side.
pub fn diff(left: &Selected, right: &Selected) -> Result<CallTree<2>, StoreError> {
    let (shared, own) = sums([left, right])?;
    shared.calls.tree(&own, &left.cancellation)
}
