//! The profiles of a service by instance and time, and the functions in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use plumb_store::{Batch, Cancellation, Millis, PROFILE_TYPE, StackNodeId, StoredFrame, TextId};

use super::lasting::{distances, usual};
use super::rows::SampleRows;
use super::versions::VERSION_LABELS;
use crate::error::ApiError;

/// Labels that tell instances of a service apart: OpenTelemetry's names, those of Prometheus and Grafana's collector, and versions, of which an instance has
/// one.
const INSTANCE_LABELS: [&str; 10] = [
    "host_name",
    "k8s_node_name",
    "k8s_pod_name",
    "k8s_pod_uid",
    "container_name",
    "instance",
    "pod",
    "hostname",
    VERSION_LABELS[0],
    VERSION_LABELS[1],
];
/// A profile of an instance.
pub(super) type Window = (usize, Millis);

/// The samples of a batch by window.
pub(super) struct Windows<'b> {
    pub rows: SampleRows<'b>,
    /// Places of samples.
    pub samples: BTreeMap<Window, Vec<usize>>,
}

impl<'b> Windows<'b> {
    pub fn new(rows: SampleRows<'b>, kind: &str, cancellation: &Cancellation) -> Result<Self, ApiError> {
        let (mut known, mut instances) = (HashMap::new(), HashMap::new());
        let names = INSTANCE_LABELS.map(str::to_owned);
        for (series, labels) in rows.series() {
            if labels.get(PROFILE_TYPE) == Some(kind) {
                let next = known.len();
                instances.insert(series, *known.entry(labels.only(&names)).or_insert(next));
            }
        }
        let mut samples: BTreeMap<Window, Vec<usize>> = BTreeMap::new();
        for (place, sample) in rows.samples.iter().enumerate() {
            cancellation.check()?;
            if let Some(&instance) = instances.get(&sample.series.place()) {
                samples.entry((instance, sample.time)).or_default().push(place);
            }
        }
        Ok(Self { rows, samples })
    }

    /// Time that the instances were recorded in all, in milliseconds: a usual distance for each window.
    pub fn covered_ms(&self) -> i64 {
        let mut instances: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        self.samples.keys().for_each(|&(instance, time)| instances.entry(instance).or_default().push(time.0));
        let covered = |times: &Vec<i64>| usual(&mut distances(times)) * times.len() as i64;
        instances.values().map(covered).sum()
    }

    /// Distances between the windows of each instance, in milliseconds.
    pub fn distances(&self) -> Vec<i64> {
        let keys: Vec<&Window> = self.samples.keys().collect();
        let of_one = keys.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        of_one.map(|pair| pair[1].1.0 - pair[0].1.0).collect()
    }

    /// Usual time between two windows, in milliseconds.
    pub fn length_ms(&self) -> i64 {
        let mut times: Vec<i64> = self.samples.keys().map(|(_, time)| time.0).collect();
        times.sort_unstable();
        times.dedup();
        usual(&mut distances(&times)).max(1)
    }
}

/// Functions of stacks by name: each once, innermost first.
pub(super) struct FunctionsOfStacks<'b> {
    batch: &'b Batch,
    of_stack: HashMap<StackNodeId, Box<[u32]>>,
    numbers: HashMap<TextId, u32>,
    names: Vec<TextId>,
    /// Whether each is in a library or the kernel, as far as its file tells.
    is_library: Vec<bool>,
}

impl<'b> FunctionsOfStacks<'b> {
    pub fn new(batch: &'b Batch) -> Self {
        let (of_stack, numbers, names, is_library) = Default::default();
        Self { batch, of_stack, numbers, names, is_library }
    }

    pub fn of(&mut self, stack: StackNodeId) -> &[u32] {
        let Self { batch, of_stack, numbers, names, is_library } = self;
        of_stack.entry(stack).or_insert_with(|| {
            let (mut all, mut seen) = (Vec::new(), HashSet::new());
            for frame in batch.dictionary.frames_of(stack) {
                let StoredFrame { function: name, mapping, .. } = batch.dictionary.frame_at(frame);
                if name != TextId::default() && seen.insert(name) {
                    let next = names.len() as u32;
                    let number = *numbers.entry(name).or_insert(next);
                    if number == next {
                        names.push(name);
                        is_library.push(is_library_file(batch.dictionary.resolve(mapping)));
                    }
                    all.push(number);
                }
            }
            all.into()
        })
    }

    pub fn name(&self, function: u32) -> &'b str {
        let name = self.names.get(function as usize);
        name.map_or("", |&name| self.batch.dictionary.resolve(name))
    }

    /// The functions of a stack without these names.
    pub fn beyond(&mut self, stack: StackNodeId, inner: &[TextId]) -> Vec<u32> {
        let all = self.of(stack).to_vec();
        let is_beyond = |one: &u32| self.names.get(*one as usize).is_some_and(|name| !inner.contains(name));
        all.into_iter().filter(is_beyond).collect()
    }

    /// Whether a function is in a library or the kernel, as far as its file tells.
    pub fn is_library(&self, function: u32) -> bool {
        self.is_library.get(function as usize).copied().unwrap_or(false)
    }
}

/// Whether a mapped file is a library, the kernel or the kernel's part of a process.
fn is_library_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('[') || name.ends_with(".so") || name.contains(".so.")
}
