//! Any bytes as a `.sframe` section; see `crates/unwind/tests/fuzzed/sframe.rs`.
//! Seeds: `crates/unwind/tests/sections/*.sframe`.

#![no_main]

#[path = "../../../crates/unwind/tests/fuzzed/mod.rs"]
mod fuzzed;
#[path = "../../../crates/unwind/tests/gimli_rows/mod.rs"]
mod gimli_rows;
#[path = "../../../crates/unwind/tests/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::sframe::run(data));
