//! Reduces a profile to what Go's compiler reads of it: the innermost calls of each stack.

use std::collections::{HashMap, HashSet};

use plumb_formats::pprof::message::{Location, Profile};

use crate::pyroscope::types::GoPgo;

/// Keeps the innermost locations of each stack, and sums up stacks that are equal then. If callees are aggregated, the innermost location has
/// no line, as the compiler only weighs calls of the function. `inlined`: locations that are calls inlined into the next one, with which they count as
/// one, as in the profiles that Go writes.
pub(super) fn reduce(profile: &mut Profile, inlined: &HashSet<u64>, options: &GoPgo) {
    let most = usize::try_from(options.keep_locations).unwrap_or(usize::MAX);
    let mut leaves = Leaves::default();
    let mut places: HashMap<Vec<u64>, usize> = HashMap::new();
    let mut kept = Vec::new();
    for mut sample in std::mem::take(&mut profile.sample) {
        if most > 0 {
            let physical = sample.location_id.iter().enumerate().filter(|(_, id)| !inlined.contains(id));
            let end = physical.map(|(place, _)| place + 1).nth(most - 1);
            sample.location_id.truncate(end.unwrap_or(usize::MAX));
        }
        if let Some(innermost) = sample.location_id.first_mut().filter(|_| options.aggregate_callees) {
            *innermost = leaves.of(&mut profile.location, *innermost);
        }
        let next = kept.len();
        match *places.entry(sample.location_id.clone()).or_insert(next) {
            place if place == next => kept.push(sample),
            place => {
                for (sum, value) in kept[place].value.iter_mut().zip(sample.value) {
                    *sum = sum.saturating_add(value);
                }
            }
        }
    }
    profile.sample = kept;
}

/// Locations without lines.
#[derive(Default)]
struct Leaves {
    /// By mapping and functions.
    known: HashMap<(u64, Vec<u64>), u64>,
}

impl Leaves {
    /// The location of the same functions without lines and an address; added if there is none. A location's id is its place, from 1.
    fn of(&mut self, locations: &mut Vec<Location>, id: u64) -> u64 {
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let Some(location) = place.and_then(|place| locations.get(place)) else { return id };
        let functions = location.line.iter().map(|line| line.function_id).collect();
        let mut leaf = Location { id: locations.len() as u64 + 1, address: 0, ..location.clone() };
        leaf.line.iter_mut().for_each(|line| line.line = 0);
        *self.known.entry((location.mapping_id, functions)).or_insert_with(|| {
            let id = leaf.id;
            locations.push(leaf);
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use plumb_formats::pprof::message::{Line, PprofSample};

    use super::*;

    #[test]
    fn innermost_calls_stay_and_lines_of_callees_are_one() {
        let location = |id, function_id, line| Location {
            id,
            address: 16 * id,
            line: vec![Line { function_id, line }],
            ..Location::default()
        };
        let sample = |ids: &[u64], value| PprofSample {
            location_id: ids.to_vec(),
            value: vec![value],
            label: Vec::new(),
        };
        let mut profile = Profile {
            location: vec![location(1, 1, 10), location(2, 1, 11), location(3, 2, 20), location(4, 3, 30)],
            sample: vec![sample(&[1, 3, 4], 5), sample(&[2, 3, 4], 7), sample(&[1, 4, 3], 1)],
            ..Profile::default()
        };
        reduce(&mut profile, &HashSet::new(), &GoPgo { keep_locations: 2, aggregate_callees: true });
        let samples: Vec<_> = profile.sample.iter().map(|one| (&one.location_id[..], one.value[0])).collect();
        assert_eq!(samples, [(&[5, 3][..], 12), (&[5, 4], 1)]);
        let leaf = &profile.location[4];
        assert_eq!((leaf.id, leaf.line[0].function_id, leaf.line[0].line), (5, 1, 0));
    }

    #[test]
    fn inlined_calls_count_as_one_with_their_caller() {
        let sample =
            |ids: &[u64]| PprofSample { location_id: ids.to_vec(), value: vec![1], label: Vec::new() };
        let mut profile =
            Profile { sample: vec![sample(&[1, 2, 3, 4, 5]), sample(&[2, 3])], ..Profile::default() };
        reduce(&mut profile, &[1, 2, 4].into(), &GoPgo { keep_locations: 2, aggregate_callees: false });
        let kept: Vec<_> = profile.sample.iter().map(|one| &one.location_id[..]).collect();
        assert_eq!(kept, [&[1, 2, 3, 4, 5][..], &[2, 3]]);
        reduce(&mut profile, &[1, 2, 4].into(), &GoPgo { keep_locations: 1, aggregate_callees: false });
        let kept: Vec<_> = profile.sample.iter().map(|one| &one.location_id[..]).collect();
        assert_eq!(kept, [&[1, 2, 3][..], &[2, 3]]);
    }
}
