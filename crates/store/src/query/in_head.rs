//! Queries on a head.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use foldhash::fast::RandomState;
use indexmap::IndexSet;

use super::named_stacks::{self, ByNode};
use super::own_calls::OwnCalls;
use super::thinning::LevelCounts;
use super::{Selected, Totals};
use crate::batch::{Batch, StoredSample};
use crate::calls::{Calls, SharedCalls};
use crate::dictionary::StackNodeId;
use crate::error::StoreError;
use crate::head::Head;
use crate::labels::Labels;
use crate::resolved::FrameNames;

/// The selected samples.
fn samples<'b>(
    batch: &'b Batch,
    selected: &Selected,
) -> impl Iterator<Item = Result<&'b StoredSample, StoreError>> {
    let (selection, cancellation) = (&selected.selection, &selected.cancellation);
    let chosen = selection.chosen(batch.all_series());
    batch.samples().iter().filter_map(move |sample| match cancellation.check() {
        Err(error) => Some(Err(error)),
        Ok(()) => (chosen[sample.series.0 as usize] && selected.includes(sample.time)).then_some(Ok(sample)),
    })
}

pub(super) fn series(
    head: &Head,
    selected: &Selected,
    found: &mut BTreeSet<Labels>,
) -> Result<(), StoreError> {
    let batch = head.read();
    let mut used = vec![false; batch.all_series().len()];
    for sample in samples(&batch, selected) {
        used[sample?.series.0 as usize] = true;
    }
    found.extend(batch.all_series().zip(used).filter(|&(_, used)| used).map(|(labels, _)| labels.clone()));
    Ok(())
}

/// Counts the selected rows.
pub(super) fn count_rows(
    head: &Head,
    selected: &Selected,
    counts: &mut LevelCounts,
) -> Result<(), StoreError> {
    samples(&head.read(), selected).try_for_each(|sample| {
        counts.add(sample?.time, 1);
        Ok(())
    })
}

/// Adds the total of each series.
pub(super) fn series_totals(
    head: &Head,
    selected: &Selected,
    totals: &mut BTreeMap<Labels, i64>,
) -> Result<(), StoreError> {
    let batch = head.read();
    let mut sums = vec![None; batch.all_series().len()];
    for sample in samples(&batch, selected) {
        let sample = sample?;
        let sum = sums[sample.series.0 as usize].get_or_insert(0_i64);
        *sum = sum.saturating_add(sample.value);
    }
    for (labels, sum) in batch.all_series().zip(sums) {
        let Some(sum) = sum else { continue };
        let total = totals.entry(labels.clone()).or_default();
        *total = total.saturating_add(sum);
    }
    Ok(())
}

pub(super) fn profiles(head: &Head, selected: &Selected, totals: &mut Totals) -> Result<(), StoreError> {
    let batch = head.read();
    let mut rest = samples(&batch, selected).peekable();
    // Samples of a profile are adjacent: sum them up before comparing labels.
    while let Some(first) = rest.next().transpose()? {
        let mut sum = first.value;
        let is_of_it = |one: &Result<&StoredSample, StoreError>| {
            one.as_ref().is_ok_and(|one| (one.series, one.time) == (first.series, first.time))
        };
        while let Some(Ok(sample)) = rest.next_if(is_of_it) {
            sum = sum.saturating_add(sample.value);
        }
        let labels = batch.labels(first.series);
        if !totals.contains_key(labels) {
            totals.insert(labels.clone(), Default::default());
        }
        if let Some(times) = totals.get_mut(labels) {
            let total = times.entry(first.time).or_default();
            *total = total.saturating_add(sum);
        }
    }
    Ok(())
}

/// Number of the head's stacks that are not among the shared calls of this generation, roughly: its calls by ten.
pub(super) fn stacks_to_add(head: &Head, generation: u64) -> u64 {
    let all = head.read().dictionary.nodes().len();
    let known = head.calls.lock().unwrap_or_else(PoisonError::into_inner);
    let known = if known.0 == generation { known.1.len() } else { 0 };
    all.saturating_sub(known) as u64 / 10
}

