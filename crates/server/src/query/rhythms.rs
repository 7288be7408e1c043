//! Rhythms: bursts of a service's values that come back after the same time, with the code that makes them.
//!
//! Elsewhere: what is regular (`plumb_analyze`), the words (`plumb_report`).

use std::collections::{BTreeMap, HashMap};

use plumb_analyze::{Burst, Rhythm, bursts, rhythm};
use plumb_report::findings::ServiceRhythm;
use plumb_store::{Cancellation, Millis, StackNodeId, TextId};

use super::lasting::{distances, usual};
use super::place::{FunctionValue, Place, place};
use super::windows::{FunctionsOfStacks, Window, Windows};
use crate::error::ApiError;
use crate::moment;

/// Longest series of windows, of one instance.
const LONGEST: i64 = 1 << 20;
/// Rhythms of instances are the same if their periods differ by less than this part.
const ALIKE: f64 = 0.1;

/// The stacks whose values count.
pub(super) trait Counted {
    /// The innermost functions of a stack that aren't the place from which its value comes; `None`: the stack doesn't count.
    fn inner(&mut self, stack: StackNodeId) -> Option<&[TextId]>;
}

/// All stacks count.
pub(super) struct AllStacks;

impl Counted for AllStacks {
    fn inner(&mut self, _: StackNodeId) -> Option<&[TextId]> {
        Some(&[])
    }
}

/// The windows of an instance at equal distances.
struct Series {
    instance: usize,
    start: i64,
    length_ms: i64,
    values: Vec<f64>,
}

/// A rhythm of an instance.
struct Found {
    series: Series,
    rhythm: Rhythm,
    bursts: Vec<Burst>,
}

impl Found {
    fn excess(&self) -> f64 {
        self.bursts.iter().map(|burst| burst.excess).sum()
    }
}

/// Looks for a rhythm in the windows of a service, of the values whose stacks count.
pub(super) fn of_windows(
    windows: &Windows<'_>,
    (kind, length_ms): (&str, Option<i64>),
    counted: &mut impl Counted,
    cancellation: &Cancellation,
) -> Result<Option<ServiceRhythm>, ApiError> {
    let mut values: BTreeMap<Window, f64> = BTreeMap::new();
    for (&window, places) in &windows.samples {
        cancellation.check()?;
        let samples = places.iter().map(|&place| windows.rows.samples[place]);
        let samples = samples.filter(|sample| counted.inner(sample.stack).is_some());
        values.insert(window, samples.map(|sample| sample.value as f64).sum());
    }
    let found = by_instance(&values, length_ms).into_iter().filter_map(of_series).collect();
    let found = alike(found, Found::excess, |one| one.rhythm.period);
    let Some(first) = found.first() else { return Ok(None) };
    let (functions, excess) = excess_of_functions(windows, &found, counted, cancellation)?;
    let Some(place) = place(&functions, &excess) else { return Ok(None) };
    let whole: f64 = values.values().sum();
    let all: f64 = found.iter().map(Found::excess).sum();
    let times: usize = found.iter().map(|one| one.bursts.len()).sum();
    let lasts = first.bursts.iter().map(|burst| burst.length).sum::<usize>() / first.bursts.len().max(1);
    let begin = first.bursts.first().map_or(0, |burst| burst.first as i64) * first.series.length_ms;
    Ok(Some(ServiceRhythm {
        // A burst may have begun and ended within a window.
        lasts_ns: (lasts > 1).then(|| lasts as u64 * first.series.length_ms.unsigned_abs() * 1_000_000),
        since: moment::text(first.series.start + begin),
        ..described(kind, &first.rhythm, place, (all, whole, times))
    }))
}

/// The instance with the largest value, and those whose rhythm is the same.
pub(super) fn alike<T>(mut found: Vec<T>, value: impl Fn(&T) -> f64, period: impl Fn(&T) -> f64) -> Vec<T> {
    found.sort_by(|one, other| value(other).total_cmp(&value(one)));
    if let Some(largest) = found.first().map(&period) {
        found.retain(|one| (period(one) - largest).abs() <= ALIKE * largest);
    }
    found
}

/// A rhythm without its beginning and the length of its bursts. `value`: what all `times` bursts have, of what the service has.
pub(super) fn described(
    kind: &str,
    rhythm: &Rhythm,
    Place { function, caller }: Place,
    (value, whole, times): (f64, f64, usize),
) -> ServiceRhythm {
    ServiceRhythm {
        profile_type: kind.to_owned(),
        period_ns: (rhythm.period * 1e9) as u64,
        spread_ns: rhythm.spread.map(|seconds| (seconds * 1e9) as u64),
        regular: [rhythm.near, rhythm.distances],
        function,
        caller,
        share: value / whole.max(1.0),
        each: value / times.max(1) as f64,
        value,
        ..ServiceRhythm::default()
    }
}

