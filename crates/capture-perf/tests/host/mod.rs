//! The machine that tests run on, which may be a virtual one.

#![allow(dead_code, reason = "not every test uses all of it")]

/// Processors that are online, which is where programs may count: a test may be confined to fewer, and so be told of fewer by
/// [`std::thread::available_parallelism`], which also goes by a quota of time.
pub fn cpus() -> usize {
    let stat = std::fs::read_to_string("/proc/stat").expect("it is there");
    let is_cpu = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    stat.lines().filter(is_cpu).count()
}

/// Seconds that the machine's host took from its processors so far. The clock of samples counts them, the kernel's account of
/// processes does not.
pub fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("it is there");
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}
