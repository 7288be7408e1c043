//! The types of the running kernel for one object of programs: all of them, or those that `plumb` trims them to.

#![allow(dead_code)]

use aya_obj::Object;
use aya_obj::btf::Btf;
use object::Endianness;

use crate::Outcome;
use crate::pages::peak;

#[path = "../../../crates/capture-bpf/src/btf.rs"]
mod btf;

/// The structures and tracepoints that a recording names.
const NAMES: [&str; 14] = [
    "task_struct",
    "mm_struct",
    "vm_area_struct",
    "file",
    "inode",
    "thread_struct",
    "pt_regs",
    "path",
    "dentry",
    "super_block",
    "signal_struct",
    "btf_trace_sched_process_exec",
    "btf_trace_sched_process_exit",
    "btf_trace_task_newtask",
];

/// The file alone.
pub fn read() -> Outcome {
    println!("{} bytes", std::fs::read(btf::PATH)?.len());
    println!("{} KiB", peak());
    Ok(())
}

/// All types.
pub fn whole(object: &str) -> Outcome {
    place(object, &Btf::parse(&std::fs::read(btf::PATH)?, Endianness::default())?)
}

/// Those that are named, and stubs.
pub fn trimmed(object: &str) -> Outcome {
    let only = btf::Types::read()?.only(&NAMES);
    place(object, &Btf::parse(&only, Endianness::default())?)
}

/// What a loader does with them before it asks the kernel.
fn place(object: &str, types: &Btf) -> Outcome {
    let mut object = Object::parse(&std::fs::read(object)?)?;
    // A structure that is no part of NAMES ends it; what was looked up until then counts.
    match object.relocate_btf(types) {
        Ok(()) => println!("placed"),
        Err(error) => println!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string)),
    }
    println!("{} KiB", peak());
    Ok(())
}