/// The series of each instance. Without values an instance has no window: `length_ms` is the usual length of all services' windows, if it is known.
fn by_instance(values: &BTreeMap<Window, f64>, length_ms: Option<i64>) -> Vec<Series> {
    let mut instances: BTreeMap<usize, Vec<(i64, f64)>> = BTreeMap::new();
    for (&(instance, Millis(time)), &value) in values {
        instances.entry(instance).or_default().push((time, value));
    }
    let series = |(instance, windows): (usize, Vec<(i64, f64)>)| {
        let times: Vec<i64> = windows.iter().map(|(time, _)| *time).collect();
        let length_ms = usual(&mut distances(&times)).min(length_ms.unwrap_or(i64::MAX)).max(1);
        let (start, end) = (*times.first()?, *times.last()?);
        let count = (end - start + length_ms / 2) / length_ms + 1;
        if count > LONGEST {
            return None;
        }
        let mut values = vec![0.0; usize::try_from(count).ok()?];
        for (time, value) in windows {
            let place = (time - start + length_ms / 2) / length_ms;
            values[usize::try_from(place).ok()?] += value;
        }
        Some(Series { instance, start, length_ms, values })
    };
    instances.into_iter().filter_map(series).collect()
}

fn of_series(series: Series) -> Option<Found> {
    let bursts = bursts(&series.values);
    let length = series.length_ms as f64 / 1e3;
    let begins: Vec<f64> = bursts.iter().map(|burst| burst.first as f64 * length).collect();
    let rhythm = rhythm(&begins, length)?;
    Some(Found { series, rhythm, bursts })
}

/// Values of functions: those in the windows of bursts beyond those in as many others, and all.
fn excess_of_functions<'b>(
    windows: &Windows<'b>,
    found: &[Found],
    counted: &mut impl Counted,
    cancellation: &Cancellation,
) -> Result<(FunctionsOfStacks<'b>, HashMap<u32, FunctionValue>), ApiError> {
    let mut functions = FunctionsOfStacks::new(windows.rows.batch);
    let mut excess: HashMap<u32, FunctionValue> = HashMap::new();
    for Found { series, bursts, .. } in found {
        let mut is_burst = vec![false; series.values.len()];
        bursts
            .iter()
            .flat_map(|burst| burst.first..burst.first + burst.length)
            .for_each(|at| is_burst[at] = true);
        let inside = is_burst.iter().filter(|is| **is).count() as f64;
        let others = inside / (is_burst.len() as f64 - inside).max(1.0);
        let of_instance = (series.instance, Millis(i64::MIN))..=(series.instance, Millis(i64::MAX));
        for (&(_, Millis(time)), places) in windows.samples.range(of_instance) {
            cancellation.check()?;
            let at = (time - series.start + series.length_ms / 2) / series.length_ms;
            let inside = usize::try_from(at).ok().and_then(|at| is_burst.get(at)).copied().unwrap_or(false);
            let weight = if inside { 1.0 } else { -others };
            for sample in places.iter().map(|&place| windows.rows.samples[place]) {
                let Some(inner) = counted.inner(sample.stack) else { continue };
                let value = sample.value as f64;
                for one in functions.beyond(sample.stack, inner) {
                    let sums = excess.entry(one).or_default();
                    sums.part += weight * value;
                    sums.whole += value;
                }
            }
        }
    }
    Ok((functions, excess))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_its_own_length_of_windows_or_a_shorter_usual_one() {
        let every = |length_ms: i64| {
            let window = |place: i64| ((0, Millis(place * length_ms)), 1.0);
            (0..4).map(window).collect::<BTreeMap<Window, f64>>()
        };
        let of = |values: BTreeMap<Window, f64>, usual: Option<i64>| {
            by_instance(&values, usual).into_iter().map(|one| (one.length_ms, one.values)).collect::<Vec<_>>()
        };
        assert_eq!(of(every(15_000), None), [(15_000, vec![1.0; 4])]);
        assert_eq!(of(every(15_000), Some(15_000)), [(15_000, vec![1.0; 4])]);
        let sparse = vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        assert_eq!(of(every(30_000), Some(15_000)), [(15_000, sparse)]);
    }
}
