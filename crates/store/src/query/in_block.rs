//! Queries on a block.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::name_table::NameTable;
use super::named_stacks::{self, ByStack};
use super::stack_parts::StackPart;
use super::thinning::LevelCounts;
use super::{Selected, Totals, prepare};
use crate::batch::{Batch, SeriesKey, StoredSample};
use crate::block::{Block, BlockIndex, Cached, Part, ProfileRow, RowRanges, StackNodes};
use crate::calls::{Calls, SharedCalls};
use crate::error::StoreError;
use crate::labels::Labels;
use crate::shared::Shared;

fn index(block: &Block, shared: &Shared) -> Result<Arc<BlockIndex>, StoreError> {
    block.index(&shared.bucket, &shared.cache)
}

/// The selected profiles.
fn profiles_of(index: &BlockIndex, selected: &Selected) -> Result<Vec<ProfileRow>, StoreError> {
    let (selection, cancellation) = (&selected.selection, &selected.cancellation);
    let chosen = selection.chosen(index.series.iter());
    let mut found = Vec::new();
    for profile in &index.profiles {
        cancellation.check()?;
        if chosen[profile.series as usize] && selected.includes(profile.time) {
            found.push(*profile);
        }
    }
    Ok(found)
}

pub(super) fn series(
    block: &Block,
    selected: &Selected,
    found: &mut BTreeSet<Labels>,
) -> Result<(), StoreError> {
    let index = index(block, &selected.shared)?;
    let mut used = vec![false; index.series.len()];
    profiles_of(&index, selected)?.iter().for_each(|profile| used[profile.series as usize] = true);
    found.extend(index.series.iter().zip(used).filter(|&(_, used)| used).map(|(labels, _)| labels.clone()));
    Ok(())
}

/// Counts the rows of the selected profiles.
pub(super) fn count_rows(
    block: &Block,
    selected: &Selected,
    counts: &mut LevelCounts,
) -> Result<(), StoreError> {
    let index = index(block, &selected.shared)?;
    profiles_of(&index, selected)?.iter().for_each(|profile| counts.add(profile.time, profile.samples));
    Ok(())
}

/// Adds the total of each series.
pub(super) fn series_totals(
    block: &Block,
    selected: &Selected,
    totals: &mut BTreeMap<Labels, i64>,
) -> Result<(), StoreError> {
    let index = index(block, &selected.shared)?;
    for rows in profiles_of(&index, selected)?.chunk_by(|one, next| one.series == next.series) {
        let total = totals.entry(index.series[rows[0].series as usize].clone()).or_default();
        *total = rows.iter().fold(*total, |sum, profile| sum.saturating_add(profile.total));
    }
    Ok(())
}

pub(super) fn profiles(block: &Block, selected: &Selected, totals: &mut Totals) -> Result<(), StoreError> {
    let index = index(block, &selected.shared)?;
    for rows in profiles_of(&index, selected)?.chunk_by(|one, next| one.series == next.series) {
        let times = totals.entry(index.series[rows[0].series as usize].clone()).or_default();
        for profile in rows {
            selected.cancellation.check()?;
            let total = times.entry(profile.time).or_default();
            *total = total.saturating_add(profile.total);
        }
    }
    Ok(())
}

/// Call of each of the block's stacks. Adds missing calls.
pub(super) fn calls(
    block: &Block,
    selected: &Selected,
    calls: &mut SharedCalls,
) -> Result<Arc<Vec<u32>>, StoreError> {
    let shared = &selected.shared;
    let key = (block.folder.clone(), Part::Calls(calls.generation));
    if let Some(Cached::Calls(known)) = shared.cache.get(&key) {
        return Ok(known);
    }
    let (stacks, names) = prepare::read(shared, &selected.tenant, block, None)?;
    let add = |calls: &mut Calls| calls.extend_by(&stacks, &names, &selected.cancellation);
    let known = Arc::new(calls.add(shared.options.shared_call_bytes(), &block.is_alone, add)?);
    shared.cache.insert(key, Cached::Calls(known.clone()));
    Ok(known)
}

/// Adds the block's samples to the sums by call.
pub(super) fn sum(
    block: &Block,
    selected: &Selected,
    calls: &SharedCalls,
    own: &mut [i64],
) -> Result<(), StoreError> {
    let key = (block.folder.clone(), Part::Calls(calls.generation));
    let known = match selected.shared.cache.get(&key) {
        Some(Cached::Calls(known)) => known,
        // The cache is too small to hold them.
        _ => known_again(block, selected, calls)?,
    };
    let add = |stack: i32, value: i64| {
        let call = usize::try_from(stack).ok().and_then(|stack| known.get(stack));
        if let Some(sum) = call.and_then(|&call| own.get_mut(call as usize)) {
            *sum = sum.saturating_add(value);
        }
    };
    each_value(block, selected, add)
}

