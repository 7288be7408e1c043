//! Recordings: any bytes end with a profile whose ids all point somewhere, or an error. A profile that was read is
//! written and read again.
//!
//! The archive's checksums would stop nearly all mutations, so tables are also tried with their checksums made right.
//! Seeds: `plumb record -o fuzz/corpus/recording/x -- true`.

#![no_main]

use std::io::Cursor;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use plumb_formats::native;
use plumb_profile::Profile;

static HOOK: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    // The fuzzer's own hook ends the process, also where a panic becomes an error.
    HOOK.call_once(|| {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !native::panics_become_errors() {
                abort(info);
            }
        }));
    });
    if let Ok(profile) = native::read(Cursor::new(repaired(data.to_vec()))) {
        follow(&profile);
        let mut again = Cursor::new(Vec::new());
        native::write(&profile, &mut again).expect("what was read can be written");
        let again = native::read(again).expect("what was written can be read");
        assert_eq!(again.samples, profile.samples);
    }
});

/// Sets the checksum of each entry that the archive's directory lists to what its bytes give.
fn repaired(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(4).position(|window| window == b"PK\x01\x02") {
        let entry = at + found;
        at = entry + 4;
        let word = |bytes: &[u8], at: usize| {
            let word = bytes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(word)).ok()
        };
        let half = |bytes: &[u8], at: usize| {
            Some(usize::from(*bytes.get(at)?) | usize::from(*bytes.get(at + 1)?) << 8)
        };
        let fixed = (|| {
            let (size, local) = (word(&bytes, entry + 20)?, word(&bytes, entry + 42)?);
            let data =
                local.checked_add(30 + half(&bytes, local.checked_add(26)?)? + half(&bytes, local + 28)?)?;
            let sum = crc(bytes.get(data..data.checked_add(size)?)?).to_le_bytes();
            bytes.get_mut(entry + 16..entry + 20)?.copy_from_slice(&sum);
            bytes.get_mut(local + 14..local + 18)?.copy_from_slice(&sum);
            Some(())
        })();
        if fixed.is_none() {
            break;
        }
    }
    bytes
}

/// CRC-32 as zip uses it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

/// Follows every id.
fn follow(profile: &Profile) {
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let process = &profile.processes[thread.process];
        let texts = [thread.comm, process.exe, profile.events[sample.event].name];
        std::hint::black_box(texts.map(|text| profile.strings.get(text).len()));
        for frame in profile.frames_of(sample.stack).take(10_000) {
            for line in profile.symbols.of(frame) {
                std::hint::black_box(profile.strings.get(profile.symbols.functions[line.function].name));
            }
        }
    }
}
