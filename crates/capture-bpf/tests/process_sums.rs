//! Sums of system calls of every process: exact for an ended process, gone once removed, and calls without space are counted.

use std::process::{Command, Stdio};

use plumb_capture_bpf::{LoadError, ProcessCall, ProcessSum, ProcessSums};
use plumb_fixtures::{Requirement, needs};
use plumb_syscalls::{Abi, number};

fn load(room: u32) -> Option<ProcessSums> {
    match ProcessSums::load(room) {
        Ok(sums) => Some(sums),
        Err(error @ LoadError::Unsupported(_)) => {
            assert!(!needs(Requirement::Bpf), "{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn read(sums: &mut ProcessSums) -> Vec<(ProcessCall, ProcessSum)> {
    let mut all = Vec::new();
    sums.read(|key, sum| all.push((key, sum))).expect("the kernel shows them");
    all
}

#[test]
fn sums_of_a_process_stay_when_it_has_ended_until_they_are_forgotten() {
    let Some(mut sums) = load(ProcessSums::ROOM) else { return };
    let zero = std::fs::File::open("/dev/zero").expect("it is there");
    // As many reads as blocks, and as many writes.
    let mut copy = Command::new("dd");
    copy.args(["of=/dev/null", "bs=1M", "count=500"]).stdin(Stdio::from(zero)).stderr(Stdio::null());
    let mut copy = copy.spawn().expect("it starts");
    let pid = copy.id();
    assert!(copy.wait().expect("it ends").success());
    let read_call = number(Abi::NATIVE, "read");
    let of_copy: Vec<_> = read(&mut sums).into_iter().filter(|(key, _)| key.pid == pid).collect();
    let reads = of_copy.iter().find(|(key, _)| Some(key.number) == read_call).expect("it read").1;
    // The loader reads headers of libraries.
    assert!((500..510).contains(&reads.calls), "{reads:?}");
    assert!(reads.cpu_ns > 500 * 1_000, "a MiB takes longer than a microsecond: {reads:?}");
    let keys: Vec<ProcessCall> = of_copy.iter().map(|(key, _)| *key).collect();
    // A missing one is skipped.
    let keys = [&keys[..1], &[ProcessCall { pid: u32::MAX, ..keys[0] }], &keys[1..]].concat();
    sums.forget(&keys).expect("the kernel forgets them");
    assert!(read(&mut sums).iter().all(|(key, _)| key.pid != pid), "they are gone");
    assert_eq!(sums.lost(), 0);
}

#[test]
fn calls_without_room_are_counted() {
    const ROOM: u32 = 16;
    let Some(mut sums) = load(ROOM) else { return };
    let before = sums.lost();
    let status = Command::new("true").status().expect("it starts");
    assert!(status.success());
    assert!(read(&mut sums).len() <= ROOM as usize);
    assert!(sums.lost() > before, "a program makes more than {ROOM} different calls");
}
