//! Holds inputs and outputs of instructions against what they do: a program under qemu runs each on many states that differ in one register.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use disarm64::Insn;
use plumb_fixtures::{Requirement, skip};
use plumb_profile::REGISTERS;

use super::instruction::MachineInstruction;
use super::*;
use crate::isa::model::Register;

/// Library directory of Debian's cross compilers.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu/lib";
/// Words taken for each kind of instruction.
const MOST: usize = 4;

/// Bit of the condition flags in the program's masks; registers have their DWARF number, v0 to v31 that number less 32.
const FLAGS: u32 = 31;

fn bit(register: Register) -> u64 {
    match register {
        Register::General(number @ 0..30) => 1 << number,
        Register::Other(number @ 64..96) => 1 << (number - 32),
        _ => 0,
    }
}

fn masks(one: &MachineInstruction) -> (u64, u64) {
    let operands = operands(one);
    let mask = |list: &[Register], flags: bool| {
        list.iter().fold(u64::from(flags) << FLAGS, |mask, &register| mask | bit(register))
    };
    (mask(&operands.writes, operands.sets_flags), mask(&operands.reads, operands.reads_flags))
}

/// Whether the program can run an instruction: it only computes, and not with the registers that the program needs itself.
fn is_testable(one: &MachineInstruction) -> bool {
    use disarm64_defn::InsnClass;
    let Some(definition) = one.definition else { return false };
    // Of scalable vectors the program keeps nothing; their elements may be none.
    let is_scalable = definition.operands.iter().any(|operand| {
        let kind: &str = operand.kind.into();
        kind.starts_with("SVE") || kind.starts_with("SME")
    });
    let operands = operands(one);
    let is_own = |register: &Register| matches!(register, Register::General(30 | 31));
    one.access().is_none()
        && !is_scalable
        && flow::kind(one.word, definition).is_none()
        && !matches!(
            definition.class,
            InsnClass::IC_SYSTEM | InsnClass::EXCEPTION | InsnClass::GCS | InsnClass::PCRELADDR
        )
        && !operands.reads.iter().chain(&operands.writes).any(is_own)
}

/// Returns some instructions of each kind that the bytes of the libraries are.
fn samples() -> Vec<MachineInstruction> {
    let mut counts: HashMap<*const Insn, usize> = HashMap::new();
    let mut samples = Vec::new();
    for name in ["libc.so.6", "libm.so.6", "libstdc++.so.6"] {
        let bytes = std::fs::read(Path::new(LIBRARIES).join(name)).unwrap_or_default();
        for one in decode(Address(0), &bytes).into_iter().filter(is_testable) {
            let Some(definition) = one.definition else { continue };
            let count = counts.entry(std::ptr::from_ref(definition)).or_default();
            *count += 1;
            if *count <= MOST {
                samples.push(one);
            }
        }
    }
    samples
}

/// Builds the program; `None` without a compiler.
fn program(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/isa/aarch64/tests/effects.c");
    let file = folder.join("effects");
    let mut gcc = Command::new("aarch64-linux-gnu-gcc");
    let output = gcc.args(["-O1", "-static", "-o"]).arg(&file).arg(source).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(file)
}

/// The effect of an instruction under qemu.
struct Effect {
    written: u64,
    read: u64,
    /// x0 to x29 before and after it.
    states: Vec<([u64; REGISTERS], [u64; REGISTERS])>,
}

/// Registers in the states.
const SHOWN: usize = 30;

/// Returns what each word does; those that do not run are left out. `None` without qemu.
fn effects(program: &Path, samples: &[MachineInstruction]) -> Option<BTreeMap<u32, Effect>> {
    let mut qemu = Command::new("qemu-aarch64");
    qemu.args(["-cpu", "max"]).arg(program).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = qemu.spawn().ok()?;
    let mut input = child.stdin.take()?;
    let words: Vec<u8> = samples.iter().flat_map(|one| one.word.0.to_le_bytes()).collect();
    let writer = std::thread::spawn(move || input.write_all(&words));
    let output = child.wait_with_output().expect("it runs");
    writer.join().expect("no panic").expect("it reads all words");
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let row = |line: &str| {
        let mut parts = line.split(' ');
        let (word, written, read) = (hex(parts.next()?)?, hex(parts.next()?)?, hex(parts.next()?)?);
        let values: Vec<u64> = parts.filter_map(hex).collect();
        let of = |values: &[u64]| {
            let mut all = [0; REGISTERS];
            all[..SHOWN].copy_from_slice(values);
            all
        };
        let states = values.chunks_exact(2 * SHOWN).map(|both| (of(&both[..SHOWN]), of(&both[SHOWN..])));
        Some((word as u32, Effect { written, read, states: states.collect() }))
    };
    Some(String::from_utf8_lossy(&output.stdout).lines().filter_map(row).collect())
}

/// Emulates the instructions on the states, and adds those of which a result that is known is another one than under qemu. Returns the number of those
/// with a known result.
fn check_values(
    samples: &[MachineInstruction],
    effects: &BTreeMap<u32, Effect>,
    different: &mut Vec<String>,
) -> usize {
    let names = BTreeMap::new();
    let mut known = 0;
    for one in samples {
        let Some(effect) = effects.get(&one.word.0) else { continue };
        let written = |number: usize| effect.written >> number & 1 != 0;
        for (before, after) in &effect.states {
            let mut values = Values::new(before);
            values.step(one, &operands(one));
            let now = |number: usize| values.known(number);
            known += usize::from((0..SHOWN).any(|number| written(number) && now(number).is_some()));
            let wrong = (0..SHOWN).find(|&number| now(number).is_some_and(|value| value != after[number]));
            if let Some(number) = wrong {
                let text = Writer::new(&names).text(one);
                let (ours, qemu) = (now(number), after[number]);
                different.push(format!("{:08x} {text}: x{number} is {ours:x?}, qemu {qemu:x}", one.word.0));
            }
        }
    }
    known
}

#[test]
fn inputs_and_outputs_are_those_that_qemu_shows() {
    let folder = std::env::temp_dir().join(format!("plumb-aarch64-effects-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let samples = samples();
    let effects = program(&folder).and_then(|program| effects(&program, &samples));
    std::fs::remove_dir_all(&folder).unwrap();
    let Some(effects) = effects.filter(|_| !samples.is_empty()) else {
        skip(
            Requirement::Cross,
            "aarch64-linux-gnu-gcc, its libraries or qemu-aarch64 are not on this machine",
        );
        return;
    };
    let names = BTreeMap::new();
    let (mut different, mut unseen) = (Vec::new(), 0);
    for one in &samples {
        let Some(&Effect { written, read, .. }) = effects.get(&one.word.0) else { continue };
        let (writes, reads) = masks(one);
        if writes != written || read & !reads != 0 {
            let text = Writer::new(&names).text(one);
            different
                .push(format!("{:08x} {text}: {writes:x} {reads:x}, qemu {written:x} {read:x}", one.word.0));
        }
        unseen += usize::from(read != reads);
    }
    let known = check_values(&samples, &effects, &mut different);
    assert!(known > 100, "{known} results are known");
    println!("{} instructions of {} run, {} differ", effects.len(), samples.len(), different.len());
    assert!(effects.len() > 500, "{} of {}", effects.len(), samples.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    // Inputs without an effect on any of the states, as of a comparison that is false for nearly all numbers.
    assert!(unseen * 8 < effects.len(), "{unseen} of {}", effects.len());
}
