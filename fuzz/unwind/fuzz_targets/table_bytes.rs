//! Tables of any bytes as sections; see `crates/unwind/tests/fuzzed/table_bytes.rs`. Ten minutes, in `fuzz/unwind`:
//! `cargo +nightly fuzz run -s none table_bytes -- -max_total_time=600 -max_len=4096`. Seeds:
//! `objcopy -O binary --only-section=.eh_frame /bin/ls corpus/table_bytes/ls`, with four bytes before it.

#![no_main]

#[path = "../../../crates/unwind/tests/fuzzed/mod.rs"]
mod fuzzed;
#[path = "../../../crates/unwind/tests/gimli_rows/mod.rs"]
mod gimli_rows;
#[path = "../../../crates/unwind/tests/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::table_bytes::run(data));