/// Adds the head's stacks to the calls.
pub(super) fn extend(head: &Head, selected: &Selected, shared: &mut SharedCalls) -> Result<(), StoreError> {
    let batch = head.read();
    let names = selected.names(&batch.dictionary);
    let mut known = head.calls.lock().unwrap_or_else(PoisonError::into_inner);
    if known.0 != shared.generation {
        *known = (shared.generation, Vec::new());
    }
    let before = known.1.len();
    let add =
        |calls: &mut Calls| calls.extend(&batch.dictionary, &names, &mut known.1, &selected.cancellation);
    let added = shared.add(selected.shared.options.shared_call_bytes(), &head.is_alone, add);
    if added.is_err() {
        known.1.truncate(before);
    }
    added
}

/// Adds the head's samples to the sums by call, except those that arrived after its stacks were added.
pub(super) fn sum(head: &Head, selected: &Selected, own: &mut [i64]) -> Result<(), StoreError> {
    let batch = head.read();
    let known = head.calls.lock().unwrap_or_else(PoisonError::into_inner);
    for sample in samples(&batch, selected) {
        let sample = sample?;
        if let Some(sum) = known.1.get(sample.stack.0 as usize).and_then(|&call| own.get_mut(call as usize)) {
            *sum = sum.saturating_add(sample.value);
        }
    }
    Ok(())
}

/// Adds the head's samples to a side of the calls of a query.
pub(super) fn add_calls<const SIDES: usize>(
    head: &Head,
    selected: &Selected,
    side: usize,
    sums: &mut OwnCalls<SIDES>,
) -> Result<(), StoreError> {
    let batch = head.read();
    let mut values = ByNode::default();
    for sample in samples(&batch, selected) {
        let sample = sample?;
        let sum = values.entry(sample.stack).or_default();
        *sum = sum.saturating_add(sample.value);
    }
    if values.is_empty() {
        return Ok(());
    }
    let stacks = (&batch.dictionary, &selected.names(&batch.dictionary));
    let part = named_stacks::of_nodes(side, stacks, &values, sums.names(), &selected.cancellation)?;
    sums.add_parts([part], &selected.cancellation)
}

/// Calls `visit` with series, stack and value of each selected row.
pub(super) fn each_row(
    head: &Head,
    selected: &Selected,
    visit: &mut impl FnMut(u32, u32, i64),
) -> Result<(), StoreError> {
    samples(&head.read(), selected).try_for_each(|sample| {
        let sample = sample?;
        visit(sample.series.0, sample.stack.0, sample.value);
        Ok(())
    })
}

/// Adds the head's samples to a batch, symbolized.
pub(super) fn batch(head: &Head, selected: &Selected, all: &mut Batch) -> Result<(), StoreError> {
    let batch = head.read();
    let names = selected.names(&batch.dictionary);
    add(&batch, selected, &names, all)
}

/// Adds the head's samples to a batch as they were sent.
pub(super) fn raw_batch(head: &Head, selected: &Selected, all: &mut Batch) -> Result<(), StoreError> {
    add(&head.read(), selected, &FrameNames::new(), all)
}

fn add(batch: &Batch, selected: &Selected, names: &FrameNames, all: &mut Batch) -> Result<(), StoreError> {
    let mut used: IndexSet<StackNodeId, RandomState> = IndexSet::default();
    for sample in samples(batch, selected) {
        used.insert(sample?.stack);
    }
    let go_on = || selected.cancellation.check();
    let nodes = all.dictionary.absorb_stacks(&batch.dictionary, used.into_iter(), names, go_on)?;
    for sample in samples(batch, selected) {
        let sample = sample?;
        let series = all.series_of(batch.labels(sample.series));
        all.push(StoredSample { series, stack: nodes[&sample.stack], ..*sample });
    }
    Ok(())
}
