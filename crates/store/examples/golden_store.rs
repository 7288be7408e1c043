//! Writes a store of the profiles in `tests/golden/profiles.txt`, and ends as a killed server does: `golden_store DIRECTORY`.
//!
//! The store has merged blocks with those that they replace, a block that isn't merged, and profiles that are in the log alone.

use std::error::Error;
use std::time::Duration;

use plumb_store::{Batch, Labels, Millis, Store, StoreOptions, StoredFrame, StoredSample, Tenant};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: golden_store DIRECTORY")?;
    // The profiles are old, and must not be removed for their age.
    let retention = Duration::from_secs(u32::MAX.into());
    let store = Store::open(StoreOptions { retention, ..StoreOptions::new(directory) })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let profiles =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/profiles.txt"))?;
    for step in ["first", "second", "third", "fourth", "log"] {
        for line in profiles.lines().filter(|line| line.split(' ').next() == Some(step)) {
            let (tenant, batch) = one_sample(line)?;
            runtime.block_on(store.append(&tenant, batch))?;
        }
        match step {
            "log" => {}
            "third" => {
                runtime.block_on(store.flush())?;
                runtime.block_on(store.compact())?;
            }
            _ => runtime.block_on(store.flush())?,
        }
    }
    // Closing the store would write all of the log into blocks.
    std::process::exit(0);
}

/// The tenant of a line, and a batch of its sample.
fn one_sample(line: &str) -> Result<(Tenant, Batch), Box<dyn Error>> {
    let [_, tenant, service, time, names, value] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("wrong line: {line}").into());
    };
    let mut batch = Batch::default();
    let series = batch.series(Labels::new([("service_name", service), ("node", "n1")]));
    let mut stack = None;
    for (depth, name) in names.split(';').enumerate() {
        let (function, file) = (batch.dictionary.text(name), batch.dictionary.text("a.c"));
        let line = u32::try_from(depth)? + 1;
        let frame = batch.dictionary.frame(StoredFrame { function, file, line, ..StoredFrame::default() });
        stack = Some(batch.dictionary.call(stack, frame));
    }
    let stack = stack.ok_or("no stack")?;
    batch.push(StoredSample { series, time: Millis(time.parse()?), stack, value: value.parse()? });
    Ok((Tenant::new(tenant)?, batch))
}
