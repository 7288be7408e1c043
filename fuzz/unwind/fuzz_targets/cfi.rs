//! Any bytes as call-frame information; see `crates/unwind/tests/fuzzed/cfi.rs`.
//! Seeds: `objcopy -O binary --only-section=.eh_frame /bin/ls fuzz/unwind/corpus/cfi/ls`.

#![no_main]

#[path = "../../../crates/unwind/tests/fuzzed/mod.rs"]
mod fuzzed;
#[path = "../../../crates/unwind/tests/gimli_rows/mod.rs"]
mod gimli_rows;
#[path = "../../../crates/unwind/tests/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::cfi::run(data));
