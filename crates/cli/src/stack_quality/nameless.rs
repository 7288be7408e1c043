//! Files and code made at run time in which much was sampled and whose functions have no names, with what would give them some.
//!
//! Not here: why stacks are cut.

use std::collections::BTreeMap;

use plumb_profile::{AddressSpace, DsoId, DsoKind, Profile};

use super::compilers::{is_haskell, is_poly_ml};
use super::packages::debug_symbols;
use super::runtimes::Runtime;
use super::told::Told;

/// Places with less than 1/NOTABLE of the samples are left out.
pub const NOTABLE: u64 = 20;

/// Where samples have a place and no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nameless {
    /// The file, or whose code it is.
    pub place: String,
    /// Number of samples whose innermost frame is there.
    pub samples: u64,
    /// Remedy, empty if none is known.
    pub remedy: String,
}

/// The places with a notable share of the samples, largest first, and how many samples there are.
pub fn nameless(profile: &Profile) -> (Vec<Nameless>, u64) {
    let (mut counts, mut samples) = (BTreeMap::<DsoId, u64>::new(), 0);
    for sample in profile.samples.iter() {
        samples += 1;
        let Some(leaf) = profile.frames_of(sample.stack).next() else { continue };
        if let Some(dso) = profile.frames[leaf].dso.filter(|_| profile.symbols.of(leaf).is_empty()) {
            *counts.entry(dso).or_default() += 1;
        }
    }
    let is_notable = |(_, count): &(DsoId, u64)| count * NOTABLE >= samples;
    let mut places: Vec<Nameless> = counts
        .into_iter()
        .filter(is_notable)
        .filter_map(|(dso, samples)| {
            let (place, remedy) = match profile.dsos[dso].kind {
                DsoKind::File => {
                    (profile.strings.get(profile.dsos[dso].path).to_owned(), of_file(profile, dso))
                }
                DsoKind::Anonymous { pid } => {
                    (format!("code made at run time by process {pid}"), of_runtime(profile, pid))
                }
                _ => return None,
            };
            Some(Nameless { place, samples, remedy })
        })
        .collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.samples));
    (places, samples)
}

/// How the functions of a file get names. A file that is not ELF may be an image of JIT code.
pub fn of_file(profile: &Profile, dso: DsoId) -> String {
    if profile.dsos[dso].addresses != AddressSpace::FileOffset {
        let remedy = match () {
            () if is_haskell(profile, dso) => NO_LOCALS,
            () if is_poly_ml(profile, dso) => POLY_ML,
            () => return stripped(profile, dso),
        };
        return remedy.to_owned();
    }
    let own = profile.mappings.iter().find(|mapping| mapping.dso == dso);
    let pid = own.map(|mapping| profile.processes[mapping.process].pid);
    let runtime = pid.and_then(|pid| Some((Runtime::of(profile, pid)?, pid)));
    runtime.map_or_else(|| stripped(profile, dso), |(runtime, pid)| runtime.names(&Told::of(profile, pid)))
}

/// Remedy for a file that was stripped: the command that gets its debug symbols, if it is of a package that is here.
fn stripped(profile: &Profile, dso: DsoId) -> String {
    let dso = &profile.dsos[dso];
    let command = debug_symbols(profile.strings.get(dso.path), dso.build_id.as_ref());
    command.unwrap_or_else(|| STRIPPED.to_owned())
}

/// Remedy for code that a process made.
fn of_runtime(profile: &Profile, pid: u32) -> String {
    let told = Told::of(profile, pid);
    match Runtime::of(profile, pid) {
        Some(runtime) => runtime.names(&told),
        None if told.has_map => String::new(),
        None => OTHER_RUNTIME.to_owned(),
    }
}

/// Remedy for a stripped file.
const STRIPPED: &str = "build it without -s and strip, or record with --debuginfod";
/// Remedy for a file of GHC.
const NO_LOCALS: &str = "none: GHC gives symbols to top-level functions only";
/// Remedy for a program of Poly/ML.
const POLY_ML: &str = "none: Poly/ML writes no symbols for its code";
/// Remedy for an unknown runtime.
const OTHER_RUNTIME: &str = "have its runtime write /tmp/perf-PID.map, if it can";

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::{Address, Dso, Event, Found, Frame, FrameKind, Process, Sample, Thread};

    #[test]
    fn a_place_without_names_is_told_with_what_helps() {
        let mut profile = Profile::default();
        let (node, stripped) = (profile.strings.add("/usr/bin/node"), profile.strings.add("/opt/stripped"));
        let name = profile.strings.add("cpu-clock");
        let process = profile.processes.push(Process { pid: 7, ppid: 1, exe: node });
        let thread = profile.threads.push(Thread { process, tid: 7, comm: node });
        let event = profile.events.push(Event { name, unit: name });
        let kinds = [(DsoKind::Anonymous { pid: 7 }, node), (DsoKind::File, stripped), (DsoKind::File, node)];
        for ((kind, path), count) in kinds.into_iter().zip([60, 30, 1]) {
            let dso = profile.dsos.add(Dso { path, build_id: None, kind, addresses: AddressSpace::Svma });
            let frame = Frame {
                kind: FrameKind::User,
                dso: Some(dso),
                address: Address(16),
                is_return: false,
                found: Found::Sampled,
            };
            let frame = profile.frames.add(frame);
            let stack = profile.add_stack(&[frame]);
            for time_ns in 0..count {
                let sample = Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 };
                profile.samples.push(sample);
            }
        }
        let (places, samples) = nameless(&profile);
        assert_eq!(samples, 91);
        let told: Vec<_> = places.iter().map(|place| (place.samples, &*place.remedy)).collect();
        assert_eq!(
            told,
            [(60, &*Runtime::Node.names(&Told::default())), (30, STRIPPED)],
            "one in 91 is too few to be told"
        );
        assert!(places[0].place.contains("process 7") && places[1].place == "/opt/stripped");
    }
}
