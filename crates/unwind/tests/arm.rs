//! 32-bit ARM: compares walks of real programs' stacks with their own unwinder's results.

mod cross;
mod elf;

use cross::{Counts, Tools};
use plumb_fixtures::{Requirement, skip};
use plumb_unwind::arm::Arm;

const TOOLS: Tools = Tools { compiler: "arm-linux-gnueabihf-gcc", emulator: "qemu-arm" };

fn compare(flags: &[&str]) -> Option<Counts> {
    if let Some(why) = cross::lacks(&TOOLS) {
        skip(Requirement::Cross, why);
        return None;
    }
    let counts = cross::compare::<Arm>(&TOOLS, &[&["-funwind-tables"], flags].concat(), &[]);
    assert!(counts.depths > 400, "{counts:?}");
    assert!(counts.links > 0, "{counts:?}");
    Some(counts)
}

#[test]
fn arm_code() {
    compare(&["-O2", "-marm"]);
}

#[test]
fn thumb_code() {
    let Some(counts) = compare(&["-O2", "-mthumb"]) else { return };
    assert!(counts.disguised > 1000, "{counts:?}");
}

#[test]
fn personality_routines_of_languages() {
    compare(&["-O2", "-mthumb", "-fexceptions"]);
    compare(&["-O2", "-marm", "-fexceptions"]);
}

/// Debug information has rules for each instruction of the program; the C library's rules are valid only at calls.
#[test]
fn rules_of_debug_information() {
    compare(&["-O2", "-mthumb", "-g"]);
    compare(&["-O2", "-marm", "-g"]);
}

#[test]
fn not_optimised() {
    compare(&["-O0", "-marm"]);
    compare(&["-O0", "-mthumb"]);
}

#[test]
fn with_frame_pointers() {
    compare(&["-O2", "-marm", "-fno-omit-frame-pointer"]);
    compare(&["-O2", "-mthumb", "-fno-omit-frame-pointer"]);
}
