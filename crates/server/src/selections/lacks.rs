//! Missing data in selected profiles: code without names, and truncated stacks; and what their sender can do.

use std::collections::{BTreeMap, HashMap};

use plumb_documents::answers::Lack;
use plumb_profile::{DsoId, Profile, StackId, Truncation};

/// The subject of a lack: a reason of truncation, or a file whose code has no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Cut(Truncation),
    NoStack,
    Nameless(DsoId),
}

/// Smallest share of the samples for which a file without names is reported.
const NOTABLE: f64 = 0.005;

/// All lacks, the one with the most samples first.
pub(crate) fn lacks(profile: &Profile) -> Vec<Lack> {
    let mut known: HashMap<StackId, Vec<Cause>> = HashMap::new();
    let mut counts: BTreeMap<Cause, u64> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let causes = match sample.stack {
            None => &vec![Cause::NoStack],
            Some(stack) => known.entry(stack).or_insert_with(|| causes(profile, stack)),
        };
        causes.iter().for_each(|&cause| *counts.entry(cause).or_default() += 1);
    }
    let least = (profile.samples.len() as f64 * NOTABLE).max(1.0);
    let is_notable =
        |&(cause, samples): &(Cause, u64)| !matches!(cause, Cause::Nameless(_)) || samples as f64 >= least;
    let mut counts: Vec<(Cause, u64)> = counts.into_iter().filter(is_notable).collect();
    counts.sort_by_key(|&(_, samples)| std::cmp::Reverse(samples));
    counts.into_iter().map(|(cause, samples)| lack(profile, cause, samples)).collect()
}

/// Each cause once per stack.
fn causes(profile: &Profile, stack: StackId) -> Vec<Cause> {
    let mut causes = Vec::new();
    for id in profile.frames_of(Some(stack)) {
        let frame = &profile.frames[id];
        let cause = match (frame.cut(), frame.dso) {
            (Some(cut), _) => Cause::Cut(cut),
            (None, Some(dso)) if profile.symbols.of(id).is_empty() => Cause::Nameless(dso),
            _ => continue,
        };
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes
}

fn lack(profile: &Profile, cause: Cause, samples: u64) -> Lack {
    let (what, remedy) = match cause {
        Cause::Cut(cut) => (
            format!("truncated stacks: {}", cut.text()),
            "record on the machine that they come from, and run plumb doctor FILE there: it names the file, and what helps"
                .to_owned(),
        ),
        Cause::NoStack => ("samples without a stack".to_owned(), String::new()),
        Cause::Nameless(dso) => {
            let dso = &profile.dsos[dso];
            let path = profile.strings.get(dso.path);
            let remedy = match &dso.build_id {
                Some(id) => format!(
                    "plumb push {path} sends its symbols, or a debug file of build ID {id}: names then show in old profiles too"
                ),
                None => "send its profiles with names, or link it with --build-id, so that plumb push FILE can send its symbols".to_owned(),
            };
            (format!("no function names: {path}"), remedy)
        }
    };
    Lack { what, samples, remedy }
}
