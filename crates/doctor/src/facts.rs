//! Facts about the machine for `plumb doctor --json`, without a judgement.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plumb_capture_bpf::CAP_BPF;
use plumb_capture_perf::Abilities;
use plumb_process::{CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};
use serde::Serialize;

/// Kernel settings that affect recording, as files below /proc/sys.
const SETTINGS: [&str; 9] = [
    "kernel.perf_event_paranoid",
    "kernel.perf_event_max_sample_rate",
    "kernel.perf_cpu_time_max_percent",
    "kernel.perf_event_mlock_kb",
    "kernel.perf_event_max_stack",
    "kernel.kptr_restrict",
    "kernel.unprivileged_bpf_disabled",
    "net.core.bpf_jit_enable",
    "kernel.yama.ptrace_scope",
];
/// Capabilities that affect recording.
pub(super) const CAPABILITIES: [(&str, u32); 5] = [
    ("CAP_PERFMON", CAP_PERFMON),
    ("CAP_BPF", CAP_BPF),
    ("CAP_SYS_ADMIN", CAP_SYS_ADMIN),
    ("CAP_SYS_PTRACE", CAP_SYS_PTRACE),
    ("CAP_SYSLOG", CAP_SYSLOG),
];

/// Facts about the machine, without a judgement.
#[derive(Serialize)]
pub struct MachineFacts {
    /// Kernel release.
    kernel: String,
    /// Kernel build string.
    version: String,
    architecture: &'static str,
    /// Number of online CPUs.
    cpus: usize,
    /// Model name of the first CPU.
    processor: Option<String>,
    /// Whether the CPU reports a hypervisor.
    is_virtual: bool,
    /// Manufacturer of the machine or its emulator, according to the firmware.
    product: Option<String>,
    /// Effective capabilities that affect recording.
    capabilities: Vec<&'static str>,
    /// Whether plumb runs in a user namespace, whose capabilities don't count.
    is_in_user_namespace: bool,
    /// Kernel settings by name; unreadable ones are missing.
    settings: BTreeMap<&'static str, String>,
    /// Lockdown mode of the kernel, if known.
    lockdown: Option<String>,
    /// Whether the kernel's type information (BTF) is readable.
    has_btf: bool,
    abilities: Tried,
}

/// Events that were tried. Each field is null if opening worked, otherwise the error.
#[derive(Serialize)]
struct Tried {
    /// Counting cycles.
    hardware_counters: Option<String>,
    own_processes: Option<String>,
    kernel: Option<String>,
    machine: Option<String>,
    cgroup: Option<String>,
}

impl MachineFacts {
    pub(super) fn find(host: &Host, abilities: &Abilities, counted: &std::io::Result<()>) -> Self {
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        let error = |result: &std::io::Result<()>| result.as_ref().err().map(ToString::to_string);
        Self {
            kernel: host.kernel.clone(),
            version: text("/proc/sys/kernel/version").unwrap_or_default(),
            architecture: std::env::consts::ARCH,
            cpus: host.cpus.len(),
            processor: field(&cpuinfo, "model name").map(str::to_owned),
            is_virtual: host.is_virtual,
            product: product(),
            capabilities: CAPABILITIES
                .iter()
                .filter(|(_, bit)| host.has(*bit))
                .map(|(name, _)| *name)
                .collect(),
            is_in_user_namespace: host.is_in_user_namespace,
            settings: SETTINGS.iter().filter_map(|name| Some((*name, setting(name)?))).collect(),
            lockdown: text("/sys/kernel/security/lockdown"),
            has_btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            abilities: Tried {
                hardware_counters: error(counted),
                own_processes: error(&abilities.own),
                kernel: error(&abilities.kernel),
                machine: error(&abilities.machine),
                cgroup: abilities.cgroup.as_ref().err().map(ToString::to_string),
            },
        }
    }
}

fn text(path: &str) -> Option<String> {
    let text = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_owned()).filter(|text| !text.is_empty())
}

fn setting(name: &str) -> Option<String> {
    text(&format!("/proc/sys/{}", name.replace('.', "/")))
}

/// The value of a line in /proc/cpuinfo.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn product() -> Option<String> {
    let of = |name: &str| text(&format!("/sys/class/dmi/id/{name}"));
    let words: Vec<String> = [of("sys_vendor"), of("product_name")].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_called_what_the_kernel_calls_it() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu vme\n";
        assert_eq!(field(cpuinfo, "model name"), Some("AMD EPYC"));
        assert_eq!(field("", "model name"), None);
    }
}
