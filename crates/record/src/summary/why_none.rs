//! Why a recording of a command has no samples.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use plumb_profile::Profile;
use plumb_target::program_file;

use super::ENOUGH_SAMPLES;

/// `S_ISUID` and `S_ISGID`.
const SET_ID: u32 = 0o6000;

/// The target used too little time for that to be a surprise.
pub(super) fn is_little(used: Duration, frequency_hz: u32) -> Option<String> {
    let used = used.as_secs_f64();
    let period = 1.0 / f64::from(frequency_hz);
    (used < ENOUGH_SAMPLES * period).then(|| {
        format!(
            "no samples: one is taken every {:.1} ms of processor time, and the target used {:.1} ms; \
             a longer run gives samples, or a higher -F",
            period * 1e3,
            used * 1e3
        )
    })
}

/// The program runs with the rights of another user: at its exec the kernel takes away the events of who may not watch it (fs/exec.c,
/// `begin_new_exec`).
pub(super) fn changes_user(profile: &Profile) -> Option<String> {
    let program = OsStr::new(profile.meta.command.first()?);
    let file = program_file(program, &std::env::var_os("PATH").unwrap_or_default())?;
    let metadata = fs::metadata(&file).ok()?;
    let (own, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let is_others = metadata.uid() != own.as_raw() || metadata.gid() != group.as_raw();
    (metadata.mode() & SET_ID != 0 && is_others && !own.is_root()).then(|| {
        format!(
            "no samples: {} runs with the rights of its owner (set-user-ID), and the kernel ends sampling where rights change; record it as root",
            file.display()
        )
    })
}
