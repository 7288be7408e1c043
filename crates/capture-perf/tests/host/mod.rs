//! The machine that tests run on, which may be a virtual one.

/// Seconds that the machine's host took from its processors so far. The clock of samples counts them, the kernel's account of
/// processes does not.
pub fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("it is there");
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}
