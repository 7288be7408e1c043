//! Foreign profiles: any bytes end with a profile whose ids all point somewhere, or an error. Which format they are in is for the bytes to
//! say. Seeds: `plumb export -o fuzz/corpus/foreign/x.pb.gz`, `.speedscope.json`, `.firefox.json`, `.folded`, `.perf.txt`, `.trace.json`, `.callgrind`, and
//! `crates/formats/tests/data/*.jfr`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumb_formats::{folded, foreign};

fuzz_target!(|data: &[u8]| {
    let Ok(profile) = foreign::read(data) else { return };
    for sample in profile.samples.iter().take(10_000) {
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
    folded::write(&profile, &folded::FoldedOptions::default(), std::io::sink()).expect("what was read can be written");
});
