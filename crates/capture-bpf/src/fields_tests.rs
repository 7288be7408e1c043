//! Programs on kernels whose structures differ from this one's: fields of another width or signedness, bit fields, and missing fields.
//!
//! The types by which the programs are relocated are this kernel's with such changes. The running kernel then loads the programs.

use plumb_fixtures::{Requirement, needs};

use crate::btf::Types;
use crate::{
    CallFacts, CallFilter, CallSums, Calls, Faults, LoadError, LoadOptions, Measured, OffCpu, Per,
    ProcessSums, Programs, ReplacedReturns, Stat,
};

/// Structures that programs look into.
const STRUCTURES: [&str; 20] = [
    "task_struct",
    "uprobe_task",
    "return_instance",
    "thread_info",
    "thread_struct",
    "sched_entity",
    "sched_info",
    "signal_struct",
    "mm_struct",
    "vm_area_struct",
    "inode",
    "super_block",
    "fdtable",
    "files_struct",
    "ma_state",
    "maple_tree",
    "cgroup",
    "css_set",
    "kernfs_node",
    "file",
];
/// Fields that a kernel may be built without.
const OPTIONAL: [&str; 6] = ["run_delay", "fsbase", "status", "i_generation", "cgroups", "utask"];

/// Loads every set of programs. Returns the error of each, if any.
fn load_all() -> Vec<(&'static str, Option<LoadError>)> {
    let off_cpu = |looks_back| {
        let off_cpu = OffCpu { min_ns: 1000, stacks_per_second: 1000, walks: true, looks_back };
        Programs::load(LoadOptions { measure: Some(Measured::OffCpu(off_cpu)), ..LoadOptions::default() })
    };
    // Loading without the programs for script frames counts as a failure.
    let whole = |programs: Result<Programs, LoadError>| match programs {
        Ok(mut programs) => {
            let without = programs.take_without_scripts();
            without.map_or(Ok(()), Err).and(programs.without_threads().map_or(Ok(()), |error| {
                Err(LoadError::Unsupported(crate::Unsupported::Kernel(error.to_string())))
            }))
        }
        Err(error) => Err(error),
    };
    let filter = CallFilter { min_ns: 0, failed_only: false, counts_met: true, ring_bytes: 1 << 20 };
    let sums = CallSums::load(true, Per::File, |_| CallFacts { text: Some(0), takes_file: true });
    [
        ("samples", whole(Programs::load(LoadOptions { tells_cgroups: true, ..LoadOptions::default() }))),
        ("off-CPU", whole(off_cpu(true))),
        ("off-CPU by wake-ups", whole(off_cpu(false))),
        ("calls", Calls::load(filter).map(drop)),
        ("sums of calls", sums.map(drop)),
        ("sums of processes", ProcessSums::load(ProcessSums::ROOM).map(drop)),
        ("faults", Faults::load().map(drop)),
        ("replaced returns", ReplacedReturns::load().map(drop)),
        ("stat", Stat::load(true).map(drop)),
    ]
    .map(|(name, result)| (name, result.err()))
    .into()
}

/// Loads all programs by changed types of this kernel. Returns why some were refused.
fn refused_with(change: impl FnOnce(&mut Types)) -> Vec<String> {
    let mut types = Types::read().expect("BPF works here, so the kernel has types");
    change(&mut types);
    let _made = types.instead_of_this_kernels();
    let refused = load_all().into_iter().filter_map(|(name, error)| Some((name, error?)));
    refused.map(|(name, error)| format!("{name}: {error:?}")).collect()
}

#[test]
fn programs_load_whatever_width_and_sign_numbers_have() {
    if !needs(Requirement::Bpf) {
        return;
    }
    for narrower in ["unsigned char", "char", "short int"] {
        let refused = refused_with(|types| {
            assert!(types.retype_numbers(&STRUCTURES, narrower) > 100, "too few numbers changed");
        });
        assert!(refused.is_empty(), "as {narrower}: {refused:#?}");
    }
    // The running kernel refuses loads beyond the end of its own field. The relocation itself must not fail.
    let refused = refused_with(|types| {
        assert!(types.retype_numbers(&STRUCTURES, "long long unsigned int") > 100);
    });
    assert!(refused.iter().all(|why| why.contains("beyond the end")), "{refused:#?}");
}

#[test]
fn programs_load_where_numbers_are_bit_fields() {
    if needs(Requirement::Bpf) {
        let refused = refused_with(|types| {
            assert!(types.make_bit_fields(&STRUCTURES, 7) > 100, "too few numbers changed");
        });
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[test]
fn programs_load_without_optional_fields() {
    if needs(Requirement::Bpf) {
        let refused = refused_with(|types| {
            assert!(types.rename_fields(&STRUCTURES, &OPTIONAL) >= OPTIONAL.len(), "a field is not there");
        });
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[test]
fn programs_without_a_field_that_they_need_are_refused() {
    if needs(Requirement::Bpf) {
        let refused = refused_with(|types| {
            types.rename_fields(&STRUCTURES, &["tgid"]);
        });
        assert!(refused.len() >= 7, "nothing reads a missing field: {refused:#?}");
    }
}
