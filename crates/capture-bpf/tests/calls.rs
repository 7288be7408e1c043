//! Samples taken in the kernel know the system call that they interrupted, and page faults are not attributed to one.

mod setup;

use plumb_capture_bpf::LoadOptions;
use plumb_profile::{FrameKind, Profile, Sample};
use setup::{Folder, alone, command, load, record};

const GETPPID: u32 = 110;
const MUNMAP: u32 = 11;

fn is_in_kernel(profile: &Profile, sample: &Sample) -> bool {
    let leaf = profile.frames_of(sample.stack).next();
    leaf.is_some_and(|leaf| profile.frames[leaf].kind == FrameKind::Kernel)
}

#[test]
fn samples_in_the_kernel_know_their_system_call() {
    let _alone = alone();
    let folder = Folder::new("calls");
    let program = folder.compile("calls.c", "calls", &[]);
    // With equal stacks counted in the kernel and without.
    for counting in [true, false] {
        for what in ["getppid", "faults"] {
            let Some(programs) = load(LoadOptions { counting, ..LoadOptions::default() }) else { return };
            let recorded = record(programs, &command(&[&program, what, "600"]), None);
            let profile = &recorded.profile;
            let kernel: Vec<Sample> =
                profile.samples.iter().filter(|sample| is_in_kernel(profile, sample)).collect();
            let of = |number| kernel.iter().filter(|sample| sample.syscall == number).count();
            let (getppid, munmap, none) = (of(Some(GETPPID)), of(Some(MUNMAP)), of(None));
            println!("{what}: of {} {getppid} getppid, {munmap} munmap, {none} none", kernel.len());
            assert!(kernel.len() > 100, "{}", kernel.len());
            // The rest is the program's start and end, and interrupts: also where stacks are copied, as for a file whose
            // table is not loaded yet.
            match what {
                "getppid" => assert!(getppid * 100 >= kernel.len() * 95, "{getppid} of {}", kernel.len()),
                _ => {
                    assert!((none + munmap) * 100 >= kernel.len() * 85, "{none} of {}", kernel.len());
                    assert!(none > munmap && getppid == 0, "{none} {munmap}");
                }
            }
            let user = profile.samples.iter().filter(|sample| !is_in_kernel(profile, sample));
            assert!(user.into_iter().all(|sample| sample.syscall.is_none()), "user code is in no call");
        }
    }
}