/// The selected stacks of a block on a side, if there are any.
pub(super) fn selected_stacks(
    block: &Block,
    selected: &Selected,
    side: usize,
    table: &NameTable,
) -> Result<Option<StackPart>, StoreError> {
    selected.cancellation.check()?;
    let mut values: HashMap<i32, i64, RandomState> = HashMap::default();
    each_value(block, selected, |stack, value| {
        let sum = values.entry(stack).or_default();
        *sum = sum.saturating_add(value);
    })?;
    if values.is_empty() {
        return Ok(None);
    }
    let mut values: ByStack = values.into_iter().collect();
    values.sort_unstable();
    let used: Vec<i32> = values.iter().map(|&(stack, _)| stack).collect();
    let (stacks, names) = prepare::read(&selected.shared, &selected.tenant, block, Some(&used))?;
    named_stacks::of_block(side, (&stacks, &names), &values, table, &selected.cancellation).map(Some)
}

/// Calls `add` with stack and value of each selected sample, or of sums of them.
fn each_value(block: &Block, selected: &Selected, mut add: impl FnMut(i32, i64)) -> Result<(), StoreError> {
    let (shared, selection) = (&*selected.shared, &selected.selection);
    let cancellation = &selected.cancellation;
    let index = index(block, shared)?;
    let is_whole = selection.from <= block.meta.from_ms && selection.until >= block.meta.until_ms;
    let hours = || {
        let chosen = selection.chosen(index.series.iter());
        block.hours(&shared.bucket, &shared.cache, &chosen)
    };
    let hours = if is_whole && selected.thinning.is_all() { hours()? } else { None };
    let (stacks, values) = match hours {
        Some(hours) => hours,
        None => block.samples(&shared.bucket, &shared.cache, &rows_of(&profiles_of(&index, selected)?))?,
    };
    for (stack, value) in stacks.into_iter().zip(values) {
        cancellation.check()?;
        add(stack, value);
    }
    Ok(())
}

/// Call of each of the block's stacks, without adding any.
fn known_again(block: &Block, selected: &Selected, calls: &SharedCalls) -> Result<Arc<Vec<u32>>, StoreError> {
    let (dictionary, stacks) = block.dictionary(&selected.shared.bucket)?;
    let known = calls.calls.find(&dictionary, &selected.names(&dictionary), &selected.cancellation)?;
    Ok(Arc::new(stacks.iter().map(|stack| stack.map_or(u32::MAX, |stack| known[stack.0 as usize])).collect()))
}

pub(super) fn batch(block: &Block, selected: &Selected, all: &mut Batch) -> Result<(), StoreError> {
    let (shared, cancellation) = (&*selected.shared, &selected.cancellation);
    let index = index(block, shared)?;
    let profiles = profiles_of(&index, selected)?;
    if profiles.is_empty() {
        return Ok(());
    }
    let (stacks, values) = block.samples(&shared.bucket, &shared.cache, &rows_of(&profiles))?;
    let mut used = stacks.clone();
    used.sort_unstable();
    used.dedup();
    cancellation.check()?;
    let nodes = add_used_stacks(block, selected, &used, all)?;
    let mut known: Vec<Option<SeriesKey>> = vec![None; index.series.len()];
    for sample in block.samples_of(&profiles, (&stacks, &values), &nodes) {
        cancellation.check()?;
        let sample = sample?;
        let place = sample.series.place();
        let series = *known[place].get_or_insert_with(|| all.series_of(&index.series[place]));
        all.push(StoredSample { series, ..sample });
    }
    Ok(())
}

/// Adds stacks of a block, whose numbers are ascending, to a batch. Returns the node of each by number.
pub(super) fn add_used_stacks(
    block: &Block,
    selected: &Selected,
    used: &[i32],
    all: &mut Batch,
) -> Result<StackNodes, StoreError> {
    let frames = block.stack_frames(&selected.shared.bucket, Some(used))?;
    let names = selected.names(&frames.dictionary);
    let most_bytes = selected.most_batch();
    frames.add_to(&mut all.dictionary, (&names, Some(used), most_bytes), &selected.cancellation)
}

/// Calls `visit` with series, stack and value of each selected row.
pub(super) fn each_row(
    (block, index): (&Block, &BlockIndex),
    selected: &Selected,
    visit: &mut impl FnMut(u32, u32, i64),
) -> Result<(), StoreError> {
    let profiles = profiles_of(index, selected)?;
    let (shared, cancellation) = (&*selected.shared, &selected.cancellation);
    let (stacks, values) = block.samples(&shared.bucket, &shared.cache, &rows_of(&profiles))?;
    let mut rows = stacks.iter().zip(&values);
    for profile in &profiles {
        for (&stack, &value) in rows.by_ref().take(profile.samples) {
            cancellation.check()?;
            visit(profile.series, stack.cast_unsigned(), value);
        }
    }
    Ok(())
}

/// Sample rows of profiles.
fn rows_of(profiles: &[ProfileRow]) -> RowRanges {
    RowRanges::joined(profiles.iter().map(|profile| profile.first..profile.first + profile.samples))
}
