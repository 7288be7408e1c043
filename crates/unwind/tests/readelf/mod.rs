//! Test helper that parses the output of `readelf -u` for `.ARM.exidx`.

use std::path::Path;
use std::process::Command;

/// Effect of a function's unwind instructions.
#[derive(Debug)]
pub struct Expected {
    /// Register that the caller's stack pointer is relative to.
    pub base: u16,
    /// Offset of the caller's stack pointer from the base.
    pub offset: i64,
    /// Offsets at which registers are saved, relative to the base. The return address is listed as the program
    /// counter.
    pub loaded: Vec<(u16, i64)>,
}

/// Returns the functions of a file by address; `None` for those that cannot be unwound. Omits functions with their
/// own personality routine, whose instructions readelf does not know. Returns `None` if `readelf` or the file is
/// missing.
pub fn functions(file: &Path) -> Option<Vec<(u64, Option<Expected>)>> {
    let output = Command::new("arm-linux-gnueabihf-readelf").arg("-u").arg(file).output().ok()?;
    if !file.exists() || !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut functions: Vec<(u64, Option<Expected>)> = Vec::new();
    let mut finished = false;
    for line in text.lines() {
        if let Some((address, rest)) = line.strip_prefix("0x").and_then(|line| line.split_once(':')) {
            // A name may be between address and colon.
            let address = address.split(' ').next().unwrap_or_default();
            let address = u64::from_str_radix(address, 16).ok()? & !1;
            let expected = Expected { base: 13, offset: 0, loaded: Vec::new() };
            functions.push((address, (!rest.contains("cantunwind")).then_some(expected)));
            finished = false;
        } else if line.contains("Personality routine") {
            functions.pop();
            finished = true;
        } else if let Some((_, Some(expected))) = functions.last_mut()
            && !finished
        {
            finished = line.trim_end().ends_with("finish");
            step(line, expected);
        }
    }
    Some(functions)
}

/// Parses one line: the bytes of an instruction, then its effect.
fn step(line: &str, expected: &mut Expected) {
    if let Some((_, registers)) = line.split_once("pop {") {
        for register in registers.trim_end().trim_end_matches('}').split(", ") {
            match register.strip_prefix('r').map(|number| number.parse::<u16>().expect("a number")) {
                // VFP registers
                None => expected.offset += 8,
                Some(number) => {
                    expected.loaded.push((number, expected.offset));
                    expected.offset += 4;
                }
            }
        }
        let interrupts = expected.loaded.iter().any(|&(number, _)| number == 15);
        for (number, _) in &mut expected.loaded {
            if *number == 14 && !interrupts {
                *number = 15;
            }
        }
    } else if let Some((_, value)) = line.split_once("vsp = vsp + ") {
        expected.offset += value.trim().parse::<i64>().expect("a number");
    } else if let Some((_, register)) = line.split_once("vsp = r") {
        expected.base = register.trim().parse().expect("a number");
        expected.offset = 0;
    }
}
