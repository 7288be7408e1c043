//! Waits for locks, of services whose off-CPU time or contended mutexes are recorded: how many threads wait at any time, where, and in which rhythm.

use std::collections::{BTreeSet, HashMap};

use plumb_analyze::lock_taken_at;
use plumb_documents::findings::{LockWaits, ServiceRhythm};
use plumb_store::{Batch, ProfileType, SERVICE, Selector, StackNodeId, TextId};

use super::place::{FunctionValue, Place, place};
use super::rhythms::{self, Counted};
use super::rows::CountedRows;
use super::windows::{FunctionsOfStacks, Windows};
use crate::app::Context;
use crate::error::ApiError;
use crate::pyroscope::querier::StacktracesRequest;

/// Name of profiles of all waits.
const OFF_CPU: &str = "off_cpu";
/// Name of profiles of waits for mutexes alone.
const MUTEX: &str = "mutex";

/// The waits of a service for locks.
#[derive(Default)]
pub(super) struct OfService {
    /// The waits.
    pub waits: Option<LockWaits>,
    /// The rhythm in which they come.
    pub rhythm: Option<ServiceRhythm>,
}

/// The profiles of services that have waits for locks, by profile type.
#[derive(Default)]
pub(super) struct LockRows {
    of_kind: Vec<(String, HashMap<String, CountedRows>)>,
}

/// Whether profiles of this type have waits for locks.
pub(super) fn has_locks(kind: &ProfileType) -> bool {
    kind.sample_unit == "nanoseconds" && [OFF_CPU, MUTEX].contains(&&*kind.name)
}

impl LockRows {
    /// Reads the profiles of these types of all services at once; those of a type that take more than `rows` rows or more memory than a query may are left
    /// out.
    pub fn read(
        context: &Context,
        request: &StacktracesRequest,
        (kinds, services): (&BTreeSet<&str>, &[&str]),
        rows: usize,
    ) -> Result<Self, ApiError> {
        let mut of_kind = Vec::new();
        for &kind in kinds {
            let selector = Selector::parse(&request.label_selector)?.with_any(SERVICE, services)?;
            let request = StacktracesRequest {
                profile_type_id: kind.to_owned(),
                label_selector: selector.to_string(),
                ..request.clone()
            };
            if let Some(rows) = CountedRows::by_service(context, &request, rows)? {
                of_kind.push((kind.to_owned(), rows));
            }
        }
        Ok(Self { of_kind })
    }

    /// The waits of a service in profiles of the type that has most of them.
    pub fn of(
        &self,
        context: &Context,
        service: &str,
        length_ms: Option<i64>,
    ) -> Result<OfService, ApiError> {
        let mut most = OfService::default();
        for (kind, rows) in &self.of_kind {
            let Some(rows) = rows.get(service) else { continue };
            let of_kind = of_rows(context, rows, kind, length_ms)?;
            let value = |one: &OfService| one.waits.as_ref().map_or(0.0, |waits| waits.threads);
            if value(&of_kind) > value(&most) {
                most = of_kind;
            }
        }
        Ok(most)
    }
}

fn of_rows(
    context: &Context,
    rows: &CountedRows,
    kind: &str,
    length_ms: Option<i64>,
) -> Result<OfService, ApiError> {
    let windows = Windows::new(rows.rows(), kind, &context.cancellation)?;
    let mut locks = Locks { batch: windows.rows.batch, all: kind.starts_with(MUTEX), inner: HashMap::new() };
    let mut functions = FunctionsOfStacks::new(windows.rows.batch);
    let (mut whole, mut sum) = (0.0, 0.0);
    let mut values: HashMap<u32, FunctionValue> = HashMap::new();
    for sample in windows.samples.values().flatten().map(|&place| windows.rows.samples[place]) {
        context.check()?;
        whole += sample.value as f64;
        let Some(inner) = locks.inner(sample.stack) else { continue };
        let value = sample.value as f64;
        sum += value;
        for one in functions.beyond(sample.stack, inner) {
            let sums = values.entry(one).or_default();
            (sums.part, sums.whole) = (sums.part + value, sums.whole + value);
        }
    }
    let Some(Place { function, caller }) = place(&functions, &values) else {
        return Ok(OfService::default());
    };
    let lasted_ms = lasted_ms(&windows, length_ms);
    let waits = LockWaits {
        profile_type: kind.to_owned(),
        function,
        caller,
        threads: sum / (lasted_ms as f64 * 1e6),
        share: sum / whole,
        lasted_ns: lasted_ms.unsigned_abs() * 1_000_000,
    };
    let rhythm = rhythms::of_windows(&windows, (kind, length_ms), &mut locks, &context.cancellation)?;
    Ok(OfService { waits: Some(waits), rhythm })
}

/// Time from the first window of any instance to the end of the last one.
fn lasted_ms(windows: &Windows<'_>, length_ms: Option<i64>) -> i64 {
    let times = || windows.samples.keys().map(|(_, time)| time.0);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    (last - first + length_ms.unwrap_or(0)).max(1)
}

/// The stacks that wait for a lock.
struct Locks<'b> {
    batch: &'b Batch,
    /// Whether all do.
    all: bool,
    /// The names of the functions that take the lock and wait, if the stack waits for one.
    inner: HashMap<StackNodeId, Option<Box<[TextId]>>>,
}

impl Counted for Locks<'_> {
    const IS_SAMPLED: bool = false;

    fn inner(&mut self, stack: StackNodeId) -> Option<&[TextId]> {
        let Self { batch, all, inner } = self;
        let inner = inner.entry(stack).or_insert_with(|| {
            let dictionary = &batch.dictionary;
            let names = || dictionary.frames_of(stack).map(|frame| dictionary.frame_at(frame).function);
            let taken = lock_taken_at(names().map(|name| dictionary.resolve(name)));
            let count = taken.map(|place| place + 1).or(all.then_some(0))?;
            Some(names().take(count).collect())
        });
        inner.as_deref()
    }
}
