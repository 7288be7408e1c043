//! Rhythms: bursts of a service's values that come back after the same time, with the code that makes them.
//!
//! Elsewhere: what is regular (`plumb_analyze`), the words (`plumb_documents`).

use std::collections::{BTreeMap, HashMap, HashSet};

use plumb_analyze::{Burst, Rhythm, bursts, rhythm};
use plumb_documents::findings::ServiceRhythm;
use plumb_store::{Cancellation, Millis, PROFILE_TYPE, ProfileType, StackNodeId, StoredSample, TextId};

use super::lasting::{distances, usual};
use super::place::{FunctionValue, Place, place};
use super::windows::{FunctionsOfStacks, Window, Windows};
use crate::error::ApiError;
use crate::moment;

/// Longest series of windows, of one instance.
const LONGEST: i64 = 1 << 20;
/// Rhythms of instances are the same if their periods differ by less than this part.
const ALIKE: f64 = 0.1;

/// Smallest part of a service's values that a function has whose rhythm is looked for.
const PART: f64 = 0.01;

/// Largest value of a sample of CPU time, in nanoseconds: of 50 in a second.
const LARGEST_SAMPLE: f64 = 2e7;

/// The stacks whose values count.
pub(super) trait Counted {
    /// Whether values are numbers of samples, so that they vary by chance.
    const IS_SAMPLED: bool;

    /// The innermost functions of a stack that aren't the place from which its value comes; `None`: the stack doesn't count.
    fn inner(&mut self, stack: StackNodeId) -> Option<&[TextId]>;
}

/// All stacks count.
pub(super) struct AllStacks;

impl Counted for AllStacks {
    const IS_SAMPLED: bool = true;

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

/// Looks for a rhythm in the windows of a service, of the values whose stacks count: of all together, or else of a function.
pub(super) fn of_windows<C: Counted>(
    windows: &Windows<'_>,
    (kind, length_ms): (&str, Option<i64>),
    counted: &mut C,
    cancellation: &Cancellation,
) -> Result<Option<ServiceRhythm>, ApiError> {
    let mut values: BTreeMap<Window, f64> = BTreeMap::new();
    for (&window, places) in &windows.samples {
        cancellation.check()?;
        let samples = places.iter().map(|&place| windows.rows.samples[place]);
        let samples = samples.filter(|sample| counted.inner(sample.stack).is_some());
        values.insert(window, samples.map(|sample| sample.value as f64).sum());
    }
    let sample = if C::IS_SAMPLED { sample_value(windows, values.values().sum()) } else { 0.0 };
    let mut found = of_values(&values, (length_ms, sample), 1);
    if found.is_empty() && C::IS_SAMPLED {
        found = of_functions(windows, (length_ms, sample), cancellation)?;
    }
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

/// The value of a sample: by the numbers of samples where they are stored. Otherwise the least row is one or more samples, of which none is larger than
/// [`LARGEST_SAMPLE`].
fn sample_value(windows: &Windows<'_>, whole: f64) -> f64 {
    let kind = ProfileType::cpu_samples().to_string();
    let series = windows.rows.series().into_iter();
    let counts: HashSet<usize> = series
        .filter(|(_, labels)| labels.get(PROFILE_TYPE) == Some(&*kind))
        .map(|(place, _)| place)
        .collect();
    let is_count = |sample: &&StoredSample| counts.contains(&sample.series.place());
    let count: f64 = windows.rows.samples.iter().filter(is_count).map(|sample| sample.value as f64).sum();
    if count > 0.0 {
        return whole / count;
    }
    let least = windows.rows.samples.iter().map(|sample| sample.value as f64).fold(LARGEST_SAMPLE, f64::min);
    least.max(0.0)
}

/// Instances with a rhythm: the one with the largest bursts, and those whose rhythm is the same. `sample`: value of a sample. `tries`: number of series that are looked at.
fn of_values(
    values: &BTreeMap<Window, f64>,
    (length_ms, sample): (Option<i64>, f64),
    tries: usize,
) -> Vec<Found> {
    let series = by_instance(values, length_ms).into_iter();
    alike(series.filter_map(|one| of_series(one, sample, tries)).collect(), Found::excess, |one| {
        one.rhythm.period
    })
}

/// The rhythm of the function with the largest bursts: a job may take less than the load of a service varies.
fn of_functions(
    windows: &Windows<'_>,
    at: (Option<i64>, f64),
    cancellation: &Cancellation,
) -> Result<Vec<Found>, ApiError> {
    let mut functions = FunctionsOfStacks::new(windows.rows.batch);
    let mut totals: Vec<f64> = Vec::new();
    let mut whole = 0.0;
    for &place in windows.samples.values().flatten() {
        cancellation.check()?;
        let sample = windows.rows.samples[place];
        whole += sample.value as f64;
        for &one in functions.of(sample.stack) {
            let place = one as usize;
            totals.resize(totals.len().max(place + 1), 0.0);
            totals[place] += sample.value as f64;
        }
    }
    let large: Vec<usize> = (0..totals.len()).filter(|&one| totals[one] >= PART * whole).collect();
    let mut slots: Vec<Option<usize>> = vec![None; totals.len()];
    large.iter().enumerate().for_each(|(slot, &one)| slots[one] = Some(slot));
    let mut values: Vec<BTreeMap<Window, f64>> = vec![BTreeMap::new(); large.len()];
    for (&window, places) in &windows.samples {
        let mut sums = vec![0.0; large.len()];
        for &place in places {
            cancellation.check()?;
            let sample = windows.rows.samples[place];
            let of_stack = functions.of(sample.stack).iter().filter_map(|&one| slots[one as usize]);
            of_stack.for_each(|slot| sums[slot] += sample.value as f64);
        }
        values.iter_mut().zip(sums).for_each(|(values, sum)| _ = values.insert(window, sum));
    }
    let found = values.iter().map(|values| of_values(values, at, large.len()));
    let excess = |found: &Vec<Found>| found.iter().map(Found::excess).sum::<f64>();
    Ok(found.max_by(|one, other| excess(one).total_cmp(&excess(other))).unwrap_or_default())
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

fn of_series(series: Series, sample: f64, tries: usize) -> Option<Found> {
    let bursts = bursts(&series.values, sample);
    let length = series.length_ms as f64 / 1e3;
    let begins: Vec<f64> = bursts.iter().map(|burst| burst.first as f64 * length).collect();
    let rhythm = rhythm(&begins, length, tries)?;
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
