//! Turns a window's samples into a request: grouped by resource, encoded, compressed, counted.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_formats::otlp::{
    BurstSamples, EncodedRequest, EventSamples, Figure, MACHINE_TIME, OBSERVATION, ResourceSamples,
    ResourceSet, WAKE_PERIOD, encode_by_resource,
};
use plumb_profile::Profile;

use crate::cost::OwnCost;
use crate::delivery::Request;
use crate::figures::{WindowFigures, of_services, resource_of};
use crate::labels::{Attributes, Resources};
use crate::observe::Observed;
use crate::totals::{Quantity, SampleCount};

/// Facts about a window other than its samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowFacts {
    /// Start, in nanoseconds since 1970.
    pub time_unix_ns: u64,
    /// Length in nanoseconds.
    pub duration_ns: u64,
    /// Time of all CPUs together, in nanoseconds.
    pub machine_ns: u64,
    /// Sample rate, in samples per second of CPU time.
    pub frequency_hz: u32,
    /// The agent's cost in it.
    pub cost: OwnCost,
    /// Samples that the kernel lost in it.
    pub lost: u64,
}

/// A window that is ready to send.
pub(crate) struct ClosedWindow {
    pub request: Request,
    /// All of its samples.
    pub taken: SampleCount,
    /// Samples that rules excluded.
    pub left_out: SampleCount,
    /// Number of resources with samples.
    pub services: usize,
    /// Off-CPU time that is in no sample because there was no room.
    pub lost_off_cpu_ns: u64,
}

/// Builds the request of a window. `own`: attributes of the agent itself.
pub(crate) fn close(
    profile: &Profile,
    resources: Resources,
    observed: Vec<Observed>,
    more: WindowFigures,
    bursts: Vec<BurstSamples>,
    own: Vec<(String, String)>,
    facts: WindowFacts,
) -> ClosedWindow {
    let Resources { mut attributes, of_process } = resources;
    let mut figures = of_observed(observed, &mut attributes);
    figures.extend(of_services(more.services, &mut attributes));
    let mut attributes: Vec<Vec<(String, String)>> =
        attributes.into_iter().map(|one| one.into_iter().collect()).collect();
    let agent = attributes.len();
    attributes.push(own);
    let figure = |name, unit, value| figure(agent, name, unit, value);
    figures.extend([
        figure("agent_cpu", "nanoseconds", facts.cost.threads_ns),
        figure("agent_bpf", "nanoseconds", facts.cost.bpf_ns),
        figure(MACHINE_TIME, "nanoseconds", facts.machine_ns),
    ]);
    if facts.cost.watch_ns > 0 {
        figures.push(figure("agent_watch", "nanoseconds", facts.cost.watch_ns));
    }
    if facts.lost > 0 {
        figures.push(figure("agent_lost_samples", "count", facts.lost));
    }
    if more.lost_calls > 0 {
        figures.push(figure("agent_lost_calls", "count", more.lost_calls));
    }
    let set = ResourceSet {
        resources: attributes,
        of_process,
        figures,
        bursts,
        time_unix_ns: facts.time_unix_ns,
        duration_ns: facts.duration_ns,
        period_ns: 1_000_000_000 / u64::from(facts.frequency_hz.max(1)),
    };
    encode(profile, &set)
}

/// Builds the request of a window of a measured quantity. `figures`: names and nanoseconds of what no sample has. `own`: attributes of the agent itself.
pub(crate) fn close_measured(
    profile: &Profile,
    resources: Resources,
    facts: WindowFacts,
    figures: [(&'static str, u64); 2],
    own: Vec<(String, String)>,
) -> ClosedWindow {
    let Resources { attributes, of_process } = resources;
    let mut resources: Vec<Vec<(String, String)>> =
        attributes.into_iter().map(|one| one.into_iter().collect()).collect();
    let figure = |name, value| figure(resources.len(), name, "nanoseconds", value);
    let figures = figures.into_iter().filter(|(_, ns)| *ns > 0).map(|(name, ns)| figure(name, ns)).collect();
    resources.push(own);
    let set = ResourceSet {
        resources,
        of_process,
        figures,
        time_unix_ns: facts.time_unix_ns,
        duration_ns: facts.duration_ns,
        ..ResourceSet::default()
    };
    encode(profile, &set)
}

/// A figure of the agent, whose resource has index `resource`.
fn figure(resource: usize, name: &'static str, unit: &'static str, value: u64) -> Figure {
    Figure { resource, name, unit, stack: vec!["plumb agent".into()], value, time_unix_ns: None }
}

/// Encodes a window.
fn encode(profile: &Profile, set: &ResourceSet) -> ClosedWindow {
    let sum = |events: &ResourceSamples| {
        let mut sum = SampleCount::default();
        for (&event, &EventSamples { samples, weight }) in events {
            let quantity = Quantity::of_event(profile, event);
            sum += SampleCount::of(quantity, samples, weight);
        }
        sum
    };
    let EncodedRequest { bytes, of_resources, left_out } = encode_by_resource(profile, set);
    let left_out = sum(&left_out);
    let mut count = SampleCount::default();
    of_resources.iter().for_each(|one| count += sum(one));
    let mut taken = count;
    taken += left_out;
    let services = of_resources.iter().filter(|one| !one.is_empty()).count();
    ClosedWindow {
        request: Request { body: compressed(&bytes), count },
        taken,
        left_out,
        services,
        lost_off_cpu_ns: 0,
    }
}

/// Figures of observations. Adds a resource for a service without samples in this window.
fn of_observed(observed: Vec<Observed>, attributes: &mut Vec<Attributes>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for one in observed {
        let resource = resource_of(one.attributes, attributes);
        figures.extend(one.wakes.into_iter().map(|wake| Figure {
            resource,
            name: WAKE_PERIOD,
            unit: "nanoseconds",
            stack: vec!["wakes".into()],
            value: wake.interval_ns,
            time_unix_ns: Some(wake.time_unix_ns),
        }));
        figures.extend(one.habits.into_iter().map(|habit| Figure {
            resource,
            name: OBSERVATION,
            unit: "nanoseconds",
            stack: vec![habit.sentence.into()],
            value: habit.weight_ns,
            time_unix_ns: None,
        }));
    }
    figures
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    // Writing to memory cannot fail.
    let _ = out.write_all(bytes);
    out.finish().unwrap_or_default()
}
