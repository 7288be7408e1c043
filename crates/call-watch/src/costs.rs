//! Costs of system calls, page faults and the like on this machine: measured on first use, then cached.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use plumb_analyze::Costs;
use plumb_process::DiskCache;
use serde_json::{Value, json};

/// Number of measurements (the fastest one counts), and repetitions in each.
const CALLS: (u32, u32) = (7, 5000);
const READS: (u32, u32) = (7, 200);
const OPENS: (u32, u32) = (7, 200);
/// Bytes of a large read.
const LARGE: usize = 64 << 10;
/// Bytes touched to cause page faults: more than the C library would keep in its own pool.
const TOUCHED: usize = 64 << 20;
/// Kind and version of the cached file, and the size limit of all of them.
const KIND: (&str, u32, u64) = ("costs", 1, 1 << 20);
/// Longest machine name in a cache key.
const KEY: usize = 90;

/// The costs: from the cache, or measured now, which takes some 50 ms.
pub(crate) fn measured() -> Costs {
    let kept = DiskCache::open(KIND.0, KIND.1, KIND.2);
    let key = machine();
    if let Some(costs) = kept.get(&key).and_then(|bytes| read(&bytes)) {
        return costs;
    }
    let costs = measure();
    let text = json!({ "call": costs.call, "byte": costs.byte, "fault": costs.fault, "open": costs.open });
    kept.put(&key, text.to_string().as_bytes());
    costs
}

/// Cost of a system call that does nothing, measured now, in nanoseconds.
pub fn call_ns() -> f64 {
    // getppid(2), which the C library always passes on to the kernel.
    fastest(CALLS, || {
        black_box(std::os::unix::process::parent_id());
    })
}

/// The kernel and the CPU model.
fn machine() -> Vec<u8> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    let model = model.split(": ").nth(1).unwrap_or_default();
    let mut key = format!("{} {model}", release.trim()).into_bytes();
    key.truncate(KEY);
    key
}

fn read(bytes: &[u8]) -> Option<Costs> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let of = |name: &str| value[name].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
    Some(Costs { call: of("call")?, byte: of("byte")?, fault: of("fault")?, open: of("open")? })
}

fn measure() -> Costs {
    let own = std::env::current_exe().ok();
    let file = own.as_ref().and_then(|path| File::open(path).ok());
    let mut buffer = vec![0; LARGE];
    let mut read = |bytes: usize| {
        file.as_ref()
            .map_or(0.0, |file| fastest(READS, || drop(black_box(file.read_at(&mut buffer[..bytes], 0)))))
    };
    let byte = (read(LARGE) - read(1)).max(0.0) / LARGE as f64;
    let open = own.map_or(0.0, |path| fastest(OPENS, || drop(black_box(File::open(&path)))));
    Costs { call: call_ns(), byte, fault: fault_ns().unwrap_or(0.0), open }
}

/// Cost of a page fault in nanoseconds, when memory is touched page by page.
fn fault_ns() -> Option<f64> {
    let before = faults()?;
    let begin = Instant::now();
    let mut memory = vec![0_u8; TOUCHED];
    for at in (0..TOUCHED).step_by(4096) {
        memory[at] = 1;
    }
    black_box(&mut memory);
    let took = begin.elapsed().as_nanos() as f64;
    let faults = faults()?.saturating_sub(before);
    (faults > 0).then(|| took / faults as f64)
}

/// Minor faults of this process so far (proc(5): the tenth field).
fn faults() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after) = text.rsplit_once(')')?;
    after.split_whitespace().nth(7)?.parse().ok()
}

/// Nanoseconds per call of `work`, from the fastest of several measurements.
fn fastest((rounds, times): (u32, u32), mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let begin = Instant::now();
        (0..times).for_each(|_| work());
        begin.elapsed().as_nanos() as f64 / f64::from(times)
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_of_a_plausible_size() {
        let costs = measure();
        assert!((10.0..1e5).contains(&costs.call), "{costs:?}");
        assert!((0.0..100.0).contains(&costs.byte), "{costs:?}");
        assert!(costs.open > costs.call, "{costs:?}");
        // A huge page may come with one fault.
        assert!((100.0..1e7).contains(&costs.fault), "{costs:?}");
    }

    #[test]
    fn damaged_costs_are_measured_again() {
        assert_eq!(read(b"{}"), None);
        assert_eq!(read(br#"{"call": -1, "byte": 1, "fault": 1, "open": 1}"#), None);
        assert!(read(br#"{"call": 1, "byte": 1, "fault": 1, "open": 1}"#).is_some());
    }
}
