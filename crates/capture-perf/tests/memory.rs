//! Freed memory returns to the system. Alone in its file, as memory is accounted for the whole process.

use plumb_capture_perf::{resident_memory, return_freed_memory, trim_memory};

#[test]
fn what_is_freed_goes_back() {
    return_freed_memory();
    let before = resident_memory().expect("/proc is there").0;
    // Blocks of all sizes: small ones from the heap, large ones mapped on their own.
    let blocks: Vec<Vec<u8>> = (0..4000).map(|block| vec![1; 1000 + 16 * block]).collect();
    let (during, peak) = resident_memory().expect("/proc is there");
    let taken: u64 = blocks.iter().map(|block| block.len() as u64).sum();
    assert!(during > before + taken / 2 && peak >= during, "{before} {during} {peak}");
    drop(blocks);
    trim_memory();
    let after = resident_memory().expect("/proc is there").0;
    if cfg!(target_env = "gnu") {
        assert!(after < before + taken / 4, "{before} {during} {after}");
    }
}
