//! Walks over made programs of aarch64; see `crates/unwind/tests/fuzzed/aarch64.rs`.

#![no_main]

#[path = "../../../crates/unwind/tests/fuzzed/mod.rs"]
mod fuzzed;
#[path = "../../../crates/unwind/tests/gimli_rows/mod.rs"]
mod gimli_rows;
#[path = "../../../crates/unwind/tests/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzzed::aarch64::run(data);
});
