//! What may be larger than its limit, and why it is one thing.
//!
//! Each has a bound of its own, so that it doesn't grow. One that is not needed any more is a finding of `tidy`: it goes.

use super::limits::Measure;

/// Something that may be larger.
#[derive(Debug)]
pub struct Exception {
    /// What is measured.
    pub measure: Measure,
    /// The file; of a circle the first one.
    pub file: &'static str,
    /// Name of the function or structure; empty for a file or a circle.
    pub name: &'static str,
    /// How large it may be.
    pub most: usize,
    /// Why it is one thing.
    pub reason: &'static str,
}

/// All exceptions.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        measure: Measure::Function,
        file: "crates/capture-bpf/bpf/capture.bpf.c",
        name: "take",
        most: 72,
        reason: "split in two, the object's disassembly grows by 15%, which older verifiers were not tried with",
    },
    Exception {
        measure: Measure::Function,
        file: "crates/capture-bpf/bpf/offcpu.h",
        name: "is_back",
        most: 71,
        reason: "not split yet: that would be another program to try on older verifiers",
    },
    Exception {
        measure: Measure::Function,
        file: "crates/capture-bpf/bpf/trace.bpf.c",
        name: "take",
        most: 95,
        reason: "not split yet: that would be another program to try on older verifiers",
    },
    Exception {
        measure: Measure::Function,
        file: "crates/capture-bpf/bpf/walk.h",
        name: "walk_step",
        most: 83,
        reason: "one case for each kind of rule; not split yet, as older verifiers would have to be tried",
    },
    Exception {
        measure: Measure::Function,
        file: "crates/formats/src/firefox/write.rs",
        name: "thread",
        most: 66,
        reason: "one JSON object of the Firefox Profiler, in the order in which its format lists the members",
    },
    Exception {
        measure: Measure::Function,
        file: "crates/unwind/src/fast/course.rs",
        name: "run",
        most: 61,
        reason: "one loop over frames or instructions with a case for each kind; not split, as that was not measured",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/analyze/src/explain/mod.rs",
        name: "Explanation",
        most: 19,
        reason: "the sections of one report, each a field that one page prints",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/analyze/src/filter.rs",
        name: "Filter",
        most: 17,
        reason: "one field for each option that narrows what is shown, all of which apply together",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/analyze/src/procs/mod.rs",
        name: "Program",
        most: 21,
        reason: "one row of a table, whose columns are printed by several commands",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/capture-bpf/src/callsums/wire.rs",
        name: "Sum",
        most: 16,
        reason: "one value of a map in the kernel: its fields are counters of one call",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/capture-bpf/src/wire/messages.rs",
        name: "Code",
        most: 16,
        reason: "one message of a kernel's program: what it copied, each part with its address and size",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/cli/src/browse/state.rs",
        name: "State",
        most: 18,
        reason: "what the keys of one screen change, from which it is drawn",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/documents/src/flame/facts.rs",
        name: "Facts",
        most: 17,
        reason: "the members of one JSON object that the page of the flame graph reads",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/cli/src/args/filter.rs",
        name: "SampleFilterArgs",
        most: 16,
        reason: "one field for each option of the command, as clap wants it",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/formats/src/native/meta.rs",
        name: "MetaFields",
        most: 25,
        reason: "the members of meta.json, which serde reads and writes as one",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/profile/src/meta.rs",
        name: "Meta",
        most: 24,
        reason: "what is known of a recording as a whole: the members of meta.json",
    },
    Exception {
        measure: Measure::Struct,
        file: "crates/symbolize/src/options.rs",
        name: "Options",
        most: 19,
        reason: "one field for each debug option and directory that symbols may come from",
    },
];
