//! Deployments: services with an older and a newer version in the selection, and what costs more in the newer one.
//!
//! A version is identified by a label, or by the build id of a mapped file. Elsewhere: the statistics (`plumb_analyze`), the words (`plumb_documents`).

use std::collections::{BTreeMap, HashMap, HashSet};

use plumb_analyze::{LEAST_WINDOWS, WindowSums, dearer, origin};
use plumb_documents::findings::ServiceChange;
use plumb_store::{Cancellation, Labels, Millis, StackNodeId, StoredSample, TextId};

use super::windows::{FunctionsOfStacks, Window, Windows};
use crate::error::ApiError;
use crate::moment;

/// Labels that tell a version, the most reliable first.
pub(super) const VERSION_LABELS: [&str; 2] = ["service_version", "container_image_name"];
/// Characters of a build id that are shown.
const ID_LENGTH: usize = 12;

/// A version, and the time of its first window.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    name: String,
    label: Option<&'static str>,
    since: Millis,
    windows: HashSet<Window>,
}

/// A comparison of a service's versions.
pub(super) enum Compared {
    /// There is one version, or none is known.
    One,
    /// There are several, and the newest takes more than the one before it, or doesn't.
    Versions(Option<Box<ServiceChange>>),
}

/// Looks for what is dearer in the newest version than in the one before it, in profiles of a type.
pub(super) fn compare(
    windows: &Windows<'_>,
    kind: &str,
    cancellation: &Cancellation,
) -> Result<Compared, ApiError> {
    let Some([old, new]) = windows.versions(cancellation)? else { return Ok(Compared::One) };
    let mut functions = FunctionsOfStacks::new(windows.rows.batch);
    let before = windows.sums(&old, &mut functions, cancellation)?;
    let after = windows.sums(&new, &mut functions, cancellation)?;
    let dearer = dearer(&before, &after);
    let Some((change, caller)) = origin(&dearer) else { return Ok(Compared::Versions(None)) };
    let name = |function: u32| functions.name(function).to_owned();
    let times: HashSet<Millis> = new.windows.iter().map(|(_, time)| *time).collect();
    let instances = new.windows.len() as f64 / times.len().max(1) as f64;
    let each_ns = windows.length_ms() as f64 * 1e6;
    Ok(Compared::Versions(Some(Box::new(ServiceChange {
        profile_type: kind.to_owned(),
        label: new.label,
        before: old.name.clone(),
        after: new.name.clone(),
        since: moment::text(new.since.0),
        function: name(change.function),
        caller: caller.map(|caller| name(caller.function)),
        times: (change.means[0] > 0.0).then_some([change.times, change.low, change.high]),
        share: change.means[1] / after.mean_whole(),
        more_per_ns: (change.means[1] - change.means[0]) * instances / each_ns,
        lasted_ns: (times.len() as f64 * each_ns) as u64,
    }))))
}

/// The version that labels tell.
pub(super) fn version_of(labels: &Labels) -> Option<&str> {
    VERSION_LABELS.iter().find_map(|label| labels.get(label))
}

impl<'b> Windows<'b> {
    /// The newest version, and the one before it.
    fn versions(&self, cancellation: &Cancellation) -> Result<Option<[Version; 2]>, ApiError> {
        for label in VERSION_LABELS {
            let version = |place: usize| {
                let sample: StoredSample = self.rows.samples[place];
                self.rows.batch.labels(sample.series).get(label).map(str::to_owned)
            };
            if let Some(two) = latest(self.by(version), Some(label)) {
                return Ok(Some(two));
            }
        }
        self.builds(cancellation)
    }

    /// Windows by the version of their samples, without those that have several.
    fn by(&self, version: impl Fn(usize) -> Option<String>) -> BTreeMap<String, HashSet<Window>> {
        let mut found: BTreeMap<String, HashSet<Window>> = BTreeMap::new();
        for (window, places) in &self.samples {
            let versions: HashSet<String> = places.iter().filter_map(|&place| version(place)).collect();
            if let (1, Some(version)) = (versions.len(), versions.into_iter().next()) {
                found.entry(version).or_default().insert(*window);
            }
        }
        found
    }

    /// Versions by the build ids of the mapped file that has most samples of those that have several.
    fn builds(&self, cancellation: &Cancellation) -> Result<Option<[Version; 2]>, ApiError> {
        let dictionary = &self.rows.batch.dictionary;
        let none = TextId::default();
        let mut ids: HashMap<TextId, HashSet<TextId>> = HashMap::new();
        for frame in dictionary.frames().filter(|frame| frame.mapping != none && frame.build_id != none) {
            ids.entry(frame.mapping).or_default().insert(frame.build_id);
        }
        ids.retain(|_, ids| ids.len() > 1);
        let mut best: Option<[Version; 2]> = None;
        for &mapping in ids.keys() {
            // The build of each stack's outermost frame in the file.
            let mut of_stack: HashMap<StackNodeId, Option<TextId>> = HashMap::new();
            let mut build = |stack: StackNodeId| {
                *of_stack.entry(stack).or_insert_with(|| {
                    let frames = dictionary.frames_of(stack).map(|frame| dictionary.frame_at(frame));
                    frames.filter(|frame| frame.mapping == mapping).map(|frame| frame.build_id).last()
                })
            };
            let mut builds: Vec<Option<TextId>> = Vec::with_capacity(self.rows.samples.len());
            for sample in self.rows.samples {
                cancellation.check()?;
                builds.push(build(sample.stack));
            }
            let version = |place: usize| {
                let id = dictionary.resolve(builds[place]?);
                Some(id.chars().take(ID_LENGTH).collect())
            };
            let two = latest(self.by(version), None);
            let size = |two: &[Version; 2]| two[0].windows.len() + two[1].windows.len();
            if two.as_ref().map_or(0, size) > best.as_ref().map_or(0, size) {
                best = two;
            }
        }
        Ok(best)
    }

    fn sums(
        &self,
        version: &Version,
        functions: &mut FunctionsOfStacks<'b>,
        cancellation: &Cancellation,
    ) -> Result<WindowSums, ApiError> {
        let mut sums = WindowSums::default();
        for window in &version.windows {
            let (mut whole, mut values) = (0.0, HashMap::new());
            for &place in self.samples.get(window).into_iter().flatten() {
                cancellation.check()?;
                let sample = self.rows.samples[place];
                let value = sample.value as f64;
                whole += value;
                let of_stack = functions.of(sample.stack);
                of_stack.iter().for_each(|&function| *values.entry(function).or_default() += value);
                of_stack.first().iter().for_each(|&&function| sums.add_own(function, value));
            }
            sums.add(whole, values);
        }
        Ok(sums)
    }
}

/// The newest of versions and the one before it, if both have enough windows.
fn latest(found: BTreeMap<String, HashSet<Window>>, label: Option<&'static str>) -> Option<[Version; 2]> {
    let version = |(name, windows): (String, HashSet<Window>)| {
        let since = windows.iter().map(|(_, time)| *time).min()?;
        Some(Version { name, label, since, windows })
    };
    let enough = |version: &Version| version.windows.len() >= LEAST_WINDOWS;
    let mut versions: Vec<Version> = found.into_iter().filter_map(version).filter(enough).collect();
    versions.sort_by_key(|version| version.since);
    let new = versions.pop()?;
    let old = versions.pop().filter(|old| old.since < new.since)?;
    Some([old, new])
}
