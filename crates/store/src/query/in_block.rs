//! Queries on a block.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::own_calls::ByStack;
use super::thinning::LevelCounts;
use super::{Selected, Totals, prepare};
use crate::batch::{Batch, StoredSample};
use crate::block::{Block, BlockIndex, BlockSource, Cached, CallStacks, Part, ProfileRow, UsedStacks};
use crate::calls::SharedCalls;
use crate::error::StoreError;
use crate::labels::Labels;
use crate::resolved::FrameNames;
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
    let (stacks, names) = prepare::read(shared, &selected.tenant, block)?;
    let known = Arc::new(calls.calls.extend_by(&stacks, &names, &selected.cancellation)?);
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

/// The selected part of a block: values by stack, all stacks, and names for nameless frames.
pub(super) type SelectedStacks = (ByStack, CallStacks, FrameNames);

/// Reads the selected part of a block, if there is any.
pub(super) fn selected_stacks(
    block: &Block,
    selected: &Selected,
) -> Result<Option<SelectedStacks>, StoreError> {
    selected.cancellation.check()?;
    let mut values = ByStack::default();
    each_value(block, selected, |stack, value| {
        let sum = values.entry(stack).or_default();
        *sum = sum.saturating_add(value);
    })?;
    if values.is_empty() {
        return Ok(None);
    }
    let (stacks, names) = prepare::read(&selected.shared, &selected.tenant, block)?;
    Ok(Some((values, stacks, names)))
}

/// Calls `add` with stack and value of each selected sample, or of sums of them.
fn each_value(block: &Block, selected: &Selected, mut add: impl FnMut(i32, i64)) -> Result<(), StoreError> {
    let (shared, selection) = (&*selected.shared, &selected.selection);
    let cancellation = &selected.cancellation;
    let index = index(block, shared)?;
    let is_whole = selection.from <= block.meta.from_ms && selection.until >= block.meta.until_ms;
    if is_whole
        && selected.thinning.is_all()
        && let Some(hours) = block.hours(&shared.bucket, &shared.cache)?
    {
        let chosen = selection.chosen(index.series.iter());
        for ((series, stack), value) in hours.series.into_iter().zip(hours.stacks).zip(hours.values) {
            cancellation.check()?;
            if usize::try_from(series).is_ok_and(|series| chosen.get(series) == Some(&true)) {
                add(stack, value);
            }
        }
        return Ok(());
    }
    for rows in runs(&profiles_of(&index, selected)?) {
        cancellation.check()?;
        let (stacks, values) = block.samples(&shared.bucket, &shared.cache, &rows)?;
        for (stack, value) in stacks.into_iter().zip(values) {
            cancellation.check()?;
            add(stack, value);
        }
    }
    Ok(())
}

/// Call of each of the block's stacks, without adding any.
fn known_again(block: &Block, selected: &Selected, calls: &SharedCalls) -> Result<Arc<Vec<u32>>, StoreError> {
    let (dictionary, stacks) = block.dictionary(&selected.shared.bucket, None)?;
    let known = calls.calls.find(&dictionary, &selected.names(&dictionary), &selected.cancellation)?;
    Ok(Arc::new(stacks.iter().map(|stack| stack.map_or(u32::MAX, |stack| known[stack.0 as usize])).collect()))
}

pub(super) fn batch(block: &Block, selected: &Selected, all: &mut Batch) -> Result<(), StoreError> {
    let (shared, cancellation) = (&*selected.shared, &selected.cancellation);
    let index = index(block, shared)?;
    let profiles = profiles_of(&index, selected)?;
    let mut used = UsedStacks::default();
    for rows in runs(&profiles) {
        cancellation.check()?;
        used.extend(block.samples(&shared.bucket, &shared.cache, &rows)?.0);
    }
    if used.is_empty() {
        return Ok(());
    }
    let contents = block.contents(&shared.bucket, &shared.cache, Some(&used))?;
    let names = selected.names(contents.dictionary());
    let nodes = all.dictionary.absorb_named(contents.dictionary(), &names, || cancellation.check())?;
    for neighbours in profiles.chunk_by(|one, next| one.first + one.samples == next.first) {
        for sample in contents.samples_of(neighbours)? {
            cancellation.check()?;
            let series = all.series_of(&index.series[sample.series.0 as usize]);
            all.push(StoredSample { series, stack: nodes[sample.stack.0 as usize], ..sample });
        }
    }
    Ok(())
}

/// Sample rows of profiles, with adjacent ranges merged.
fn runs(profiles: &[ProfileRow]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for profile in profiles {
        let rows = profile.first..profile.first + profile.samples;
        match runs.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => runs.push(rows),
        }
    }
    runs
}
