//! perf.data: any bytes end with records, counted damage or an error. Seeds: `perf record -o fuzz/corpus/perf_data/x`.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use linux_perf_event_reader::EventRecord;
use plumb_formats::perf_data::PerfData;

fuzz_target!(|data: &[u8]| {
    let Ok(mut input) = PerfData::open(Cursor::new(data)) else { return };
    while let Some(record) = input.next_record() {
        assert!(record.event < record.events.len());
        if let Ok(EventRecord::Sample(sample)) = record.raw.parse() {
            let words =
                sample.callchain.map_or(0, |chain| (0..chain.len()).filter_map(|at| chain.get(at)).count());
            std::hint::black_box(words);
        }
    }
    std::hint::black_box((input.header().meta(), input.loss()));
});
