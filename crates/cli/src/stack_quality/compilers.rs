//! Which compiler made a file, where remedies depend on that.
//!
//! Not here: runtimes that make code while they run, see `runtimes`.

use std::fs::File;

use plumb_process::Elf;
use plumb_profile::{DsoId, Profile};

/// Whether a file has code of GHC, as its `.comment` says. False where it can't be read any more.
pub(super) fn is_haskell(profile: &Profile, dso: DsoId) -> bool {
    let file = File::open(profile.strings.get(profile.dsos[dso].path));
    let compilers = file.ok().and_then(|file| Some(Elf::read(&file).ok()?.compilers(&file)));
    compilers.is_some_and(|compilers| compilers.lines().any(|line| line.starts_with("GHC ")))
}
