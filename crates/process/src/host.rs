//! The identity and settings of this machine, from /proc and /sys.

use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Kernel settings that affect sampling (Documentation/admin-guide/sysctl/kernel.rst). `None`: cannot be
/// read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// `perf_event_paranoid`: 2 and more: own processes and user code only; 1: also the kernel; 0: the whole machine;
    /// -1: everything.
    pub paranoid: Option<i32>,
    /// `kptr_restrict`: if above 0, kernel addresses, and so kernel symbols, are hidden.
    pub kptr_restrict: Option<i32>,
    /// `perf_event_mlock_kb`: ring buffer memory per CPU that needs no privileges.
    pub mlock_kb: Option<u64>,
    /// `perf_event_max_sample_rate`: samples per second and CPU.
    pub max_sample_rate: Option<u32>,
    /// Kernel release.
    pub kernel: String,
    /// Host name.
    pub name: String,
    /// Numbers of the online CPUs.
    pub cpus: Vec<u32>,
    /// Whether the CPU reports that it is virtual; `false` if it cannot report that (not x86).
    pub is_virtual: bool,
    /// Effective capabilities of this process, as bits (capability.h): none in a user namespace, whose capabilities do not count for perf events
    /// and BPF.
    pub capabilities: u64,
    /// Whether this process is in a user namespace other than the initial one.
    pub is_in_user_namespace: bool,
}

/// Bit of CAP_SYS_ADMIN.
pub const CAP_SYS_ADMIN: u32 = 21;
/// Bit of CAP_SYS_PTRACE.
pub const CAP_SYS_PTRACE: u32 = 19;
/// Bit of CAP_SYSLOG.
pub const CAP_SYSLOG: u32 = 34;
/// Bit of CAP_CHECKPOINT_RESTORE, added in Linux 5.9.
pub const CAP_CHECKPOINT_RESTORE: u32 = 40;
/// Bit of CAP_PERFMON.
pub const CAP_PERFMON: u32 = 38;

/// The initial user namespace (PROC_USER_INIT_INO).
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

impl Host {
    /// Reads the current state.
    pub fn read() -> Self {
        let namespace = fs::read_link("/proc/self/ns/user");
        let is_in_user_namespace = namespace.is_ok_and(|name| name != Path::new(FIRST_USER_NAMESPACE));
        let in_force = capabilities(&text(Path::new("/proc/self/status")));
        let kernel = Path::new("/proc/sys/kernel");
        Self {
            paranoid: number(&kernel.join("perf_event_paranoid")),
            kptr_restrict: number(&kernel.join("kptr_restrict")),
            mlock_kb: number(&kernel.join("perf_event_mlock_kb")),
            max_sample_rate: number(&kernel.join("perf_event_max_sample_rate")),
            kernel: text(&kernel.join("osrelease")),
            name: text(&kernel.join("hostname")),
            cpus: online_cpus(),
            is_virtual: is_virtual(&text(Path::new("/proc/cpuinfo"))),
            capabilities: if is_in_user_namespace { 0 } else { in_force },
            is_in_user_namespace,
        }
    }

    /// Whether the capability with this bit is effective.
    pub fn has(&self, capability: u32) -> bool {
        self.capabilities.checked_shr(capability).is_some_and(|bits| bits & 1 == 1)
    }
}

fn text(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default()
}

fn number<N: FromStr>(path: &Path) -> Option<N> {
    text(path).parse().ok()
}

fn capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

/// Checks CPUID.1:ECX bit 31, which the kernel shows as a flag.
fn is_virtual(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn online_cpus() -> Vec<u32> {
    let cpus = cpu_list(&text(Path::new("/sys/devices/system/cpu/online")));
    if !cpus.is_empty() {
        return cpus;
    }
    // /sys may be missing in a container.
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..u32::try_from(count).unwrap_or(1)).collect()
}

/// Parses a list of numbers such as `0-3,8,10-11`. Invalid parts are left out.
fn cpu_list(list: &str) -> Vec<u32> {
    /// More than any kernel supports.
    const MAX: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            cpus.extend(first..=last.min(MAX));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_have_gaps() {
        assert_eq!(cpu_list("0-1"), [0, 1]);
        assert_eq!(cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(cpu_list("5"), [5]);
        assert_eq!(cpu_list(""), [0; 0]);
    }

    #[test]
    fn a_virtual_processor_says_so() {
        assert!(is_virtual("processor\t: 0\nflags\t\t: fpu vme rdtscp hypervisor lahf_lm\nbugs\t: x\n"));
        assert!(!is_virtual("processor\t: 0\nflags\t\t: fpu vme rdtscp lahf_lm\nmodel name\t: hypervisor\n"));
    }

    #[test]
    fn capabilities_are_those_in_force() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000004000000000\n";
        let host = Host { capabilities: capabilities(status), ..Host::default() };
        assert!(host.has(CAP_PERFMON));
        assert!(!host.has(CAP_SYS_ADMIN));
    }
}
