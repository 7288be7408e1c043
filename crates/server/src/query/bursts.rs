//! Bursts of CPU time, which agents find by the times of their samples: shorter than a profile, and exact to a tenth of a second.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plumb_analyze::{Rhythm, rhythm};
use plumb_documents::findings::ServiceRhythm;
use plumb_formats::otlp::{BURST, BURST_LENGTH};
use plumb_store::{Batch, NAME, RowsTaken, SERVICE, Selector, StoreError, StoredSample};

use super::lasting::usual;
use super::place::{FunctionValue, place};
use super::rhythms::{alike, described};
use super::rows::{SampleRows, by_service};
use super::selection::{Range, select};
use super::windows::{FunctionsOfStacks, Windows};
use crate::app::Context;
use crate::error::ApiError;
use crate::moment;

/// Precision of the times at which agents say that bursts begin, in seconds.
const RESOLUTION: f64 = 0.1;
/// A burst that begins this soon after another one ended continues it: agents end bursts with their window.
const JOINED_MS: i64 = 300;

/// The bursts of all services of a selection.
#[derive(Default)]
pub(super) struct AgentBursts {
    of: HashMap<String, Vec<StoredSample>>,
    batch: Option<Arc<Batch>>,
}

/// A burst of an instance.
#[derive(Clone, Copy, Debug)]
struct AgentBurst {
    begin_ms: i64,
    length_ms: i64,
    value: f64,
}

/// The bursts of an instance, and their rhythm.
struct Found {
    instance: usize,
    bursts: Vec<AgentBurst>,
    rhythm: Rhythm,
}

/// The profile type of an agent's figure in nanoseconds.
fn type_of(name: &str) -> String {
    format!("{name}:{name}:nanoseconds::")
}

impl AgentBursts {
    /// Reads the bursts of services, or none if they take more than `rows` rows or more memory than a query may.
    pub fn read(
        context: &Context,
        selector: Selector,
        range: Range,
        (services, rows): (&[&str], usize),
    ) -> Result<Self, ApiError> {
        let selector = selector.with_any(NAME, &[BURST, BURST_LENGTH])?.with_any(SERVICE, services)?;
        let (selected, taken) = select(context, selector, range)?.at_most(rows)?;
        if taken.is_some() {
            return Ok(Self::default());
        }
        let batch = match selected.batch() {
            Err(StoreError::TooLarge { .. }) => return Ok(Self::default()),
            batch => Arc::new(batch?),
        };
        let of = by_service(&batch, context)?.into_iter().map(|(service, rows)| (service.to_owned(), rows));
        Ok(Self { of: of.collect(), batch: Some(batch) })
    }

    /// Looks for a rhythm in the bursts of a service. `cpu`: its CPU time.
    pub fn rhythm(
        &self,
        context: &Context,
        service: &str,
        cpu: &CpuTime<'_>,
    ) -> Result<Option<ServiceRhythm>, ApiError> {
        let (Some(batch), Some(samples)) = (&self.batch, self.of.get(service)) else { return Ok(None) };
        let rows = SampleRows { batch, samples };
        let windows = Windows::new(rows, &type_of(BURST), &context.cancellation)?;
        let lengths = Windows::new(rows, &type_of(BURST_LENGTH), &context.cancellation)?;
        let mut instances: BTreeMap<usize, Vec<AgentBurst>> = BTreeMap::new();
        for (&(instance, time), places) in &windows.samples {
            let sum = |places: &[usize]| places.iter().map(|&place| samples[place].value).sum::<i64>();
            let length_ms =
                sum(lengths.samples.get(&(instance, time)).map_or(&[], |places| places)) / 1_000_000;
            let burst = AgentBurst { begin_ms: time.0, length_ms, value: sum(places) as f64 };
            add(instances.entry(instance).or_default(), burst);
        }
        let found = instances.into_iter().filter_map(regular).collect();
        let value = |one: &Found| one.bursts.iter().map(|burst| burst.value).sum::<f64>();
        let found = alike(found, value, |one| one.rhythm.period);
        of_bursts(context, &windows, &found, cpu)
    }
}

/// Adds a burst, or joins it to the last one.
fn add(bursts: &mut Vec<AgentBurst>, next: AgentBurst) {
    match bursts.last_mut() {
        Some(last) if next.begin_ms - (last.begin_ms + last.length_ms) <= JOINED_MS => {
            last.length_ms = next.begin_ms + next.length_ms - last.begin_ms;
            last.value += next.value;
        }
        _ => bursts.push(next),
    }
}

