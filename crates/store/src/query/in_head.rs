//! What a head has of a selection.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::{Selected, Selection, Totals};
use crate::batch::{Batch, StoredSample};
use crate::calls::SharedCalls;
use crate::head::Head;
use crate::labels::Labels;
use crate::resolved::FrameNames;

/// The samples that are selected.
fn samples<'b>(batch: &'b Batch, selection: &Selection) -> impl Iterator<Item = &'b StoredSample> {
    let chosen = selection.chosen(batch.all_series());
    let is_in =
        move |sample: &&StoredSample| chosen[sample.series.0 as usize] && selection.includes(sample.time);
    batch.samples().iter().filter(is_in)
}

pub(super) fn series(head: &Head, selection: &Selection, found: &mut BTreeSet<Labels>) {
    let batch = head.read();
    let mut used = vec![false; batch.all_series().len()];
    samples(&batch, selection).for_each(|sample| used[sample.series.0 as usize] = true);
    found.extend(batch.all_series().zip(used).filter(|&(_, used)| used).map(|(labels, _)| labels.clone()));
}

pub(super) fn profiles(head: &Head, selection: &Selection, totals: &mut Totals) {
    let batch = head.read();
    let mut rest = samples(&batch, selection).peekable();
    // Samples of a profile stand together: they are added up before labels are compared.
    while let Some(first) = rest.next() {
        let mut sum = first.value;
        let is_of_it = |one: &&StoredSample| (one.series, one.time) == (first.series, first.time);
        while let Some(sample) = rest.next_if(is_of_it) {
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
}

/// Adds the head's stacks to the calls.
pub(super) fn extend(head: &Head, selected: &Selected, shared: &mut SharedCalls) {
    let batch = head.read();
    let names = selected.names(&batch.dictionary);
    let mut known = head.calls.lock().unwrap_or_else(PoisonError::into_inner);
    if known.0 != shared.generation {
        *known = (shared.generation, Vec::new());
    }
    shared.calls.extend(&batch.dictionary, &names, &mut known.1);
}

/// Adds its samples to the sums by call; those that came after its stacks were added are not there yet.
pub(super) fn sum(head: &Head, selection: &Selection, own: &mut [i64]) {
    let batch = head.read();
    let known = head.calls.lock().unwrap_or_else(PoisonError::into_inner);
    for sample in samples(&batch, selection) {
        if let Some(sum) = known.1.get(sample.stack.0 as usize).and_then(|&call| own.get_mut(call as usize)) {
            *sum = sum.saturating_add(sample.value);
        }
    }
}

/// Adds its samples to a batch, with names.
pub(super) fn batch(head: &Head, selected: &Selected, all: &mut Batch) {
    let batch = head.read();
    let names = selected.names(&batch.dictionary);
    add(&batch, &selected.selection, &names, all);
}

/// Adds its samples to a batch as they were sent.
pub(super) fn raw_batch(head: &Head, selection: &Selection, all: &mut Batch) {
    add(&head.read(), selection, &FrameNames::new(), all);
}

fn add(batch: &Batch, selection: &Selection, names: &FrameNames, all: &mut Batch) {
    let nodes = all.dictionary.absorb_named(&batch.dictionary, names);
    for sample in samples(batch, selection) {
        let series = all.series_of(batch.labels(sample.series));
        all.push(StoredSample { series, stack: nodes[sample.stack.0 as usize], ..*sample });
    }
}
