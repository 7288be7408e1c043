//! Time for which CPU limits of control groups throttled processes, from `cpu.stat` (cgroup v1 and v2).
//!
//! Does not set limits, and does not know who else used the CPUs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Mount points of hierarchies with the CPU controller, and whether each is cgroup v2.
const MOUNTS: [(&str, bool); 4] = [
    ("/sys/fs/cgroup", true),
    ("/sys/fs/cgroup/unified", true),
    ("/sys/fs/cgroup/cpu", false),
    ("/sys/fs/cgroup/cpu,cpuacct", false),
];

/// The control groups of a process that may have a limit: its own and those around it.
#[derive(Clone, Debug)]
pub struct Throttle {
    files: Vec<PathBuf>,
    before: Duration,
}

impl Throttle {
    /// Begins to watch the groups that a process is in now. `None`: nothing says how long they are throttled.
    pub fn of(pid: u32) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let files: Vec<PathBuf> = stat_files(&groups).into_iter().filter(|file| file.exists()).collect();
        let before = throttled(&files);
        (!files.is_empty()).then_some(Self { files, before })
    }

    /// Time for which they were throttled since then, summed over their CPUs.
    pub fn since(&self) -> Duration {
        throttled(&self.files).saturating_sub(self.before)
    }
}

/// The `cpu.stat` of the groups that `/proc/PID/cgroup` lists, and of those around them.
fn stat_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let is_v2 = controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|controller| controller == "cpu") {
            continue;
        }
        for (mount, _) in MOUNTS.iter().filter(|(_, v2)| *v2 == is_v2) {
            let group = Path::new(path.trim_start_matches('/'));
            files.extend(group.ancestors().map(|group| Path::new(mount).join(group).join("cpu.stat")));
        }
    }
    files
}

fn throttled(files: &[PathBuf]) -> Duration {
    files.iter().filter_map(|file| parse(&fs::read_to_string(file).ok()?)).sum()
}

/// Returns the throttled time in a `cpu.stat`, which is in nanoseconds in version 1 and in microseconds in version 2.
fn parse(stat: &str) -> Option<Duration> {
    stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_time", ns) => Some(Duration::from_nanos(ns.trim().parse().ok()?)),
        ("throttled_usec", us) => Some(Duration::from_micros(us.trim().parse().ok()?)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        assert_eq!(
            parse("nr_periods 7\nnr_throttled 3\nthrottled_time 1500\n"),
            Some(Duration::from_nanos(1500))
        );
        assert_eq!(
            parse("usage_usec 9\nnr_throttled 3\nthrottled_usec 20\n"),
            Some(Duration::from_micros(20))
        );
        assert_eq!(parse("usage_usec 9\n"), None, "the root has no limit");
    }

    #[test]
    fn groups_around_a_process_are_its_limits_too() {
        let files = stat_files("4:memory:/x\n3:cpu,cpuacct:/a/b\n0::/c\n");
        let has = |file: &str| files.iter().any(|known| known == Path::new(file));
        assert!(has("/sys/fs/cgroup/cpu/a/b/cpu.stat") && has("/sys/fs/cgroup/cpu/a/cpu.stat"));
        assert!(has("/sys/fs/cgroup/c/cpu.stat") && has("/sys/fs/cgroup/cpu.stat"), "{files:?}");
        assert!(!files.iter().any(|file| file.to_string_lossy().contains("/x/")));
    }
}
