//! Other performance counters than this machine has, for programs that tests start: `pmu.c` says how.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What programs find.
#[allow(dead_code, reason = "not all tests use both")]
#[derive(Clone, Copy, Debug)]
pub enum Pmu {
    /// No performance counters.
    Hidden,
    /// A double that counts by the clock, and ends a program that opens a hardware event in frequency mode.
    Double,
}

impl Pmu {
    /// The library to preload (`LD_PRELOAD`); `None`, having said why, where there is no compiler.
    pub fn preload(self) -> Option<PathBuf> {
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let options: &[&str] = match self {
            Pmu::Hidden => &[],
            Pmu::Double => &["-DFAKE"],
        };
        // Of this test alone: others may be building it at this moment.
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let name = format!("pmu-{self:?}-{}-{number}.so", std::process::id());
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../capture-perf/tests/pmu/pmu.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC"]).args(options).arg("-o").arg(&library).arg(source);
        match compiler.status() {
            Ok(status) if status.success() => Some(library),
            other => {
                eprintln!("skipped: no C compiler: {other:?}");
                None
            }
        }
    }
}
