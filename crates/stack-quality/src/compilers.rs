//! Detects the compiler of a file, where remedies depend on it.
//!
//! Elsewhere: runtimes that generate code at run time, see `runtimes`.

use std::fs::File;

use plumb_process::Elf;
use plumb_profile::{DsoId, Mapping, Profile};

/// Whether a file has code of GHC, according to its `.comment` section. False if it can't be read any more.
pub(super) fn is_haskell(profile: &Profile, dso: DsoId) -> bool {
    let file = File::open(profile.strings.get(profile.dsos[dso].path));
    let compilers = file.ok().and_then(|file| Some(Elf::read(&file).ok()?.compilers(&file)));
    compilers.is_some_and(|compilers| compilers.lines().any(|line| line.starts_with("GHC ")))
}

/// Whether a file is a Poly/ML program: a process that runs it has mapped Poly/ML's library.
pub(super) fn is_poly_ml(profile: &Profile, dso: DsoId) -> bool {
    let program = profile.dsos[dso].path;
    let runs_it = |mapping: &&Mapping| profile.processes[mapping.process].exe == program;
    let is_library = |mapping: &Mapping| {
        let path = profile.strings.get(profile.dsos[mapping.dso].path);
        path.rsplit('/').next().is_some_and(|name| name.starts_with("libpolyml.so"))
    };
    profile.mappings.iter().filter(runs_it).any(is_library)
}
