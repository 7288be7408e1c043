//! The memory still available to this process.

use std::path::Path;

/// Returns the bytes that can be allocated without evicting anything: the machine's available memory, and what the limits of this
/// process' cgroups (version 2) leave of that. `None` if /proc cannot be read.
pub fn available_memory() -> Option<u64> {
    let machine = available_in_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let limits = Path::new("/sys/fs/cgroup").join(path);
    let left =
        limits.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup")).filter_map(left_in);
    Some(left.fold(machine, u64::min))
}

/// Returns the memory left below a cgroup's limit, if it has one.
fn left_in(folder: &Path) -> Option<u64> {
    let number = |file| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

fn available_in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_machine_has_to_spare() {
        assert_eq!(available_in_meminfo("MemTotal:  9 kB\nMemAvailable:    8 kB\n"), Some(8192));
        assert_eq!(available_in_meminfo("MemTotal:  9 kB\n"), None);
        let total = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total: u64 = total.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!((1..=total * 1024).contains(&available_memory().unwrap()));
    }
}
