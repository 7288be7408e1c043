//! 64-bit ARM: compares walks of real programs' stacks with their own unwinder's results.

mod cross;
mod elf;

use cross::{Counts, Tools};
use plumb_fixtures::{Requirement, skip};
use plumb_unwind::aarch64::Aarch64;

const TOOLS: Tools = Tools { compiler: "aarch64-linux-gnu-gcc", emulator: "qemu-aarch64" };

fn compare(flags: &[&str]) -> Option<Counts> {
    if let Some(why) = cross::lacks(&TOOLS) {
        skip(Requirement::Cross, why);
        return None;
    }
    let counts = cross::compare::<Aarch64>(&TOOLS, flags, &[]);
    assert!(counts.depths > 400, "{counts:?}");
    // Leaf functions interrupted by a signal.
    assert!(counts.links > 0, "{counts:?}");
    Some(counts)
}

#[test]
fn optimised() {
    compare(&["-O2", "-fexceptions"]);
}

#[test]
fn not_optimised() {
    compare(&["-O0"]);
}

#[test]
fn small() {
    compare(&["-Os", "-fasynchronous-unwind-tables"]);
}

#[test]
fn with_frame_pointers() {
    compare(&["-O2", "-fno-omit-frame-pointer"]);
}

/// Code generated at run time has frame pointers and no rules.
#[test]
fn functions_without_rules() {
    if let Some(why) = cross::lacks(&TOOLS) {
        skip(Requirement::Cross, why);
        return;
    }
    let hidden = ["probe", "deeper", "plain", "compare", "sorting", "saving", "larger", "variable"];
    let flags = ["-O2", "-fno-omit-frame-pointer"];
    let counts = cross::compare::<Aarch64>(&TOOLS, &flags, &hidden);
    assert!(counts.by_convention > 1000, "{counts:?}");
}

#[test]
fn signed_return_addresses() {
    let Some(counts) = compare(&["-O2", "-mbranch-protection=standard"]) else { return };
    assert!(counts.disguised > 1000, "{counts:?}");
    let Some(counts) = compare(&["-O2", "-march=armv8.5-a", "-mbranch-protection=pac-ret+leaf+b-key"]) else {
        return;
    };
    assert!(counts.disguised > 1000, "{counts:?}");
}
