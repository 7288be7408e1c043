//! What the machine is, for `plumb doctor --json`: facts without a judgement.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plumb_capture_bpf::CAP_BPF;
use plumb_capture_perf::Abilities;
use plumb_process::{CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYSLOG, Host};
use serde::Serialize;

/// Settings of the kernel that bear on recording, as files below /proc/sys.
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
/// Capabilities that recording goes by.
pub(super) const CAPABILITIES: [(&str, u32); 5] = [
    ("CAP_PERFMON", CAP_PERFMON),
    ("CAP_BPF", CAP_BPF),
    ("CAP_SYS_ADMIN", CAP_SYS_ADMIN),
    ("CAP_SYS_PTRACE", CAP_SYS_PTRACE),
    ("CAP_SYSLOG", CAP_SYSLOG),
];

/// What the machine is.
#[derive(Serialize)]
pub(super) struct Facts {
    /// Release of the kernel.
    kernel: String,
    /// What the kernel says of its build.
    version: String,
    architecture: &'static str,
    /// Processors that are online.
    cpus: usize,
    /// What the first processor is called.
    processor: Option<String>,
    /// The processor says that it is a virtual machine's.
    is_virtual: bool,
    /// Who made the machine, or what emulates it, by its firmware.
    product: Option<String>,
    /// Capabilities in force, of those that recording goes by.
    capabilities: Vec<&'static str>,
    /// Whether plumb runs in a user namespace, whose capabilities don't count.
    is_in_user_namespace: bool,
    /// Settings of the kernel by their names; those that can't be read are missing.
    settings: BTreeMap<&'static str, String>,
    /// How the kernel is locked down, if it says.
    lockdown: Option<String>,
    /// The kernel's types are readable.
    has_btf: bool,
    abilities: Tried,
}

/// What could be opened.
#[derive(Serialize)]
struct Tried {
    /// Each: null if it worked, else the error. Counting cycles.
    hardware_counters: Option<String>,
    own_processes: Option<String>,
    kernel: Option<String>,
    machine: Option<String>,
    cgroup: Option<String>,
}

impl Facts {
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

/// A line of /proc/cpuinfo.
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