fn regular((instance, bursts): (usize, Vec<AgentBurst>)) -> Option<Found> {
    let begins: Vec<f64> = bursts.iter().map(|burst| burst.begin_ms as f64 / 1e3).collect();
    let rhythm = rhythm(&begins, RESOLUTION, 1)?;
    Some(Found { instance, bursts, rhythm })
}

/// Describes rhythms of the same period: what the bursts have beyond what the service takes at other times.
fn of_bursts(
    context: &Context,
    windows: &Windows<'_>,
    alike: &[Found],
    cpu: &CpuTime<'_>,
) -> Result<Option<ServiceRhythm>, ApiError> {
    let Some(first) = alike.first() else { return Ok(None) };
    let mut functions = FunctionsOfStacks::new(windows.rows.batch);
    let mut values: HashMap<u32, f64> = HashMap::new();
    for (&(instance, _), places) in &windows.samples {
        context.check()?;
        if !alike.iter().any(|one| one.instance == instance) {
            continue;
        }
        for sample in places.iter().map(|&place| windows.rows.samples[place]) {
            let of_stack = functions.of(sample.stack).iter();
            of_stack.for_each(|&one| *values.entry(one).or_default() += sample.value as f64);
        }
    }
    let bursts = || alike.iter().flat_map(|one| &one.bursts);
    let inside: f64 = bursts().map(|burst| burst.value).sum();
    let length: i64 = bursts().map(|burst| burst.length_ms).sum();
    let whole = Whole::new(context, cpu)?;
    // The part of the other times' values that is expected in bursts.
    let part = length as f64 / (whole.covered_ms as f64 - length as f64).max(1.0);
    let excess = |all: f64, inside: f64| inside - (all - inside).max(0.0) * part;
    let of_function = |(one, inside): (u32, f64)| {
        let whole = whole.of.get(functions.name(one)).copied().unwrap_or(0.0).max(inside);
        (one, FunctionValue { part: excess(whole, inside), whole })
    };
    let values: HashMap<u32, FunctionValue> = values.into_iter().map(of_function).collect();
    let Some(place) = place(&functions, &values) else { return Ok(None) };
    let lasts = usual(&mut bursts().map(|burst| burst.length_ms).collect::<Vec<i64>>());
    let values = (excess(whole.value, inside), whole.value, bursts().count());
    Ok(Some(ServiceRhythm {
        lasts_ns: Some(lasts.unsigned_abs() * 1_000_000),
        since: moment::text(first.bursts.first().map_or(0, |burst| burst.begin_ms)),
        ..described(cpu.kind, &first.rhythm, place, values)
    }))
}

/// The CPU time of a service.
pub(super) struct CpuTime<'b> {
    /// The profile type.
    pub kind: &'b str,
    /// The profiles that were read.
    pub windows: &'b Windows<'b>,
    /// The part that was read, if not all.
    pub taken: Option<RowsTaken>,
}

/// All values of a service, and the time that its instances were recorded.
struct Whole<'b> {
    value: f64,
    of: HashMap<&'b str, f64>,
    covered_ms: i64,
}

impl<'b> Whole<'b> {
    fn new(context: &Context, cpu: &CpuTime<'b>) -> Result<Self, ApiError> {
        let windows = cpu.windows;
        let read = cpu.taken.map_or(1.0, |rows| rows.of as f64 / rows.taken.max(1) as f64);
        let mut functions = FunctionsOfStacks::new(windows.rows.batch);
        let (mut value, mut sums): (f64, HashMap<u32, f64>) = Default::default();
        for &place in windows.samples.values().flatten() {
            context.check()?;
            let sample = windows.rows.samples[place];
            let weight = sample.value as f64 * read;
            value += weight;
            functions.of(sample.stack).iter().for_each(|&one| *sums.entry(one).or_default() += weight);
        }
        let mut of: HashMap<&str, f64> = HashMap::new();
        for (one, sum) in sums {
            *of.entry(functions.name(one)).or_default() += sum;
        }
        Ok(Self { value, of, covered_ms: (windows.covered_ms() as f64 * read) as i64 })
    }
}
