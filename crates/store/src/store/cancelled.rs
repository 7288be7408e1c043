//! A cancelled query ends within its loops, whatever it asks and wherever the samples are.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use super::support::run;
use super::*;
use crate::batch::{Millis, StoredSample};
use crate::cancellation::Cancellation;
use crate::dictionary::StoredFrame;
use crate::labels::Labels;
use crate::query::diff;
use crate::selector::Selector;

/// Number of samples, each with its own stack and timestamp.
const SAMPLES: usize = 1000;

type Question = fn(&Selected) -> Result<(), StoreError>;

const QUESTIONS: [(&str, Question); 7] = [
    ("series", |selected| selected.series().map(drop)),
    ("profiles", |selected| selected.profiles().map(drop)),
    ("sums of series", |selected| selected.series_totals().map(drop)),
    ("call tree", |selected| selected.call_tree().map(drop)),
    ("call tree again", |selected| selected.call_tree().map(drop)),
    ("samples", |selected| selected.batch().map(drop)),
    ("difference", |selected| diff(selected, selected, usize::MAX).map(drop)),
];

fn samples() -> Batch {
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", "a")]));
    for place in 0..SAMPLES {
        let function = batch.dictionary.text(&format!("function {place}"));
        let frame = batch.dictionary.frame(StoredFrame { function, ..StoredFrame::default() });
        let stack = batch.dictionary.stack([frame]).unwrap();
        batch.push(StoredSample { series, time: Millis(place as i64), stack, value: 1 });
    }
    batch
}

fn select(store: &Store, until: i64, cancellation: Cancellation) -> Selected {
    let selection = Selection { selector: Selector::default(), from: Millis(0), until: Millis(until) };
    store.select(&Tenant::default(), selection).unwrap().with_cancellation(cancellation)
}

fn hold(store: &Store, what: &str) {
    // The whole block, and a part, which is summed up differently.
    for until in [SAMPLES as i64, SAMPLES as i64 - 1] {
        for (name, ask) in QUESTIONS {
            for checks in [0, 1, SAMPLES / 2] {
                let answer = ask(&select(store, until, Cancellation::after(checks)));
                assert!(
                    matches!(answer, Err(StoreError::Cancelled)),
                    "{name} of {what}, cancelled after {checks} checks"
                );
            }
            ask(&select(store, until, Cancellation::default())).unwrap();
        }
    }
    let selection = Selection { selector: Selector::default(), from: Millis(0), until: Millis(i64::MAX) };
    let answer = store.unwritten(&Tenant::default(), selection, Cancellation::after(SAMPLES / 2));
    assert_eq!(matches!(answer, Err(StoreError::Cancelled)), what == "a head", "unwritten samples of {what}");
    // The cancelled queries left a consistent state.
    let tree = select(store, i64::MAX, Cancellation::default()).call_tree().unwrap();
    assert_eq!(tree.total()[0], SAMPLES as i64, "{what}");
}

#[test]
fn a_cancelled_query_ends() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        block_interval: Duration::from_secs(1 << 30),
        // No cache, so that a second query reads again.
        cache_bytes: 0,
        ..StoreOptions::new(directory.path())
    };
    let store = Store::open(options).unwrap();
    run(store.append(&Tenant::default(), samples())).unwrap();
    hold(&store, "a head");
    run(store.flush()).unwrap();
    hold(&store, "a block");
}
